"""What the loop needs of a world's agents, implemented for `Agent` objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from itertools import compress, count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from prism.errors import (
    AgentError,
    DefinitionError,
    FieldTypeError,
    FieldValueError,
    SimulationError,
)
from prism.randomness import RandomStream
from prism.runlog import SimulatedClock
from prism.runs._lent import Lent
from prism.statechart import Statechart, StateTransition
from prism.statechart.inspection import require_fit
from prism.statechart.names import SCALARS, given_name, identify
from prism.statechart.states import state_text
from prism.statechart.transitions import append_record, make_record, shared_edge, trigger_text
from prism.telemetry.events import (
    AGENT_JOINED,
    ANSWER_DISCARDED,
    DECISION,
    POST_WEIGHED,
    ROUND_ENDED,
    TEXT_WRITTEN,
    TRANSITION,
)
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import EventLogger, active_logger, report
from prism.worlds._agent import (
    DECISIONS,
    HISTORY_DEPTH,
    STEPS,
    Agent,
    AgentStream,
)
from prism.worlds._agent_set import NOBODY
from prism.worlds._asking import Answerers, AsTheyCome, Event, RelayLogger
from prism.worlds._guest import OBJECT, Guest, Proxy, as_agent, join
from prism.worlds._host import RunHost
from prism.worlds._kinds import NEVER, Kind, Parts, charts_of, make_kinds, triggers_of
from prism.worlds._notes import kept_notes, restore_notes
from prism.worlds._overlap import OpenTicks, OverlapTicks
from prism.worlds._parameters import parameters_told
from prism.worlds._people import AgentTable
from prism.worlds._pictures import looks
from prism.worlds._results import Measured, WorldRound
from prism.worlds._snapshot import Decoder, Encoder
from prism.worlds._spaces import Plane, Space
from prism.worlds._ticks import Counts, Ticks
from prism.worlds._together import TogetherTicks
from prism.worlds._world import World, defines

if TYPE_CHECKING:
    from prism.statechart._hierarchy import Hierarchy

_MOST_DRAWN = 10_000
"""The largest number of agents whose picture is logged."""

_OF_AN_AGENT = frozenset(
    (AGENT_JOINED, TRANSITION, DECISION, ANSWER_DISCARDED, TEXT_WRITTEN, POST_WEIGHED)
)
"""Events that are logged only for the agents that the log covers."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many agents a log covers.

    Args:
        most: The number of agents in the sample.
        above: The largest population that it covers completely.
    """

    most: int
    above: int = 0

    def of(self, agents: int) -> int | None:
        """Return how many agents of a population the log covers, or None for all."""
        return min(self.most, agents) if agents > self.above else None


@dataclass(frozen=True, slots=True)
class Setting:
    """The parts of a run besides its agents.

    Args:
        world: The world.
        parts: The marked methods of its class.
        seed: Seed of every random number.
        ticks_per_round: Ticks in a round.
        clock: The run's clock.
        logger: Where the run's events go.
        answerers: The reasoner and the writer.
        sampling: How many agents the log covers, or None for all.
    """

    world: World[Any]
    parts: Parts
    seed: int
    ticks_per_round: int
    clock: SimulatedClock
    logger: EventLogger | None
    answerers: Answerers
    sampling: Sampling | None = None


class SampledLogger(RelayLogger):
    """Passes on the events of some agents, and all events that belong to no agent.

    Args:
        given: Where the events finally go.

    Attributes:
        logged: Ids of the agents whose events are passed on; None for all.
    """

    def __init__(self, given: EventLogger | None) -> None:
        self.logged: frozenset[str] | None = None
        self._given = given

    def _say(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        logged = self.logged
        if logged is None or event not in _OF_AN_AGENT or keys["agent_id"] in logged:
            report(self._given, level, event, **keys)


class AgentStage:
    """The agents of a run: how they begin, act, are counted and are kept.

    The loop knows rounds, ticks, treatments and measures. Only the stage knows the agents' classes,
    what they do in a tick and how their answers are applied.

    Args:
        setting: The other parts of the run.

    Attributes:
        host: The run, as its agents and its world see it.
        has_fields: True, since agents have the fields that their class declares.
        logger: Where events currently go.
        ticks: What runs the ticks, from the end of `setup` on.
    """

    has_fields: bool = True

    def __init__(self, setting: Setting) -> None:
        world = setting.world
        if world.overlap:
            _require_overlapping(type(world))

        self._setting = setting
        self._world = world
        self._kinds: dict[type, Kind] = {}
        self._ids: list[str] = []
        self._turns = 0
        self.ticks: Ticks
        given = world._prism_logger(setting)
        self._sampled: SampledLogger | None = None
        if setting.sampling is not None:
            given = self._sampled = SampledLogger(given)
        # answers that come at once leave no tick open
        self._asking: AsTheyCome | None = None
        if world.overlap and setting.answerers.concurrency:
            self._asking = AsTheyCome(setting.answerers, given, setting.clock)
        # with open ticks, events wait there for those of earlier decisions
        self.logger: EventLogger | None = given if self._asking is None else self._asking.logger
        self.host: RunHost = RunHost(
            world,
            setting.seed,
            setting.ticks_per_round,
            setting.clock,
            setting.answerers,
            self.logger,
        )
        self.host.has_until = defines(type(world), "until")

    # Beginning

    def populate(self, agents: int | Iterable[Any] | AgentTable) -> None:
        """Take the given agents, or those that the world makes by number or from a table."""
        world = self._world
        world._prism_begin(self._setting, self.host)
        classes = self._take_in(world._prism_invite(population(world, agents)))
        self._kinds = make_kinds(
            self._world, classes, self._setting.parts, self.logger, self.host.count_transition
        )
        self._join_all()
        if (most := self.logged_agents()) is not None:
            self.tell_of(agent.agent_id for agent in self.host.canonical()[:most])
        for kind in self._kinds.values():
            # every agent has a state, and agents of a kind have the same slots, so one of each kind
            # is enough
            if kind.chart.definition.needs or issubclass(kind.cls, Guest):
                require_fit([kind.agents[0]._subject], kind.chart.definition)

        guests = [agent for agent in self.host.agents if isinstance(agent, Guest)]
        self._lend(guests)
        self.has_fields = bool(guests) or not issubclass(classes[0], Proxy)
        world._prism_joined_all()

    def _take_in(self, agents: Iterable[Any]) -> list[type[Agent]]:
        """Add the population, and return its kinds in the order in which they appear.

        Raises:
            AgentError: If one of them is not an agent, or is already in a run.
            FieldValueError: If there are no agents, or two have the same id.
        """
        numbers: dict[type, int] = {}
        taken: dict[str, Agent] = {}
        twice: set[str] = set()
        guests: dict[Any, type] = {}
        for each in agents:
            agent = each
            if not isinstance(each, Agent) or isinstance(each, Guest):
                agent = as_agent(each, f"{type(self._world).__name__}.populate", guests)
            if agent._host is not None:
                raise AgentError(
                    f"agent {agent.agent_id!r} is in the population twice, or in another run: "
                    "make new agents"
                )

            kind = type(agent)
            numbers[kind] = numbers.get(kind, 0) + 1
            _name(agent, numbers[kind])
            agent._host = self.host
            if taken.setdefault(agent.agent_id, agent) is not agent:
                twice.add(agent.agent_id)

        _require_distinct(taken, twice)

        self.host.has_guests = bool(guests)
        if guests:
            _require_turns(self._world)

        self.host.agents[:] = taken.values()

        return list(numbers)

    def _join_all(self) -> None:
        """Give every agent its chart, its state, and the fields without a value."""
        host, kinds = self.host, self._kinds
        host.kinds = list(kinds.values())
        host.charts = charts_of(self._world, kinds)
        host.triggers = triggers_of([*host.charts, *(kind.definition for kind in host.kinds)])
        host.has_proxies = any(issubclass(cls, Proxy) for cls in kinds)
        for place, agent in enumerate(host.agents):
            kind = kinds[type(agent)]
            kind.agents.append(agent)
            agent._kind, agent._chart, agent._place = kind, kind.chart, place
            agent._since = agent._member = 0
            agent._due, agent._keys = NEVER, None
            # state, history and memory of a proxy are those of its object
            if not isinstance(agent, Proxy):
                begin = agent._begin_state
                agent._state = kind.chart.definition.initial if begin is None else begin
                agent._state_history = []
                agent.state_memory = None

            agent._random = AgentStream(agent, STEPS)
            agent._decision_random = AgentStream(agent, DECISIONS)
            agent._notes = agent._chart_random = None
            agent.neighbours, agent._inbox = NOBODY, None
            self._fill_in(agent)

    def _fill_in(self, agent: Any) -> None:
        for name, field in type(agent).fields.items():
            if name in agent._given or name in Agent.fields:
                continue
            if field.declared.is_required:
                raise AgentError(
                    f"{type(agent).__name__}.{name} has no value: give it one, "
                    f"{type(agent).__name__}({name}=...), or a default in the class"
                )

            def stream(name: str = name) -> RandomStream:
                return RandomStream(self._setting.seed, "field", agent.agent_id, name)

            try:
                value = field.declared.value(stream)
            except Exception as error:
                error.add_note(f"for {type(agent).__name__}.{name} of {agent.agent_id!r}")
                raise

            setattr(agent, name, value)

    def _lend(self, guests: Sequence[Any]) -> None:
        """Give objects of other classes access to what they need of the run."""
        if guests:
            seed = None if self._world._prism_is_alone else self._setting.seed
            clock = self.host.count_transition
            join(guests, partial(Lent, logger=self.logger, clock=clock, seed=seed))

    def ready(self) -> None:
        """Prepare the ticks, after `setup` has changed the agents."""
        self._ids = [agent.agent_id for agent in self.host.agents]
        arguments = self._world, self.host, self._setting.answerers, self.logger
        if self._asking is not None:
            self.ticks = OpenTicks(*arguments, self._asking)
        elif self._world.overlap:
            self.ticks = OverlapTicks(*arguments)
        else:
            self.ticks = (TogetherTicks if self._world.together else Ticks)(*arguments)

    def logged_agents(self) -> int | None:
        """Return how many agents the log covers, or None for all."""
        sampling = self._setting.sampling
        return None if sampling is None else sampling.of(len(self.host.agents))

    def tell_of(self, ids: Iterable[str]) -> None:
        """Restrict the log to some agents."""
        assert self._sampled is not None
        self._sampled.logged = self.host.logged = frozenset(ids)

    def describe(self) -> dict[str, Any]:
        """Return charts, number of agents, and the world with its parameters."""
        charts = dict.fromkeys(kind.chart.definition.name for kind in self._kinds.values())
        count = len(self.host.agents)
        nested = {
            kind.chart.definition.name: tree
            for kind in self._kinds.values()
            if (tree := kind.chart.definition.tree) is not None
        }
        told = {
            "charts": {name: _inside(tree) for name, tree in nested.items()},
            "arrows": {name: _arrows(tree) for name, tree in nested.items()},
        }
        logged = self.logged_agents()
        return self._world._prism_described(
            {
                "chart": ", ".join(charts),
                "agents": count,
                **({} if logged is None else {"logged_agents": logged}),
                "world": type(self._world).__name__,
                "parameters": parameters_told(self._world),
                **(told if nested else {}),
            }
        )

    def announce(self) -> None:
        """Log every agent, and what existed before the first round."""
        logger = active_logger(self.logger)
        if logger is not None:
            self._announce(self.host.agents, logger)

        self._world._prism_announce()

    def enter(self) -> None:
        """Run the entry actions of the agents' initial states, if their charts have any."""
        kinds = [
            kind
            for kind in self._kinds.values()
            if kind.definition.tree is not None and not issubclass(kind.cls, Proxy)
        ]
        if not kinds:
            return

        host = self.host
        everybody = host.agents if self._world.order == "listed" else host.canonical()
        entering = [agent for agent in everybody if agent._kind in kinds]
        try:
            with host.explaining():
                for host.acting in entering:
                    host.acting._chart.enter(host.acting)
        finally:
            host.acting = None

    def _announce(self, agents: Iterable[Any], logger: EventLogger) -> None:
        for agent in agents:
            told = self._world._prism_joined(agent) or _joined(agent)
            logger.info(AGENT_JOINED, agent_id=agent.agent_id, **told)

    # Rounds

    def begin_round(self) -> None:
        """Reset the counts, and begin new random streams."""
        self.host.begin_round()
        self.ticks.counts, self._turns = Counts(), 0
        self._world._prism_begin_round()

    async def tick(self) -> None:
        """Give a turn to every agent that has something to do."""
        host = self.host
        self._world._prism_begin_tick()
        self._turns += len(host.agents) - len(host.gone | host.asleep)
        await self.ticks.run()

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state."""
        # a single agent knows its own state, and its chart may have hundreds of states
        if self._world._prism_is_alone:
            return {state_text(self.host.agents[0]._state): 1}

        found: dict[str, int] = {}
        for kind in self._kinds.values():
            for state, number in self._counts_of(kind).items():
                text = state_text(state)
                found[text] = found.get(text, 0) + number

        return found

    def _counts_of(self, kind: Kind) -> Mapping[Any, int]:
        """Return the number of agents of a kind in each of its states."""
        gone = self.host.gone
        if not gone and not issubclass(kind.cls, Proxy):
            return kind.counted()

        there = Counter(agent._state for agent in kind.agents if agent._place not in gone)
        return {state: there[state] for state in kind.counted()}

    async def end_round(self) -> None:
        """Run the last step of a round for every agent, if the world has one."""
        step = self._world._prism_last_step()
        if step is not None:
            assert isinstance(self.ticks, OverlapTicks)
            await self.ticks.last_steps(step)

    def summary(
        self, number: int, states: Mapping[str, int], measures: Mapping[str, Measured]
    ) -> Any:
        """Return the summary of a round."""
        counts = self.ticks.counts
        summary = WorldRound(
            number,
            states,
            measures,
            self._turns,
            self.host.transitions,
            counts.decisions_asked,
            counts.decisions_answered,
            dict(sorted(self.host.timeouts.items())),
            dict(sorted(counts.texts.items())),
            counts.fallbacks,
            counts.fallback_examples,
            self.host.stopped,
        )

        return self._world._prism_summary(summary)

    def picture(self, *, first: bool) -> dict[str, Any]:
        """Return the positions and drawings of the agents, or nothing without a picture."""
        agents, world = self.host.agents, self._world
        if len(agents) > _MOST_DRAWN:
            return {}

        fields = (getattr(world, name) for name in type(world).fields)
        places = next((each for each in fields if isinstance(each, (Space, Plane))), world._network)
        told = {} if places is None else places.pictured(agents, first=first)
        if (look := self._setting.parts.picture) is not None:
            told |= looks(world, look, agents)

        return {**told, **self._pictured(first=first)} if told else {}

    def _pictured(self, *, first: bool) -> dict[str, Any]:
        """Return the states of all agents; the first time, also their ids."""
        gone = self.host.gone
        agents = self.host.agents
        states = [None if each._place in gone else each._state for each in agents]
        # few differ; by identity, since equal states of two charts may have different texts
        distinct = {id(state): state for state in states if state is not None}
        texts = dict.fromkeys(map(state_text, distinct.values()))
        names = {text: place for place, text in enumerate(texts)}
        places = {key: names[state_text(state)] for key, state in distinct.items()}
        ids = {"agent_ids": [agent.agent_id for agent in agents]} if first else {}

        return {
            "state_names": [*names],
            "agent_states": [places.get(id(state)) for state in states],
            **ids,
        }

    # Keeping

    def snapshot(self, code: Encoder) -> dict[str, Any]:
        """Return the agents' states, inboxes and fields, by kind.

        Raises:
            SimulationError: If an agent has another id than before.
        """
        for was, agent in zip(self._ids, self.host.agents, strict=True):
            if agent.agent_id != was:
                raise SimulationError(
                    f"the agent_id of {was!r} has become {agent.agent_id!r}, by which a resume "
                    "would not find it: change its name"
                )

        kinds = [
            {
                "ids": [agent.agent_id for agent in kind.agents],
                "states": [agent._state.value for agent in kind.agents],
                "ticks": [agent.ticks_in_state for agent in kind.agents],
                **_kept_histories(kind, self.host.logged),
                **held,
            }
            for kind, held in zip(self._kinds.values(), self.held(code), strict=True)
        ]

        return {"kinds": kinds}

    def held(self, code: Encoder) -> list[dict[str, Any]]:
        """Return what the user's code sets, by kind: the agents' inboxes, notes and fields."""
        return [
            {
                "inboxes": self._inboxes(kind, code),
                **kept_notes(kind.agents),
                **_kept_memories(kind),
                "fields": {
                    name: code.column(kind.agents, read, name, is_new=issubclass(kind.cls, Proxy))
                    for name, read in kind.column_readers()
                },
            }
            for kind in self._kinds.values()
        ]

    def restore(self, snapshot: Mapping[str, Any], code: Decoder) -> None:
        """Restore the agents from the snapshot of another run.

        Raises:
            SimulationError: If the snapshot is of another population.
        """
        ids = [kept["ids"] for kept in snapshot["kinds"]]
        if ids != [[agent.agent_id for agent in kind.agents] for kind in self._kinds.values()]:
            raise SimulationError(
                "the run to resume has different agents: give the same population"
            )

        for kind, kept in zip(self._kinds.values(), snapshot["kinds"], strict=True):
            _restore_kind(kind, kept, code, self.host.ticks)
        self.ticks.roster.rebuild(self.host.ticks)

    def read_log(self, events: Iterable[Event]) -> list[Any]:
        """Read histories from the log, and return the rounds that had ended."""
        world = self._world
        finished = []
        histories = {
            agent.agent_id: (agent._chart, history, _depth_of(agent))
            for agent in self.host.agents
            if (history := _history_of(agent)) is not None
        }
        for event in events:
            world._prism_recall(event)
            if event["event"] == TRANSITION:
                if event["agent_id"] in histories:
                    chart, history, depth = histories[event["agent_id"]]
                    append_record(history, _record(chart, event), depth)
            elif event["event"] == ROUND_ENDED:
                finished.append(world._prism_summary_of(event))

        world._prism_recalled()

        stopped = getattr(finished[-1], "stopped", None) if finished else None
        self.host.stopped = None if stopped is None else dict(stopped)

        return finished

    def _inboxes(self, kind: Kind, code: Encoder) -> list[Any]:
        """Return the inboxes that are not empty, by the agent's place among its kind."""
        inboxes = map(attrgetter("_inbox"), kind.agents)
        full = [*compress(count(), inboxes)]
        messages = code.column(
            [kind.agents[place] for place in full], lambda agent: list(agent.inbox), "inbox"
        )

        return [list(pair) for pair in zip(full, messages, strict=True)]


