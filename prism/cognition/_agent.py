"""An agent that thinks, executes and pages, one cycle at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from time import time
from typing import Any, ClassVar

from prism.cognition._actions import ActionRefusedError, ActionResult, OwnAction, actions_of
from prism.cognition._chart import CHART_NAME, CognitiveState, cognitive_chart
from prism.cognition._config import Config
from prism.cognition._cycle import Cycle, CycleUnderWay, reason_to_stop, state_of
from prism.cognition._memory._memory import Memory, document_of
from prism.cognition._memory._values import to_json
from prism.cognition._paging import Pager
from prism.cognition._replies import AskedAction
from prism.errors import FieldValueError
from prism.llm import Model
from prism.reasoner._tokens import TokenCounter, count_tokens
from prism.runs._documents import hold
from prism.runs._lent import Lent, writer_of
from prism.statechart import Statechart
from prism.telemetry.loggers import EventLogger

_MOST_NEWS = 50


class CognitiveAgent:
    """An agent with a finite working memory and an unbounded storage, which a model manages.

    Run it by `run`, by ``async for cycle in agent``, or a `cycle` at a time. A subclass can add
    actions with the decorator `action`. ``Run`` and ``prism run file.py:Class`` run a subclass
    like the file of a configuration, with the `Config` in its attribute ``config``.

    Args:
        config: Its instructions and limits.
        memory: Its knowledge: an open memory that nothing else uses.
        client: Answers its prompts: a writer, or any client that a `Writer` takes. A `Model`
            without a window gets one with room for the hard limit and a reply. None for an agent of
            a world, which lends it a writer.
        agent_id: Its name, in logs.
        goal: Its goal; by default the configuration's.
        count: Counts the tokens of a prompt, for the limits.
        actions: Further actions: functions whose first argument is the agent.
        on_cycle: Called with every cycle as it ends.
        logger: A structlog logger for its events. None means structlog's own, once it is
            configured.
        clock: Returns the current time in seconds since the epoch. None means real time.

    Attributes:
        config: Its goal, instructions and limits.
        memory: Its knowledge.
        agent_id: Its name.
        state: Its state.
        ticks_in_state: Cycles that have begun since it entered that state.
        actions: Its actions besides those of the memory, by name.
        stopped: Why the last run ended early; None if it did not.
        world: The world in which it is acting; None outside of one.
        pending: The current cycle, for the chart's guards and actions; None between two.

    Raises:
        InputError: If the fixed parts of every prompt already exceed a limit.
        DefinitionError: If no reply could ask for one of the actions.
    """

    _prism_run_alone: ClassVar[str] = "cognition"

    def __init__(
        self,
        config: Config,
        memory: Memory,
        client: Any = None,
        *,
        agent_id: str = "agent",
        goal: str | None = None,
        count: TokenCounter = count_tokens,
        actions: Iterable[Callable[..., Any]] = (),
        on_cycle: Callable[[Cycle], object] | None = None,
        logger: EventLogger | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.config: Config = config if goal is None else replace(config, goal=goal)
        self.agent_id: str = agent_id
        self.take_memory(memory)
        self.ticks_in_state: int = 0
        self.pending: CycleUnderWay | None = None
        self.actions: Mapping[str, OwnAction] = actions_of(type(self), actions)
        self.stopped: str | None = None
        self.world: Any = None
        self._on_cycle = on_cycle
        self._pager = Pager(self.config, count, self.actions)
        writer = writer_of(with_window(client, config))
        self._use(Lent(writer, logger, clock or time, seed=None))

    def take_memory(self, memory: Memory) -> None:
        """Continue with another open memory, which nothing else may use."""
        self.memory: Memory = memory
        self.state: CognitiveState = state_of(memory) or CognitiveState.THINKING
        memory.version_limit = self.config.storage.versions

    async def run(self, cycles: int | None = None) -> list[Cycle]:
        """Run a number of cycles, and return the result of each.

        It ends early after ``iterate.max_useless`` useless cycles in a row, or once the budget is
        spent; ``stopped`` says why.

        Args:
            cycles: Number of cycles; the default and the maximum is ``iterate.max_iterations``.

        Raises:
            FieldValueError: If neither is given.
        """
        return [cycle async for cycle in self._cycles(number_of_cycles(self.config, cycles))]

    def __aiter__(self) -> AsyncIterator[Cycle]:
        """Run cycles as `run` does, and give each as it ends.

        Raises:
            FieldValueError: If the configuration has no ``iterate.max_iterations``.
        """
        return self._cycles(number_of_cycles(self.config, None))

    async def _cycles(self, number: int) -> AsyncIterator[Cycle]:
        done: list[Cycle] = []
        self.stopped = None
        while len(done) < number and self.stopped is None:
            done.append(await self.cycle())
            self.stopped = reason_to_stop(done, self.config.iterate.max_useless)
            yield done[-1]
            # a writer may answer at once: let an interruption have a turn
            await asyncio.sleep(0)

    async def cycle(self) -> Cycle:
        """Run one cycle, and commit the memory, even if an error is raised.

        If the model fails, that is not an error but a failed cycle.
        """
        try:
            cycle = await self.take_cycle()
        finally:
            self.memory.commit()
        if self._on_cycle is not None:
            self._on_cycle(cycle)

        return cycle

    async def take_cycle(self) -> Cycle:
        """Run one cycle without committing the memory, which the caller does.

        The memory changes in one step after the reply has arrived, so an error before that leaves
        it unchanged.
        """
        self.pending = CycleUnderWay(self)
        try:
            return await self.pending.run()
        finally:
            self.pending = None
            # of a cycle that was broken off, the transition into paging has not been
            self.state = state_of(self.memory) or self.state

    # In a world

    @property
    def chart(self) -> Statechart[CognitiveState]:
        """The chart, which all agents with the same actions share."""
        return _shared_chart(*self.actions)

    def join(self, lent: Lent) -> None:
        """Use the writer, the log and the time of a world's run, which keeps the memory."""
        self._use(lent)
        if (before := hold(self.agent_id, lambda: to_json(self.memory.to_dict()))) is not None:
            self.memory.replace(document_of(before))

    def _use(self, lent: Lent) -> None:
        self._lent = lent
        self._chart = self.chart.bound(CHART_NAME, lent.logger, lent.clock)

    async def act(self, world: Any) -> None:
        """Take a turn in a world: perceive the news, and think until an action is carried out.

        This takes at least two cycles, and at most ``iterate.max_per_round``. News that the agent
        has not acted on is shown again in its next turn.
        """
        self.tell(*self.perceive(world))
        self.world = world
        try:
            for _ in range(self.config.iterate.max_per_round):
                cycle = await self.cycle()
                if cycle.has_acted:
                    self.tell(instead=True)
                    return
        finally:
            self.world = None

    def perceive(self, world: Any) -> Iterable[str]:
        """Return the agent's news in a world; by default its messages."""
        inbox = world.acting.inbox
        told = [f"{message.sender.agent_id}: {message.content}" for message in inbox]
        inbox.clear()
        return told

    def tell(self, *news: str, instead: bool = False) -> None:
        """Add to the agent's news, which its prompts show.

        Args:
            news: The news; the last 50 items are kept.
            instead: Whether to replace the earlier news.
        """
        before = () if instead else self.memory.news
        self.memory.tell([*before, *news][-_MOST_NEWS:])

    def carry_out(self, own: OwnAction, asked: AskedAction) -> ActionResult:
        """Carry out one of the agent's own actions.

        Raises:
            ActionRefusedError: If a field is wrong, there is no world, or the action refuses.
        """
        fields = own.values_of(asked)
        if own.takes_world and self.world is None:
            raise ActionRefusedError("the agent is in no world")
        world = {"world": self.world} if own.takes_world else {}
        answer = own.function(self, **world, **fields)

        return ActionResult(own.name, asked.tags, answer=None if answer is None else str(answer))

    def snapshot(self) -> dict[str, Any]:
        """Return the agent's whole memory, for a checkpoint."""
        return {"memory": self.memory.to_dict(), "ticks_in_state": self.ticks_in_state}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restore the agent from the data that `snapshot` returned.

        Raises:
            InputError: If the data are not a memory.
        """
        self.memory.replace(data["memory"])
        self.memory.commit()
        self.state = state_of(self.memory) or CognitiveState.THINKING
        self.ticks_in_state = data["ticks_in_state"]


@cache
def _shared_chart(*actions: str) -> Statechart[CognitiveState]:
    return cognitive_chart(actions)


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

    most = config.iterate.max_iterations if config.iterate.enable else None
    bounds = [number for number in (cycles, most) if number is not None]
    if not bounds:
        raise FieldValueError(
            "give the number of cycles: the configuration has no iterate.max_iterations"
        )

    return min(bounds)


def with_window(client: Any, config: Config) -> Any:
    """Return a model with a window for the largest prompt and a reply, if none is given.

    Args:
        client: A `Model` or the text of one; any other client is returned as it is.
        config: Its hard limit is the largest prompt.
    """
    model = Model.of(client) if isinstance(client, str) else client
    if not isinstance(model, Model) or not config.hard_limit.enable:
        return client
    # a client of another library has a window of its own
    if model.window is not None or model.client is not None:
        return client

    hard = config.hard_limit.max_tokens
    # the share of replies, a quarter of the window, if nothing else is said
    reply = model.reply_tokens or -(-hard // 3)
    # an estimate may be too low
    return replace(model, window=hard * 3 // 2 + reply, reply_tokens=reply)
