"""An agent that thinks, executes and pages, one cycle at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from time import time
from typing import Any

from prism.cognition._chart import ACTED, OVERFLOW, CognitiveState, cognitive_chart
from prism.cognition._config._config import Config
from prism.cognition._cycle import Cycle, CycleUnderWay
from prism.cognition._memory._memory import Memory
from prism.cognition._paging import Pager
from prism.cognition._replies import read_reply
from prism.errors import FieldValueError
from prism.runs._agent_loop import Lent, NobodyWriter
from prism.statechart import Statechart
from prism.statechart.reasoner._cost import Cost
from prism.statechart.reasoner._texts import BaseWriter, TextCall
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens
from prism.statechart.reasoner._writer import Writer
from prism.telemetry._loggers import EventLogger, active_logger, describe, report_warning
from prism.telemetry.events import COGNITION_CYCLE, COGNITION_RESET


class CognitiveAgent:
    """An agent with a finite working memory and an unbounded storage, which a model manages.

    Args:
        config: What it is told, and its limits.
        memory: What it knows; open, and used by nobody else meanwhile.
        client: Who answers its prompts: a writer, or any client that a `Writer` takes. None for an
            agent of a world, which lends it a writer.
        agent_id: Its name, in logs.
        goal: What it is to achieve; the configuration's goal by default.
        count: Counts the tokens of a prompt, for the limits.
        logger: A structlog logger for its events. None means structlog's own, once it is
            configured.
        clock: Returns the current time in seconds since the epoch. None means real time.

    Attributes:
        config: What it is told, and its limits.
        memory: What it knows.
        agent_id: Its name.
        state: What it is doing.
        ticks_in_state: Cycles that have begun since it came to that state.
        pending: The cycle under way, for the chart's guards and actions; None between two.

    Raises:
        InputError: If what every prompt holds is larger than a limit already.
    """

    def __init__(
        self,
        config: Config,
        memory: Memory,
        client: Any = None,
        *,
        agent_id: str = "agent",
        goal: str | None = None,
        count: TokenCounter = count_tokens,
        logger: EventLogger | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.config: Config = config
        self.memory: Memory = memory
        self.agent_id: str = agent_id
        self.state: CognitiveState = _state_of(memory) or CognitiveState.THINKING
        self.ticks_in_state: int = 0
        self.pending: CycleUnderWay | None = None
        self._pager = Pager(config, goal, count)
        self._writer: BaseWriter = client if isinstance(client, BaseWriter) else _writer(client)
        self._logger = logger
        self._chart = cognitive_chart(logger=logger, clock=clock or time)

    async def run(self, cycles: int | None = None) -> list[Cycle]:
        """Run a number of cycles, and return what became of each.

        Args:
            cycles: How many; ``iterate.max_iterations`` by default, which is also the most.

        Raises:
            FieldValueError: If neither says how many.
        """
        done = []
        for _ in range(number_of_cycles(self.config, cycles)):
            done.append(await self.cycle())
            # a writer may answer at once: let an interruption have a turn
            await asyncio.sleep(0)

        return done

    async def cycle(self) -> Cycle:
        """Run one cycle, and commit the memory; also before an error is raised.

        A model that fails is no error, but a failed cycle.
        """
        try:
            return await self.take_cycle()
        finally:
            self.memory.commit()

    async def take_cycle(self) -> Cycle:
        """Run one cycle, and leave it to the caller to commit the memory.

        The memory changes once the reply is there, all at once: an error before that leaves it as
        it was.
        """
        under_way = self.pending = CycleUnderWay(
            self, self._pager, self.memory.cycle + 1, fire=self._fire, say=self._say
        )
        try:
            self._take_state()
            if self._has_overflowed():
                under_way.why = "soft_limit"
                self._fire(OVERFLOW)

            under_way.state = self.state
            if self.state is not CognitiveState.PAGING or self.config.paging.policy == "model":
                await self._ask(under_way)

            self._conclude(under_way)
        finally:
            self.pending = None
            # of a cycle that was broken off, the transition into paging has not been
            self.state = _state_of(self.memory) or self.state

        return under_way.result()

    # In a world

    @property
    def chart(self) -> Statechart[CognitiveState]:
        """The chart of all such agents."""
        return _shared_chart()

    def join(self, lent: Lent) -> None:
        """Use what a world's run lends: its writer, its log and its time."""
        self._writer, self._logger = lent.writer, lent.logger
        self._chart = cognitive_chart(logger=lent.logger, clock=lent.clock)

    async def act(self, world: Any) -> None:  # noqa: ARG002 - what a class of the user's looks at
        """Run a cycle in a world."""
        await self.cycle()

    def snapshot(self) -> dict[str, Any]:
        """Return what a world keeps of the agent: its memory, with all that is stored."""
        return {"memory": self.memory.to_dict(), "ticks_in_state": self.ticks_in_state}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Make the agent what it was when `snapshot` returned the data.

        Raises:
            InputError: If the data are not those of a memory.
        """
        self.memory.replace(data["memory"])
        self.memory.commit()
        self.state = _state_of(self.memory) or CognitiveState.THINKING
        self.ticks_in_state = data["ticks_in_state"]

    def _fire(self, trigger: str) -> None:
        """Make the transition that the cycle under way calls for."""
        assert self.pending is not None
        about: dict[str, Any] = {"cycle": self.pending.number}
        action = self.pending.action
        if trigger == ACTED and action is not None:
            about |= {"action": action.type, "tags": action.tags}

        self._chart.fire(self, trigger, about)

    def _say(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        """Announce what happened in the cycle under way; a warning is shown in any case."""
        assert self.pending is not None
        about = {"agent_id": self.agent_id, "cycle": self.pending.number}
        if is_warning:
            report_warning(self._logger, event, **about, **keys)
        elif (logger := active_logger(self._logger)) is not None:
            logger.info(event, **about, **keys)

    def _take_state(self) -> None:
        """Take the state from the memory, where somebody may have changed it."""
        found = _state_of(self.memory)
        self.state = found or CognitiveState.THINKING
        self.ticks_in_state += 1
        if found is None:
            self.ticks_in_state = 0
            self._say(
                COGNITION_RESET,
                is_warning=True,
                from_state=self.memory.state,
                to_state=self.state.value,
            )

    def _has_overflowed(self) -> bool:
        is_thinking = self.state is CognitiveState.THINKING
        return is_thinking and self._pager.has_passed_soft_limit(self.memory)

    async def _ask(self, under_way: CycleUnderWay) -> None:
        fitted = under_way.fitted = self._pager.fit(self.memory, self.state.value)
        key = f"{under_way.number}:{self.state.value}"
        call = TextCall(self, key, fitted.prompt.text, read=read_reply)
        under_way.written = await self._writer.write(call, logger=self._logger)

    def _conclude(self, under_way: CycleUnderWay) -> None:
        """Do what the reply asks for; nothing waits here, so all of it happens or nothing."""
        try:
            under_way.conclude()
        except BaseException as error:
            under_way.break_off(describe(error))
            raise
        finally:
            self.memory.state = self.state.value
            self.memory.end_cycle()
            self._announce(under_way)

    def _announce(self, under_way: CycleUnderWay) -> None:
        cycle = under_way.result()
        cost = cycle.cost or Cost()
        self._say(
            COGNITION_CYCLE,
            # of a refusal, and of a model that fails, there is a warning already
            is_warning=cycle.outcome == "unusable" or under_way.is_broken_off,
            state=cycle.state,
            next_state=cycle.next_state,
            outcome=cycle.outcome,
            reason=cycle.reason,
            prompt_tokens=cycle.prompt_tokens,
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            memories=cycle.memories,
            thoughts=cycle.thoughts,
            stored=self.memory.stored_count,
            defects=list(cycle.defects),
        )


@cache
def _shared_chart() -> Statechart[CognitiveState]:
    return cognitive_chart()


def _writer(client: Any) -> BaseWriter:
    return NobodyWriter() if client is None else Writer(client)


def number_of_cycles(config: Config, cycles: int | None) -> int:
    """Return how many cycles a run has.

    Args:
        config: Its configuration, whose ``iterate`` is the most.
        cycles: How many are asked for, if a number is.

    Raises:
        FieldValueError: If neither says how many, or fewer than one is asked for.
    """
    if cycles is not None and cycles < 1:
        raise FieldValueError(f"cycles must be 1 or more, got {cycles}")

    bounds = [cycles] if cycles is not None else []
    if config.iterate.enable:
        bounds.append(config.iterate.max_iterations)
    if not bounds:
        raise FieldValueError(
            "cycles must be given where the configuration has no iterate.max_iterations"
        )

    return min(bounds)


def _state_of(memory: Memory) -> CognitiveState | None:
    try:
        return CognitiveState(memory.state)
    except ValueError:
        return None