def _require_turns(world: World[Any]) -> None:
    """Refuse objects of other classes in a world in which they would have no turn of their own.

    Raises:
        AgentError: If it is such a world.
    """
    found = type(world).__name__
    if world.together or world.overlap:
        raise AgentError(
            f"{found}: objects of other classes take turns one after another, so leave out "
            "together and overlap"
        )
    if world.activation in ("pair", "rate"):
        raise AgentError(
            f"{found}: objects of other classes take turns alone and have no rate, so leave out  "
            f"activation = {world.activation!r}"
        )


def _require_distinct(taken: Collection[str], twice: Iterable[str]) -> None:
    if repeated := ", ".join(sorted(twice)):
        raise FieldValueError(f"agent ids must be unique, used more than once: {repeated}")
    if not taken:
        raise FieldValueError("a run needs at least one agent")


def population(world: World[Any], agents: int | Iterable[Any] | AgentTable) -> Iterable[Any]:
    """Return the agents of a run, which may be given as objects, a number or a table.

    Raises:
        FieldTypeError: If they are something else.
    """
    # in Python, True counts as 1, and a text is a sequence of letters
    if isinstance(agents, (bool, str)) or not isinstance(agents, (int, Iterable, AgentTable)):
        raise FieldTypeError(
            "agents must be a whole number, the agents themselves, or an AgentTable of a file, "
            f"got {agents!r}"
        )

    made: Iterable[Any]
    if isinstance(agents, AgentTable):
        made = world._from_table(agents)
    else:
        made = world._prism_populated(agents) if isinstance(agents, int) else agents

    return made


