"""The loop of every run: rounds, treatments, ticks and measures, snapshots and restoring."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any

from prism._faults import place_of_method, shortened
from prism.errors import SimulationError
from prism.reasoner._router import costs_told, models_told
from prism.runlog import SimulatedClock
from prism.runs._running import run_to_end
from prism.statechart import BaseWriter, PolicyReasoner, Wording
from prism.telemetry.events import (
    AGENTS_MEASURED,
    AGENTS_PICTURED,
    DECISION,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TEXT_WRITTEN,
)
from prism.telemetry.loggers import EventLogger, active_logger
from prism.worlds._agent_measures import AgentMeasures, require_number
from prism.worlds._asking import Answerers, Decider, Event, Remembering
from prism.worlds._kinds import measures_of, parts_of
from prism.worlds._networks import Network
from prism.worlds._overlap import OverlapTicks
from prism.worlds._people import AgentTable
from prism.worlds._phase import Phase
from prism.worlds._results import Measured
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._stage import AgentStage, Sampling, Setting
from prism.worlds._treatments import Treating, Treatment, with_reasoners
from prism.worlds._world import World, defines

_TICKS_BETWEEN_COLLECTIONS = 20
"""In fewer ticks, a round leaves little garbage."""

_MANY_OBJECTS = 100_000
"""From so many new objects on, garbage is collected."""

_SECONDS_BETWEEN_COLLECTIONS = 0.5
"""After so long, garbage is collected even if it is few objects, since these may be large."""

_ONLY_LOOKS = "a measure must not change anything: use a hook, such as round_ends"

MANY = 100_000
"""The largest number of agents for which the log covers each by default."""

LOGGED_OF_MANY = 1_000
"""Number of agents that the log of a larger run covers by default."""


class Loop:
    """Runs a world through rounds and ticks, as its `Run` specifies.

    Args:
        world: The world, which only this run may use.
        agents: The agents, or the number for the world to make.
        rounds: Number of rounds.
        ticks: Ticks in a round.
        seed: Seed of every random number.
        reasoner: Makes the decisions; a `PolicyReasoner` by default.
        writer: Writes the texts that agents ask for. Without one, their templates are used.
        wording: Length and language of texts for calls that do not specify them.
        treatments: The treatments.
        logger: Where to write the run's events, or None for structlog's own logger, once it is
            configured.
        clock: The run's clock.
        log_agents: How many agents the log covers, if specified.

    Attributes:
        world: The world.
        rounds: Number of rounds.
        ticks_per_round: Ticks in a round.
        finished: The completed rounds.
        reasoner: Makes the decisions.
        writer: Writes the texts, or None.
        clock: The run's clock.
        pace: Awaited before every round and after every tick, so that a player can wait there.
    """

    def __init__(
        self,
        world: World[Any],
        agents: int | Iterable[Any] | AgentTable,
        *,
        rounds: int,
        ticks: int,
        seed: int,
        reasoner: Decider | None = None,
        writer: BaseWriter | None = None,
        wording: Wording | None = None,
        treatments: Sequence[str | Treatment] = (),
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
        log_agents: int | None = None,
    ) -> None:
        if world._host is not None:
            raise SimulationError(
                f"this {type(world).__name__} is already in a run: make a new one"
            )

        self.world: Any = world
        self.rounds: int = rounds
        self.ticks_per_round: int = ticks
        self.finished: list[Any] = []
        decider: Decider = reasoner or PolicyReasoner(seed)
        self.reasoner: Decider = with_reasoners(decider, treatments) if treatments else decider
        self.writer: BaseWriter | None = writer
        self._answerers = Answerers(self.reasoner, writer, wording)
        self.clock: SimulatedClock = clock or SimulatedClock()
        self._seed = seed
        self._collect: Callable[[], object] = _leave_it
        self._parts = parts_of(type(world))
        self._has_beginning = defines(type(world), "round_begins")
        self._has_end = defines(type(world), "round_ends")
        self._treatments: tuple[str | Treatment, ...] = tuple(treatments)
        self._treating = Treating(world, self._parts, treatments, rounds)
        sampling = sampling_of(agents, log_agents)
        setting = Setting(
            world, self._parts, seed, ticks, self.clock, logger, self._answerers, sampling
        )
        # a policy never waits, so yield to interruptions and to other tasks in the event loop
        self.pace: Callable[[], Awaitable[object]] = partial(asyncio.sleep, 0)
        try:
            self._stage = AgentStage(setting)
            self._prepare(agents)
        except Exception as error:
            error.__traceback__ = shortened(error)
            raise

        self._host = self._stage.host
        # the user's fields may hold values that no checkpoint can keep
        has_own = bool(type(world).fields) or bool(self._parts.measures)
        self._is_to_be_checked = self._stage.has_fields or has_own

    @property
    def agents(self) -> Sequence[Any]:
        """The population, in the order in which it was given."""
        found: Sequence[Any] = self.world.agents
        return found

    @property
    def has_run(self) -> bool:
        """Whether it has been run, or is under way."""
        return self._host.phase is not Phase.SETTING_UP

    @property
    def open_questions(self) -> int:
        """The number of questions without an answer. Any thread may read it."""
        return self._stage.ticks.open_questions

    def run(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run the remaining rounds in an event loop of their own.

        The reasoner's connections belong to that event loop and are closed.

        Args:
            on_round: Called with every round when it ends.

        Raises:
            SimulationError: If it was run before, which has changed the agents.
        """
        try:
            with _collecting_now_and_then() as self._collect:
                return run_to_end(self._run_and_close(on_round))
        except Exception as error:
            error.__traceback__ = shortened(error)
            raise

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run the remaining rounds; the async twin of `run`.

        Raises:
            SimulationError: If it was run before, which has changed the agents.
        """
        if self.has_run:
            raise SimulationError(
                "this simulation has been run: make a new one, with a new world and new agents"
            )

        self._host.enter(Phase.BEGINNING)
        running = self.world._prism_running(is_new=not self.finished)
        with self.clock.bound(), running:
            if not self.finished:
                self._begin()

            try:
                await self._rounds(on_round)
            finally:
                await self._stage.ticks.close()

            results = self.world._prism_results(self.finished)
            totals = results.totals
            told = totals() if callable(totals) else totals.to_dict()
            self._host.emit(RUN_ENDED, **told, **costs_told(self.reasoner, self.writer))

        return results

    async def _rounds(self, on_round: Callable[[Any], object] | None) -> None:
        """Run the remaining rounds, until the run is over."""
        for number in range(len(self.finished) + 1, self.rounds + 1):
            if self._host.stopped is not None or self.world._prism_is_over(self.finished):
                return

            with self.world._prism_round():
                self.finished.append(await self._round(number))
                self._collect()
                if on_round is not None:
                    on_round(self.finished[-1])

    def kept_in(self, folder: Path) -> None:
        """Set the folder in which the run is kept."""
        self.world._prism_kept_in(folder)

    def treat(self, treatment: str | Treatment) -> None:
        """Add a treatment in a round that has not begun.

        Args:
            treatment: A treatment of the world's class and its round, such as ``warning@12``, or a
                ready-made one.

        Raises:
            PrismError: If it cannot be applied.
        """
        given = (*self._treatments, treatment)
        treating = Treating(self.world, self._parts, given, self.rounds)
        if isinstance(treatment, Treatment):
            treatment.check(self.world)
        self._treatments, self._treating = given, treating

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the run between two rounds as plain data. The log holds the rest.

        Raises:
            SimulationError: If a field holds a value that cannot be kept; the message names it.
        """
        budget = self._answerers.budget
        arms = self._host.assignments.snapshot()

        return {
            "moment": self.clock.to_list(),
            "spent": None if budget is None else budget.to_dict(),
            **({"arms": arms} if arms else {}),
            **self._fields(self._stage.snapshot),
        }

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Continue where another run with the same options was.

        Args:
            snapshot: What its `snapshot` returned.
            events: Its log up to there.

        Raises:
            SimulationError: If the snapshot belongs to another world or population.
        """
        self._host.end_setup(is_resumed=True)
        # restore the time first: agents have been in their states since some tick
        self.clock.go_on_at(snapshot["moment"])
        self._restore_fields(snapshot)
        self._host.assignments.restore(snapshot.get("arms", {}))

        budget = self._answerers.budget
        if budget is not None and snapshot["spent"] is not None:
            budget.restore(**snapshot["spent"])

        self.finished = self._stage.read_log(self._noted(events))
        self._treating.go_on(len(self.finished), self._host)

    # Beginning

    def _prepare(self, agents: int | Iterable[Any] | AgentTable) -> None:
        """Prepare world and agents for the first tick."""
        world, stage = self.world, self._stage
        object.__setattr__(world, "_host", stage.host)
        with stage.host.explaining():
            stage.populate(agents)
            world.setup()
            self._treating.check()

        stage.ready()

    def _begin(self) -> None:
        told = self._stage.describe()
        self._host.emit(
            RUN_STARTED,
            schema=SCHEMA_VERSION,
            chart=told.pop("chart"),
            agents=told.pop("agents"),
            rounds=self.rounds,
            ticks_per_round=self.ticks_per_round,
            **self._unit_of_time(),
            seed=self._seed,
            **told,
            **models_told(self._host.agents, self.reasoner, self.writer),
        )
        self._stage.announce()
        self._tell_picture(self._picture(first=True))
        self._host.end_setup(is_resumed=False)
        self._stage.enter()

    def _unit_of_time(self) -> dict[str, float]:
        """Return the seconds in a round if events happen at rates, in continuous time."""
        if self.world.activation != "rate":
            return {}
        return {"seconds_per_round": self.clock.seconds_per_tick * self.ticks_per_round}

    # Rounds

    async def _round(self, number: int) -> Any:
        host, world, stage = self._host, self.world, self._stage
        await self.pace()
        self.clock.begin_round(number)
        self._host.emit(ROUND_STARTED, round=number)
        stage.begin_round()
        if self._has_beginning or self._treating.is_due(number):
            with host.explaining():
                self._treating.apply(number, host)
                world.round_begins()

        for tick in range(1, self.ticks_per_round + 1):
            self.clock.advance()
            await stage.tick()
            await self.pace()
            if tick % _TICKS_BETWEEN_COLLECTIONS == 0:
                self._collect()
            # if agents continue while others wait, ticks have no common end
            if not world.overlap and host.is_to_end():
                break

        if isinstance(stage.ticks, OverlapTicks):
            await stage.ticks.end_round()
        host.is_to_end()
        host.begin_ending()
        states = stage.states()
        measures, of_agents = self._measures()
        picture = self._picture()
        await stage.end_round()
        if self._has_end:
            with host.explaining():
                world.round_ends()

        for told in of_agents:
            self._host.emit(AGENTS_MEASURED, **told)
        self._tell_picture(picture)
        summary = stage.summary(number, states, measures)
        self._host.emit(ROUND_ENDED, **world._prism_ended(summary))

        return summary

    def _picture(self, *, first: bool = False) -> dict[str, Any]:
        """Return the data of a picture, if the log covers agents."""
        if active_logger(self._stage.logger) is None or self._stage.logged_agents() == 0:
            return {}
        if self._parts.picture is None:
            return self._stage.picture(first=first)

        reason = "a picture must not change anything: use a hook, such as round_ends"
        with self._host.only_looking(reason), self._host.explaining():
            return self._stage.picture(first=first)

    def _tell_picture(self, told: Mapping[str, Any]) -> None:
        if told:
            self._host.emit(AGENTS_PICTURED, **told)

    def _measures(self) -> tuple[dict[str, Measured], list[dict[str, Any]]]:
        if not self._is_to_be_checked:
            return self._taken()

        # compared once; this also finds values that no later checkpoint could keep
        self._is_to_be_checked = False
        of_agents_too = self._stage.has_fields
        before = self._held(of_agents=of_agents_too)
        taken = self._taken()
        if any(taken) and (after := self._held(of_agents=of_agents_too)) != before:
            raise SimulationError(
                f"a measure of {type(self.world).__name__} changes a field "
                f"({', '.join(_differing(before, after))}): {_ONLY_LOOKS}"
            )

        return taken

    def _taken(self) -> tuple[dict[str, Measured], list[dict[str, Any]]]:
        """Return the current measures of the world and of its agents."""
        if not self._measured and self._of_agents is None:
            return {}, []

        looking = self._host.only_looking(_ONLY_LOOKS)
        with looking, self._host.explaining():
            found = {
                name: require_number(getattr(self.world, name)(), what)
                for name, what in self._measured.items()
            }
            return found, [] if self._of_agents is None else self._of_agents.take()

    @cached_property
    def _of_agents(self) -> AgentMeasures | None:
        """The measures of agents, if any."""
        measured = {cls: own for cls in self._host.classes() if (own := measures_of(cls))}
        return AgentMeasures(self._seed, self._host.agents, measured) if measured else None

    @cached_property
    def _measured(self) -> dict[str, str]:
        """The names of the measures, and where each is defined."""
        cls = type(self.world)
        return {
            name: f"{place_of_method(cls, name)}: {cls.__name__}.{name}"
            for name in self._parts.measures
        }

    # Keeping

    def _held(self, *, of_agents: bool) -> dict[str, Any]:
        """Return what a measure could change, as plain data."""
        held = self._stage.held
        return self._fields(lambda code: {"kinds": held(code)} if of_agents else {})

    def _fields(self, of_agents: Callable[[Encoder], dict[str, Any]]) -> dict[str, Any]:
        world, agents = self.world, self._host.agents
        code = Encoder(agents, type(world).__module__)
        kinds = of_agents(code)
        of_world = {
            name: code.column([world], lambda each, name=name: getattr(each, name), name)[0]  # type: ignore[misc]
            for name in type(world).fields
        }
        network = world._network

        return {
            **kinds,
            "world": of_world,
            "network": None if network is None else network.snapshot(),
            "things": code.things(),
        }

    def _restore_fields(self, snapshot: Mapping[str, Any]) -> None:
        world = self.world
        code = Decoder(self._host.agents, type(world).__module__, snapshot["things"])
        self._stage.restore(snapshot, code)
        for name, value in snapshot["world"].items():
            object.__setattr__(world, name, code.value(value))
        if snapshot["network"] is not None:
            if world._network is None:
                # a hook had set the first one
                world.network = Network(world.agents, ())
            world.network.restore(snapshot["network"])

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on to a reasoner that replays."""
        replaying = {DECISION: self.reasoner, TEXT_WRITTEN: self.writer}
        for event in events:
            name = event["event"]
            if name in replaying:
                answerer = replaying[name]
                if isinstance(answerer, Remembering):
                    answerer.remember(event)

            yield event

    async def _run_and_close(self, on_round: Callable[[Any], object] | None) -> Any:
        try:
            return await self.arun(on_round)
        finally:
            await self._answerers.close()


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that differ between two snapshots."""
    names = [
        name
        for old, new in zip(before.get("kinds", ()), after.get("kinds", ()), strict=True)
        for name in old["fields"]
        if old["fields"][name] != new["fields"][name]
    ]
    names += [name for name in before["world"] if before["world"][name] != after["world"][name]]

    return names or [name for name in before if before[name] != after[name]]


def sampling_of(agents: Any, asked: int | None) -> Sampling | None:
    """Return how many agents the log covers, or None for all.

    Args:
        agents: Their number or a table; if they are objects, the log covers them all.
        asked: How many were requested, if any; 0 if the log only has rounds.
    """
    if asked is not None:
        return Sampling(asked)

    # the number of agents in a file of social agents is known once the run has read it
    is_of_many = agents > MANY if isinstance(agents, int) else isinstance(agents, AgentTable)
    return Sampling(LOGGED_OF_MANY, MANY) if is_of_many else None


def _leave_it() -> None:
    """Do nothing, and leave garbage to the collector."""


class _Collector:
    """Collects garbage if there are many new objects, or if it has not done so for a while.

    Most new objects are records of histories.
    """

    def __init__(self) -> None:
        self._due = perf_counter() + _SECONDS_BETWEEN_COLLECTIONS

    def __call__(self) -> None:
        if gc.get_count()[0] > _MANY_OBJECTS or perf_counter() >= self._due:
            gc.collect(0)
            self._due = perf_counter() + _SECONDS_BETWEEN_COLLECTIONS


@contextmanager
def _collecting_now_and_then() -> Iterator[Callable[[], object]]:
    """Switch automatic garbage collection off, and yield a function that collects if it is due."""
    # the collector would scan the growing history of all agents again and again, which took a fifth
    # of the time at 10,000 agents
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield _Collector()
    finally:
        if was_enabled:
            gc.enable()
