"""A run of a world: rounds, ticks, measures and treatments, kept and made again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from math import isfinite
from typing import Any, Generic, TypeVar

from prism.errors import FieldValueError, SimulationError
from prism.runlog import SimulatedClock
from prism.runlog._clock import Moment
from prism.runlog._keys import WORLD_EVENTS
from prism.runs._lent import Lent
from prism.statechart import Budget, PolicyReasoner, StateTransition
from prism.statechart._engine.writing import make_record
from prism.statechart._identity import identify
from prism.statechart.inspection._fits import require_fit
from prism.statechart.states import state_text
from prism.statechart.transitions import shared_edge
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import (
    AGENT_JOINED,
    DECISION,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TRANSITION,
    TREATMENT_APPLIED,
)
from prism.worlds._agent import Agent
from prism.worlds._elsewhere import drawing_nowhere_else
from prism.worlds._guest import Guest, join
from prism.worlds._host import ENDING, RunHost
from prism.worlds._kinds import Kind, make_kinds, parts_of, treatments_by_round
from prism.worlds._results import Measured, WorldResults, WorldRound
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._ticks import Counts, Decider, Ticks
from prism.worlds._together import TogetherTicks
from prism.worlds._world import World, parameters_of

WorldT = TypeVar("WorldT", bound=World[Any])

Event = Mapping[str, Any]

DEFAULT_AGENTS = 100


class Run(Generic[WorldT]):
    """Runs a world through rounds and ticks.

    Every tick each agent is given its turn, in the order of the population: a time-out if one is
    due, else the step of its kind and state. Decisions are asked together and applied in the order
    of the agents whose steps asked, so a run depends on its seed and the answers alone.

    Args:
        world: The world; a run takes it for itself.
        agents: How many agents the world's `populate` is to make, or the agents.
        rounds: Number of rounds; by default what the world's class says.
        ticks: Ticks in a round; by default what the world's class says.
        seed: Seed of every random number.
        reasoner: Who decides; a `PolicyReasoner` by default, which draws by the weights of a
            decision.
        treatments: Treatments and the rounds at whose beginning they are applied:
            ``["warning@12"]``.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.

    Attributes:
        world: The world.
        agents: The population.
        rounds: Number of rounds.
        ticks_per_round: Ticks in a round.
        finished: The rounds that have ended.
        reasoner: Who decides.
        clock: The run's clock.

    Raises:
        DefinitionError: If the class of the world or of an agent cannot work.
        AgentError: If an agent cannot take part.
        FieldValueError: If a number is out of its range, or there is no such treatment.
        SimulationError: If the world is in a run already.
    """

    def __init__(
        self,
        world: WorldT,
        agents: int | Iterable[Agent] = DEFAULT_AGENTS,
        *,
        rounds: int | None = None,
        ticks: int | None = None,
        seed: int = 0,
        reasoner: Decider | None = None,
        treatments: Sequence[str] = (),
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
    ) -> None:
        if world._host is not None:
            raise SimulationError(
                f"this {type(world).__name__} is in a run already: make a new one"
            )

        self.world: WorldT = world
        self.rounds: int = _counted("rounds", world.rounds if rounds is None else rounds)
        self.ticks_per_round: int = _counted("ticks", world.ticks if ticks is None else ticks)
        self.finished: list[WorldRound] = []
        self.reasoner: Decider = reasoner or PolicyReasoner(seed)
        self.clock: SimulatedClock = clock or SimulatedClock()
        self._seed = seed
        self._logger = logger
        self._has_run = False
        self._has_been_checked = False
        self._parts = parts_of(type(world))
        self._treatments = treatments_by_round(world, self._parts, treatments, self.rounds)
        self._transitions = 0
        self._host = RunHost(world, seed, self.clock, logger)
        object.__setattr__(world, "_host", self._host)
        with self._host.explaining(), drawing_nowhere_else():
            self._kinds = self._populate(agents)
            world.setup()

        kind = TogetherTicks if world.together else Ticks
        self._ticks: Ticks = kind(world, self._host, self.reasoner, logger)

    @property
    def agents(self) -> Sequence[Any]:
        """The population, in the order in which it acts."""
        return self._host.agents

    @property
    def open_questions(self) -> int:
        """Number of questions that the reasoner has not answered yet; any thread may look."""
        return self._ticks.open_questions

    def run(self, on_round: Callable[[WorldRound], object] | None = None) -> WorldResults:
        """Run the rounds that are left in an event loop of its own.

        The reasoner's connections belong to that event loop, so they are closed.

        Args:
            on_round: Called with every round as it ends.

        Raises:
            SimulationError: If it has been run before.
        """
        return asyncio.run(self._run_and_close(on_round))

    async def arun(self, on_round: Callable[[WorldRound], object] | None = None) -> WorldResults:
        """Run the rounds that are left; the async twin of `run`.

        Raises:
            SimulationError: If it has been run before.
        """
        if self._has_run:
            raise SimulationError("this run has been run: make a new one, with a new world")

        self._has_run = True
        with self.clock.bound():
            if not self.finished:
                self._begin()

            for number in range(len(self.finished) + 1, self.rounds + 1):
                self.finished.append(await self._round(number))
                if on_round is not None:
                    on_round(self.finished[-1])

            results = WorldResults(len(self.agents), tuple(self.finished))
            self._emit(RUN_ENDED, **results.totals())

        return results

    def snapshot(self) -> dict[str, Any]:
        """Return what the run is, between two rounds, as plain data; the log holds the rest.

        Raises:
            SimulationError: If a field holds what cannot be kept; names it.
        """
        budget = getattr(self.reasoner, "budget", None)
        now = self.clock.moment

        return {
            "moment": [now.time.isoformat(), now.round, now.tick],
            "spent": budget.to_dict() if isinstance(budget, Budget) else None,
            **self._fields(),
        }

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Go on where another run of the same options was.

        Args:
            snapshot: What `snapshot` returned there.
            events: Its log until then.

        Raises:
            SimulationError: If the snapshot is of another world or population.
        """
        self._host.end_setup(is_resumed=True)
        self._restore_fields(snapshot)

        time, *place = snapshot["moment"]
        self.clock.moment = Moment(datetime.fromisoformat(time), *place)
        budget = getattr(self.reasoner, "budget", None)
        if isinstance(budget, Budget) and snapshot["spent"] is not None:
            budget.restore(**snapshot["spent"])

        self._read_log(events)

    # Beginning

    def _populate(self, agents: int | Iterable[Agent]) -> dict[type, Kind]:
        given = self.world.populate(agents) if isinstance(agents, int) else agents
        classes = self._host.populate(given)
        seed = self._seed
        kinds = make_kinds(self.world, classes, self._parts, self._logger, self._count_transition)
        self._host.join(kinds)
        for kind in kinds.values():
            # one of each kind is enough: all have the same slots
            require_fit([kind.agents[0]._subject], kind.chart.definition)

        guests = [agent for agent in self.agents if isinstance(agent, Guest)]
        join(guests, partial(Lent, logger=self._logger, clock=self._count_transition, seed=seed))

        return kinds

    def _count_transition(self) -> float:
        # the charts ask for the time exactly once for each transition
        self._transitions += 1
        return self.clock.moment.seconds

    def _begin(self) -> None:
        charts = dict.fromkeys(kind.chart.name for kind in self._kinds.values())
        self._emit(
            RUN_STARTED,
            schema=SCHEMA_VERSION,
            chart=", ".join(charts),
            agents=len(self.agents),
            rounds=self.rounds,
            ticks_per_round=self.ticks_per_round,
            seed=self._seed,
            world=type(self.world).__name__,
            parameters=self._parameters(),
        )
        if active_logger(self._logger) is not None:
            for agent in self.agents:
                self._announce(agent)

        self._host.end_setup(is_resumed=False)

    def _announce(self, agent: Any) -> None:
        own = {
            name: getattr(agent, name)
            for name in type(agent).fields
            if name not in Agent.fields and name != "object"
        }
        self._emit(
            AGENT_JOINED,
            agent_id=agent.agent_id,
            chart=agent._chart.name,
            display_name=agent.name,
            state=state_text(agent._state),
            **({"attributes": identify(own)} if own else {}),
        )

    # Rounds

    async def _round(self, number: int) -> WorldRound:
        host, world = self._host, self.world
        self.clock.begin_round(number)
        host.begin_phase("")
        host.fires = None
        self._ticks.counts, self._transitions = Counts(), 0
        self._emit(ROUND_STARTED, round=number)
        with host.explaining(), drawing_nowhere_else():
            self._treat(number)
            world.round_begins()

        for _ in range(self.ticks_per_round):
            self.clock.advance()
            await self._ticks.run()
            # a policy never waits: let an interruption, and others in the event loop, have a turn
            await asyncio.sleep(0)

        host.begin_phase(ENDING)
        states = self._states()
        measures = self._measures()
        with host.explaining(), drawing_nowhere_else():
            world.round_ends()

        counts = self._ticks.counts
        summary = WorldRound(
            number,
            states,
            measures,
            len(self.agents) * self.ticks_per_round,
            self._transitions,
            counts.decisions_asked,
            counts.decisions_answered,
            dict(sorted(counts.timeouts.items())),
        )
        self._emit(ROUND_ENDED, **summary.to_dict())

        return summary

    def _treat(self, number: int) -> None:
        for name in self._treatments.get(number, ()):
            before = self._parameters()
            self._host.may_set_parameters = True
            try:
                getattr(self.world, name)()
            finally:
                self._host.may_set_parameters = False

            after = self._parameters()
            changed = {key: value for key, value in after.items() if value != before[key]}
            self._emit(TREATMENT_APPLIED, treatment=name, parameters=changed)

    def _states(self) -> dict[str, int]:
        found = Counter(state_text(agent._state) for agent in self.agents)
        texts = dict.fromkeys(
            state_text(state)
            for kind in self._kinds.values()
            for state in kind.chart.definition.states
        )

        return {text: found[text] for text in texts}

    def _measures(self) -> dict[str, Measured]:
        reason = "a measure only looks; let a hook change things, such as round_ends"
        # the fields are compared once, and show what no later checkpoint could keep, too
        before = None if self._has_been_checked else self._fields()
        with self._host.only_looking(reason), self._host.explaining():
            found = {name: self._measured(name) for name in self._parts.measures}

        if before is not None:
            self._has_been_checked = True
            if self._parts.measures and self._fields() != before:
                raise SimulationError(
                    f"a measure of {type(self.world).__name__} changes a field "
                    f"({', '.join(_differing(before, self._fields()))}): {reason}"
                )

        return found

    def _measured(self, name: str) -> Measured:
        value = getattr(self.world, name)()
        if value is None or (isinstance(value, (int, float)) and isfinite(value)):
            return value

        raise SimulationError(
            f"{type(self.world).__name__}.{name} must return a finite number, or None where there "
            f"is nothing to measure, got {value!r}"
        )

    # Keeping

    def _fields(self) -> dict[str, Any]:
        world = self.world
        code = Encoder(self.agents, type(world).__module__)
        kinds = [
            {
                "ids": [agent.agent_id for agent in kind.agents],
                "states": [agent._state.value for agent in kind.agents],
                "ticks": [agent._ticks_in_state for agent in kind.agents],
                "inboxes": self._inboxes(kind, code),
                "fields": {
                    name: code.column(kind.agents, read, name)
                    for name, read in kind.column_readers()
                },
            }
            for kind in self._kinds.values()
        ]
        of_world = {
            name: code.column([world], lambda each, name=name: getattr(each, name), name)[0]  # type: ignore[misc]
            for name, field in type(world).fields.items()
            if field.declared.kept
        }
        network = world._network

        return {
            "kinds": kinds,
            "world": of_world,
            "network": None if network is None else network.snapshot(),
            "things": code.things(),
        }

    def _inboxes(self, kind: Kind, code: Encoder) -> list[Any]:
        """Return the inboxes that are not empty, by the agent's place among its kind."""
        full = [place for place, agent in enumerate(kind.agents) if agent.inbox]
        messages = code.column(
            [kind.agents[place] for place in full], lambda agent: list(agent.inbox), "inbox"
        )

        return [list(pair) for pair in zip(full, messages, strict=True)]

    def _restore_fields(self, snapshot: Mapping[str, Any]) -> None:
        ids = [kept["ids"] for kept in snapshot["kinds"]]
        if ids != [[agent.agent_id for agent in kind.agents] for kind in self._kinds.values()]:
            raise SimulationError("the run to resume has other agents: give the same population")

        world = self.world
        code = Decoder(self.agents, type(world).__module__, snapshot["things"])
        for kind, kept in zip(self._kinds.values(), snapshot["kinds"], strict=True):
            _restore_kind(kind, kept, code)
        for name, value in snapshot["world"].items():
            object.__setattr__(world, name, code.value(value))
        if snapshot["network"] is not None:
            world.network.restore(snapshot["network"])

    def _read_log(self, events: Iterable[Event]) -> None:
        histories = {agent.agent_id: (agent, agent._state_history) for agent in self.agents}
        for event in self._remembered(events):
            name = event["event"]
            if name == TRANSITION:
                agent, history = histories[event["agent_id"]]
                # an object of another class keeps its history itself, or has none
                if isinstance(agent, Guest):
                    continue
                history.append(_record(type(agent).chart.state_type, event))
            elif name == ROUND_ENDED:
                self.finished.append(WorldRound.from_event(event))
            elif name.startswith(WORLD_EVENTS) and event["round"] > 0:
                # setup, which runs again, does itself what its events tell
                self.world.recall(event)

    def _remembered(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on; a reasoner that replays takes note of the decisions among them."""
        remember = getattr(self.reasoner, "remember", None)
        for event in events:
            if remember is not None and event["event"] == DECISION:
                remember(event)

            yield event

    # The rest

    def _parameters(self) -> dict[str, Any]:
        named = {name: getattr(self.world, name) for name in parameters_of(type(self.world))}
        return identify(named) or {}

    async def _run_and_close(self, on_round: Callable[[WorldRound], object] | None) -> WorldResults:
        try:
            return await self.arun(on_round)
        finally:
            close = getattr(self.reasoner, "close", None)
            if close is not None:
                await close()

    def _emit(self, event: str, **keys: Any) -> None:
        logger = active_logger(self._logger)
        if logger is not None:
            logger.info(event, **keys)


def _restore_kind(kind: Kind, kept: Mapping[str, Any], code: Decoder) -> None:
    members = {state.value: state for state in kind.chart.definition.states}
    for agent, text, ticks in zip(kind.agents, kept["states"], kept["ticks"], strict=True):
        agent._state, agent._ticks_in_state = members[text], ticks
        agent.inbox.clear()

    for name, column in kept["fields"].items():
        for agent, value in zip(kind.agents, column, strict=True):
            object.__setattr__(agent, name, code.value(value))
    for place, messages in kept["inboxes"]:
        kind.agents[place].inbox.extend(code.value(messages))


def _record(states: Any, event: Event) -> StateTransition:
    edge = _edge(states, event["from_state"], event["to_state"], event["trigger"])
    time = datetime.fromisoformat(event["timestamp"]).timestamp()
    return make_record(edge, time, event["context"])


@lru_cache(maxsize=1024)
def _edge(states: Any, source: str, target: str, trigger: str) -> Any:
    return shared_edge(states(source), states(target), trigger)


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of fields that differ between two snapshots."""
    names = [
        name
        for old, new in zip(before["kinds"], after["kinds"], strict=True)
        for name in old["fields"]
        if old["fields"][name] != new["fields"][name]
    ]
    names += [name for name in before["world"] if before["world"][name] != after["world"][name]]

    return names or [name for name in before if before[name] != after[name]]


def _counted(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise FieldValueError(f"{name} must be a whole number, 1 or more, got {value!r}")

    return value