def _name(agent: Agent, number: int) -> None:
    """Give an agent its id and name, by default from its kind and number."""
    own = given_name(agent.object) if isinstance(agent, Guest) else None
    own = own or agent._given.get("agent_id")
    if not isinstance(own, str | None):
        raise FieldTypeError(f"{type(agent).__name__}.agent_id must be a text, got {own!r}")
    agent.agent_id = own or f"{type(agent).__name__.lower()}_{number}"
    agent.name = agent._given.get("name") or agent.agent_id


def _joined(agent: Any) -> dict[str, Any]:
    """Return what ``agent.joined`` says about an agent."""
    told = {
        "chart": agent._kind.definition.name,
        "display_name": agent.name,
        "state": state_text(agent._state),
    }
    own, is_plain = {}, True
    for name in _own_fields(agent.__class__):
        value = own[name] = getattr(agent, name)
        is_plain = is_plain and type(value) in SCALARS
    if agent._attributes:
        own |= agent._attributes
        is_plain = False
    if own:
        # most are plain already, which takes half as long to see as to make them so
        told["attributes"] = own if is_plain else identify(own)

    return told


@lru_cache(maxsize=256)
def _own_fields(cls: type[Agent]) -> tuple[str, ...]:
    """Return the fields that a class declares; for the proxy of an object, only its id."""
    return tuple(name for name in cls.fields if name not in Agent.fields and name != OBJECT)


