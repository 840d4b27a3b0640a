"""The loop of every run: rounds, treatments, ticks and measures."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from prism._faults import note_location, shortened
from prism.errors import SimulationError
from prism.randomness import RandomStream
from prism.reasoner import BaseWriter, PolicyReasoner
from prism.runlog import SimulatedClock
from prism.runs import WriterOptions
from prism.runs.options import ALL_OTHERS
from prism.runs.running import run_to_end
from prism.statechart.names import identify
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, warning_once
from prism.worlds._activation import TurnsAhead, TurnsAtRates, turns_for
from prism.worlds._events import Events
from prism.worlds._results import Pictures, WorldResults, WorldRound, measured
from prism.worlds._turns import Turns
from prism.worlds.arguments import parameter_values
from prism.worlds.decisions import Answers
from prism.worlds.kinds import inside
from prism.worlds.treatments import Treatments
from prism.worlds.world import World

_ROUNDS_BETWEEN_COLLECTIONS = 20

_FEWEST_FIRED, _IDLE_SHARE = 100, 0.95
"""A run warns of a chart if more than this share of at least so many events did nothing."""

_logger = logging.getLogger("prism.worlds")


class Loop:
    """Runs a world through rounds and ticks, as its `Run` specifies.

    Args:
        run: The run: its rounds, ticks, agents, seed and treatments.
        world: The world, which only this run may use.
        reasoner: Makes the decisions; a `PolicyReasoner` by default.
        writer: Writes the texts that agents ask for. Without one, their templates are used.
        logger: Where to write the run's events, or None for structlog's own logger, once it is
            configured.

    Attributes:
        has_run: Whether it has begun.
        world: The world.
        rounds: Number of rounds.
        finished: The completed rounds.
        reasoner: Makes the decisions.
        writer: Writes the texts, or None.
        clock: The run's clock.
        treatments: What changes when a round begins.
        pace: Awaited before every round and after every tick, so that a player can wait there.
    """

    has_run: bool = False

    def __init__(
        self,
        run: Any,
        world: World[Any],
        reasoner: Any,
        writer: BaseWriter | None,
        logger: EventLogger | None,
    ) -> None:
        if world._run_turns is not None:
            name = type(world).__name__
            raise SimulationError(f"this {name} is already in a run: make a new one")

        self.world: Any = world
        self.rounds: int = run.rounds
        self.finished: list[Any] = []
        self.reasoner: Any = reasoner or PolicyReasoner(run.seed)
        self.writer: BaseWriter | None = writer
        self.clock: SimulatedClock = run._clock or SimulatedClock()
        self.treatments: Treatments = Treatments(world, run.treatments, run.rounds)
        self._switches_in = getattr(run.before, "until", None)
        wording = run.writer.wording() if isinstance(run.writer, WriterOptions) else None
        answers = Answers(self.reasoner, writer, wording)
        make = turns_for(type(world), answers)
        log = Events(logger, self.clock, relays=make is TurnsAhead or run.log_agents is not None)
        self.turns: Turns = make(world, run, answers, log, self.clock)
        # a policy never waits, so yield to interruptions and to other tasks in the event loop
        self.pace: Callable[[], Awaitable[object]] = partial(asyncio.sleep, 0)
        self._pictures = Pictures(world, log)
        with self._explaining():
            self._prepare(run._agents, run.log_agents)

    @property
    def agents(self) -> Sequence[Any]:
        """The population, in the order in which it joined."""
        return self.turns.population.everybody()

    def run(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run all rounds in an event loop of their own.

        The connections of reasoner and writer belong to that event loop and are closed.

        Args:
            on_round: Called with every round when it ends.

        Raises:
            SimulationError: If it was run before, which has changed the agents.
        """
        was_enabled = gc.isenabled()
        # the collector would scan the growing history of all agents again and again, which took a
        # fifth of the time at 10,000 agents
        gc.disable()
        try:
            return run_to_end(self._run_and_close(on_round))
        except Exception as error:
            error.__traceback__ = shortened(error)
            raise
        finally:
            if was_enabled:
                gc.enable()

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run all rounds; the async twin of `run`.

        Raises:
            SimulationError: If it was run before, which has changed the agents.
        """
        if self.has_run:
            raise SimulationError("this run has been carried out: make a new one")

        self.has_run = True
        with self.clock.bound(), warning_once():
            with self._explaining():
                self._begin()
            for number in range(1, self.rounds + 1):
                self.finished.append(await self._round(number))
                if number % _ROUNDS_BETWEEN_COLLECTIONS == 0:
                    gc.collect(0)
                if on_round is not None:
                    on_round(self.finished[-1])
                if self.turns.stopped is not None:
                    break

            results = self._results()
            self.turns.events.emit(events.RUN_ENDED, **results.totals())
            self._warn_of_idle_events()

        return results

    def _results(self) -> Any:
        return WorldResults(len(self.agents), tuple(self.finished))

    async def _run_and_close(self, on_round: Callable[[Any], object] | None) -> Any:
        try:
            return await self.arun(on_round)
        finally:
            for each in (self.reasoner, self.writer):
                if (close := getattr(each, "close", None)) is not None:
                    await close()

    # Beginning

    def _prepare(self, agents: Any, covered: int | None) -> None:
        """Prepare world and agents for the first tick."""
        world, turns = self.world, self.turns
        stream = RandomStream(turns.seed, "world", "setup", 0)
        vars(world).update(seed=turns.seed, _run_turns=turns, _stream=stream)
        turns.population.populate(world.members(agents))
        if covered is not None:
            first = turns.population.canonical(turns.population.everybody())[:covered]
            turns.events.covered = frozenset(each.agent_id for each in first)
        world.setup()
        turns.begin(turns.population.everybody())

    def _begin(self) -> None:
        turns = self.turns
        kinds = turns.population.kinds.values()
        charts = {each.chart.name: each.chart.definition for each in kinds}
        nested = {name: inside(each) for name, each in charts.items() if each.is_nested}
        more = {**self._about_world(), **({"charts": nested} if nested else {})}
        if turns.events.covered is not None:
            more["logged_agents"] = len(turns.events.covered)
        if isinstance(turns, TurnsAtRates):
            # in continuous time, whose unit is a round
            more["seconds_per_round"] = self.clock.seconds_per_tick * turns.ticks_per_round
        turns.events.emit(
            events.RUN_STARTED,
            schema=events.SCHEMA_VERSION,
            chart=", ".join(charts),
            agents=len(self.agents),
            rounds=self.rounds,
            ticks_per_round=turns.ticks_per_round,
            seed=turns.seed,
            **more,
        )
        turns.announce()
        turns.events.picture(self._pictures.take())
        turns.enter()

    def _about_world(self) -> dict[str, Any]:
        parameters = identify(parameter_values(self.world)) or {}
        return {"world": type(self.world).__name__, "parameters": parameters}

    def _warn_of_idle_events(self) -> None:
        """Warn of charts that almost always were where the events did nothing."""
        turns, kinds = self.turns, self.turns.population.kinds.values()
        for definition in dict.fromkeys(each.chart.definition for each in kinds):
            triggers = definition.hierarchy.triggers
            missed = {key: number for key, number in turns.missed.items() if key[0] in triggers}
            fired = sum(missed.values()) + sum(turns.made[each] for each in triggers)
            if fired >= _FEWEST_FIRED and sum(missed.values()) > _IDLE_SHARE * fired:
                (trigger, state), number = max(missed.items(), key=lambda each: each[1])
                about = definition.name, sum(missed.values()), fired, trigger, number, state
                _logger.warning(
                    "chart %r: %d of %d events did nothing, such as %r, fired %d times in %r",
                    *about,
                )

    # Rounds

    async def _round(self, number: int) -> Any:
        world, turns = self.world, self.turns
        await self.pace()
        stream = RandomStream(turns.seed, "world", "", number)
        vars(world).update(round=number, _stream=stream)
        self.clock.begin_round(number)
        turns.events.emit(events.ROUND_STARTED, round=number)
        turns.begin_round()
        if number == self._switches_in:
            self.reasoner.switch(ALL_OTHERS)
        with self._explaining():
            self.treatments.apply(number)
            world.round_begins()
            turns.assignments.log()
            await turns.round(self.pace)
            if number in (1, self.rounds):
                turns.population.require_counted()
            states = turns.population.states()
            turns.refusing = "a measure must not change anything: use a hook, such as round_ends"
            measures = measured(world)
            turns.refusing = None
            picture = self._pictures.take()
            await world.close_round()
            world.round_ends()
            turns.assignments.log()
        turns.events.picture(picture)
        tally = turns.counts, turns.timeouts, turns.texts, turns.fallbacks
        summary = WorldRound(number, states, measures, *tally, stopped=turns.stopped)
        turns.events.emit(events.ROUND_ENDED, **summary.to_dict())
        return summary

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Add to an exception of the user's code where it was raised."""
        try:
            yield
        except Exception as error:
            note_location(error, self.turns.acting, self.world.round, self.clock.tick)
            raise
