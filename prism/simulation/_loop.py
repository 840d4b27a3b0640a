"""The loop: rounds, ticks, and the order in which agents act."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic

from prism.errors import FieldValueError, SimulationError
from prism.runlog import SimulatedClock
from prism.runs._event_loop import run_to_end
from prism.simulation._asking import asking_with
from prism.simulation._world import (
    BatchDecider,
    Event,
    Remembering,
    ResultsT_co,
    SummaryT,
    World,
)
from prism.statechart import Budget, PolicyReasoner
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import (
    DECISION,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
)

DEFAULT_ROUNDS = 10
DEFAULT_TICKS_PER_ROUND = 12


class Loop(Generic[SummaryT, ResultsT_co]):
    """Runs a world through rounds and ticks.

    Each tick every agent takes one step, in the order of the agents. Decisions are applied in that
    order, too, so a run depends on its seed and the answers alone, never on which answer came
    first.

    Args:
        make_world: Makes the world, given the logger for its events.
        rounds: Number of rounds, from 1 on.
        ticks_per_round: Steps that an agent takes in a round, from 1 on.
        seed: Seed of the run.
        reasoner: Who decides; a `PolicyReasoner` by default.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.

    Attributes:
        world: What is run.
        rounds: Number of rounds.
        ticks_per_round: Steps that an agent takes in a round.
        finished: The rounds that have ended.
        reasoner: Who decides.
        clock: The run's clock.

    Raises:
        FieldValueError: If rounds or ticks are below 1.
    """

    def __init__(
        self,
        make_world: Callable[[EventLogger | None], World[SummaryT, ResultsT_co]],
        *,
        rounds: int = DEFAULT_ROUNDS,
        ticks_per_round: int = DEFAULT_TICKS_PER_ROUND,
        seed: int = 0,
        reasoner: BatchDecider | None = None,
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
    ) -> None:
        _require_count("rounds", rounds)
        _require_count("ticks_per_round", ticks_per_round)
        self.rounds: int = rounds
        self.ticks_per_round: int = ticks_per_round
        self._seed = seed
        self._has_run = False
        self.finished: list[SummaryT] = []
        self.reasoner: BatchDecider = reasoner or PolicyReasoner(seed)
        self.clock: SimulatedClock = clock or SimulatedClock()
        self._asking = asking_with(self.reasoner, logger, self.clock)
        # the world's events wait there for those of earlier decisions
        self._logger = self._asking.logger
        self.world: World[SummaryT, ResultsT_co] = make_world(self._logger)
        self._asking.apply = self.world.apply

    @property
    def open_questions(self) -> int:
        """Number of questions that the reasoner has not answered yet; any thread may look."""
        return self._asking.open_questions

    def run(self, on_round: Callable[[SummaryT], object] | None = None) -> ResultsT_co:
        """Run to the end in an event loop of its own.

        The reasoner's connections belong to that event loop, so they are closed.

        Args:
            on_round: Called with every round as it ends.

        Raises:
            SimulationError: If it has been run before: the agents are not what they were.
        """
        with _collecting_after_rounds() as collect:

            def after_round(summary: SummaryT) -> None:
                collect()
                if on_round is not None:
                    on_round(summary)

            return run_to_end(self._run_and_close(after_round))

    async def arun(self, on_round: Callable[[SummaryT], object] | None = None) -> ResultsT_co:
        """Run to the end; the async twin of `run`.

        Raises:
            SimulationError: If it has been run before: the agents are not what they were.
        """
        if self._has_run:
            raise SimulationError("this simulation has been run: make a new one, with new agents")

        self._has_run = True
        with self.clock.bound():
            if not self.finished:
                self._begin()

            try:
                for number in range(len(self.finished) + 1, self.rounds + 1):
                    self.finished.append(await self._round(number))
                    if on_round is not None:
                        on_round(self.finished[-1])
            finally:
                await self._asking.close()

            results = self.world.results(self.finished)
            self._emit(RUN_ENDED, **results.totals.to_dict())

        return results

    def snapshot(self) -> dict[str, Any]:
        """Return what the run is, between two rounds, as plain data.

        The log holds the rest: rounds, decisions, and what the world can tell from its events.
        """
        budget = getattr(self.reasoner, "budget", None)

        return {
            "moment": self.clock.to_list(),
            "spent": budget.to_dict() if isinstance(budget, Budget) else None,
            **self.world.snapshot(),
        }

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Go on where another run of the same settings was.

        Args:
            snapshot: What `snapshot` returned there.
            events: Its log until then.

        Raises:
            SimulationError: If the snapshot does not fit the world.
        """
        self.finished = self.world.restore(snapshot, self._remembered(events))
        self.clock.go_on_at(snapshot["moment"])

        budget = getattr(self.reasoner, "budget", None)
        if isinstance(budget, Budget) and snapshot["spent"] is not None:
            budget.restore(**snapshot["spent"])

    def _remembered(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on to the world; the reasoner takes note of its decisions among them."""
        # a log may be long, so it is read once, for both
        remember = self.reasoner.remember if isinstance(self.reasoner, Remembering) else None
        for event in events:
            if remember is not None and event["event"] == DECISION:
                remember(event)

            yield event

    async def _run_and_close(self, on_round: Callable[[SummaryT], object]) -> ResultsT_co:
        try:
            return await self.arun(on_round)
        finally:
            close = getattr(self.reasoner, "close", None)
            if close is not None:
                await close()

    def _begin(self) -> None:
        self._emit(
            RUN_STARTED,
            schema=SCHEMA_VERSION,
            **self.world.describe(),
            rounds=self.rounds,
            ticks_per_round=self.ticks_per_round,
            seed=self._seed,
        )
        self.world.begin()

    async def _round(self, number: int) -> SummaryT:
        self.clock.begin_round(number)
        self._emit(ROUND_STARTED, round=number)
        self.world.begin_round(number)

        for _ in range(self.ticks_per_round):
            self.clock.advance()
            await self._tick()
            # a policy never waits: let an interruption, and others in the event loop, have a turn
            await asyncio.sleep(0)

        await self._asking.end_round()
        summary = self.world.end_round(number)
        self._emit(ROUND_ENDED, **summary.to_dict())

        return summary

    async def _tick(self) -> None:
        step, asking = self.world.step, self._asking
        for agent in self.world.agents:
            if agent is asking.next_agent:
                await asking.settle_next()

            question = step(agent)
            if question is not None:
                await asking.ask(question)

        await asking.end_tick()

    def _emit(self, event: str, **keys: Any) -> None:
        logger = active_logger(self._logger)
        if logger is not None:
            logger.info(event, **keys)


def _require_count(name: str, value: int) -> None:
    if not isinstance(value, int) or value < 1:
        raise FieldValueError(f"{name} must be a whole number, 1 or more, got {value!r}")


@contextmanager
def _collecting_after_rounds() -> Iterator[Callable[[], object]]:
    """Switch automatic garbage collection off; yield what collects the garbage of a round."""
    # the collector would search the growing history of all agents again and again, which took a
    # fifth of the time at 10,000 agents
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield lambda: gc.collect(0)
    finally:
        if was_enabled:
            gc.enable()