def _require_overlapping(cls: type[World[Any]]) -> None:
    """Refuse features that are impossible in a world whose agents do not wait for each other.

    Raises:
        DefinitionError: If the world uses one.
    """
    if cls.overlap not in (True, "alone"):
        raise DefinitionError(
            f"{cls.__name__}.overlap must be True, False or 'alone', got {cls.overlap!r}"
        )
    hooks = [name for name in ("tick_begins", "tick_ends") if defines(cls, name)]
    if hooks or cls.together:
        raise DefinitionError(
            f"{cls.__name__} has overlap = True, so its ticks have no common beginning and end: "
            f"leave out {', '.join(hooks) or 'together'}, or overlap"
        )


def _restore_kind(kind: Kind, kept: Mapping[str, Any], code: Decoder, now: int) -> None:
    members = {text: kind.chart.state_of(text) for text in set(kept["states"])}
    for agent, text, ticks in zip(kind.agents, kept["states"], kept["ticks"], strict=True):
        agent._state, agent._since = members[text], now - ticks
        agent._inbox = None
    for agent, memory in zip(kind.agents, kept.get("memories", ()), strict=False):
        agent._subject.state_memory = memory

    for name, column in kept["fields"].items():
        for agent, value in zip(kind.agents, column, strict=True):
            object.__setattr__(agent, name, code.value(value))
    for place, records in kept.get("histories", ()):
        history = _history_of(kind.agents[place])
        history.extend(_kept_record(kind.chart, *record) for record in records)
    restore_notes(kind.agents, kept)
    for place, messages in kept["inboxes"]:
        kind.agents[place].inbox.extend(code.value(messages))


def _inside(tree: Hierarchy) -> dict[str, list[str]]:
    """Return the states inside each composite state."""
    nodes = tree.tree.nodes
    return {
        state_text(node.state): [state_text(nodes[each].state) for each in node.children]
        for node in nodes[1:]
        if node.children
    }


def _arrows(tree: Hierarchy) -> list[list[str]]:
    """Return source, target and trigger of each transition; a history counts as its composite."""
    arrows: dict[tuple[str, str, str], None] = {}
    for arc in tree.arcs:
        trigger = trigger_text(arc.written.trigger)
        for target in arc.targets or (arc.source,):
            number = target if isinstance(target, int) else target.composite
            arrows[tree.texts[arc.source - 1], tree.texts[number - 1], trigger] = None

    return [*map(list, arrows)]


def _kept_memories(kind: Kind) -> dict[str, Any]:
    """Return what charts remember, for a checkpoint."""
    if not kind.definition.hierarchy.remembers:
        return {}

    return {"memories": [deepcopy(agent._subject.state_memory) for agent in kind.agents]}


def _history_of(agent: Any) -> Any:
    """Return an agent's history, or that of its object; None for a guest, which keeps its own."""
    if isinstance(agent, Guest):
        return None

    return agent._subject.state_history if isinstance(agent, Proxy) else agent._state_history


def _depth_of(agent: Any) -> int | None:
    """Return how many transitions an agent remembers; None if its object decides that."""
    return None if isinstance(agent, Proxy) else HISTORY_DEPTH


def _kept_histories(kind: Kind, logged: frozenset[str] | None) -> dict[str, Any]:
    """Return the histories that a checkpoint keeps: those of agents that the log does not cover."""
    if logged is None or issubclass(kind.cls, Guest):
        return {}

    kept = [
        [place, list(map(_as_kept, history))]
        for place, agent in enumerate(kind.agents)
        if agent.agent_id not in logged and (history := _history_of(agent))
    ]
    return {"histories": kept} if kept else {}


def _as_kept(record: StateTransition) -> list[Any]:
    ends = state_text(record.from_state), state_text(record.to_state)
    return [*ends, record.trigger, record._time, record.context]


def _record(chart: Statechart[Any], event: Event) -> StateTransition:
    time = datetime.fromisoformat(event["timestamp"]).timestamp()
    ends = event["from_state"], event["to_state"]
    return _kept_record(chart, *ends, event["trigger"], time, event["context"])


def _kept_record(
    chart: Statechart[Any], source: str, target: str, trigger: str, time: float, context: Any
) -> StateTransition:
    return make_record(_edge(chart, source, target, trigger), time, context)


@lru_cache(maxsize=1024)
def _edge(chart: Statechart[Any], source: str, target: str, trigger: str) -> Any:
    return shared_edge(chart.state_of(source), chart.state_of(target), trigger)
