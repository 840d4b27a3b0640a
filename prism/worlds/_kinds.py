"""The parts of a world's class: kinds of agents, their steps, measures and treatments."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from math import floor, isfinite
from operator import attrgetter, methodcaller
from time import time
from typing import Any, get_type_hints

from prism._faults import place_of_method
from prism.errors import FieldValueError
from prism.statechart import Definition, Statechart
from prism.statechart.states import state_text
from prism.statechart.transitions import DEFAULT_NAME, TIMEOUT
from prism.telemetry.loggers import EventLogger
from prism.worlds._agent import Agent
from prism.worlds._agent_set import leaves_in
from prism.worlds._charts import states_of, targets_of, unknown_among
from prism.worlds._fields import refuse_all, slot_of, type_problems
from prism.worlds._guest import KEPT, Guest, Proxy, act, timed
from prism.worlds._regions import EveryState, Listing, Turns
from prism.worlds._world import (
    ACTIVATIONS,
    MEASURE,
    ORDERS,
    PICTURE,
    RATE,
    STEP,
    TREATMENT,
    World,
    kinds_of,
)

Step = Callable[..., Any]
Rate = float | str | Callable[[Any, Any], float]
"""A number, the name of a field of the world, or a function that returns the rate of an agent."""

NEVER: int = 2**63
"""A tick that no run reaches."""

_MARKS = (STEP, MEASURE, TREATMENT, PICTURE)
_HOOKS = (
    "populate",
    "setup",
    "round_begins",
    "tick_begins",
    "tick_ends",
    "round_ends",
    "until",
)


@dataclass(frozen=True, slots=True)
class Channel:
    """An event that happens to agents of a kind in a state at a rate, in events per round.

    Args:
        kind: The kind.
        state: The state.
        step: The event.
        rate: Its rate.
    """

    kind: Kind
    state: Any
    step: Step
    rate: Rate


@dataclass(slots=True, eq=False)
class Kind:
    """A kind of agents in a run.

    Args:
        cls: Its class.
        chart: The class's chart, with the run's logger and clock.
        steps: The step for each state that has one.
        due_after: Ticks after which an agent times out, by state. Empty if the chart's own ticks
            decide.
        agents: Its agents, in their order.
        channels: Events that happen at rates.
        counts: Number of agents in each state.
        members: The agents in each state, if rates draw from them.

    Attributes:
        state_type: The enum of its states.
        visited: States in which agents have something to do in every tick.
        has_limits: Whether there are time-outs.
        has_regions: Whether an agent may be in several states at once.
        is_ticked: Whether the chart itself needs every tick, because it has timers, rates,
            eventless transitions or regions.
        definition: The chart's definition.
    """

    cls: type[Agent]
    chart: Statechart[Any]
    steps: dict[Any, Step]
    due_after: Mapping[Any, int]
    agents: list[Any] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    counts: dict[Any, int] = field(default_factory=dict)
    members: dict[Any, Any] = field(default_factory=dict)
    state_type: type = field(init=False)
    visited: frozenset[Any] = field(init=False)
    has_limits: bool = field(init=False)
    has_regions: bool = field(init=False)
    is_ticked: bool = field(init=False)
    definition: Definition[Any] = field(init=False)
    _unguarded: Mapping[Any, Mapping[str, tuple[Any, ...]]] = field(init=False)
    _targets: dict[str, KeysView[Any]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Find the states in which there is something to do or to decide."""
        self.definition = self.chart.definition
        self._unguarded = {} if issubclass(self.cls, Proxy) else _unguarded(self.definition)
        self.state_type = self.definition.state_type
        self.has_limits = bool(self.due_after)
        self.has_regions = _has_regions(self.chart)
        self.is_ticked = _is_ticked(self.cls, self.chart)
        # an agent whose chart is ticked has a turn in every tick, whatever its state
        self.visited = frozenset(() if self.is_ticked else self.steps)

    def targets_of(self, agent: Any, trigger: str, context: Any) -> tuple[Any, ...]:
        """Return the targets among which an agent must decide, or none."""
        state = agent._state
        row = self._unguarded.get(state)
        if row is not None and trigger in row:
            return row[trigger]

        if state not in self.definition.decision_states and not (
            self.has_regions and self.chart.decides(state)
        ):
            return ()

        return tuple(self.chart.enabled_targets(agent._subject, trigger, context))

    def ever_reached(self, trigger: str) -> KeysView[Any]:
        """Return the leaves to which transitions of a trigger lead from anywhere, guarded or not.

        Weights are commonly written once, for whatever state an agent is in.
        """
        found = self._targets.get(trigger)
        if found is None:
            targets = targets_of(self.definition, trigger)
            found = self._targets[trigger] = dict.fromkeys(targets).keys()

        return found

    def begin_counting(self) -> None:
        """Begin with no agent in any state."""
        # there may be thousands of configurations, few of which ever occur
        states = self.definition.states
        self.counts = Counter() if self.has_regions else dict.fromkeys(states, 0)

    def count(self, state: Any) -> int:
        """Return how many of its agents are in a state, or in one nested inside."""
        found = self.counts.get(state)
        if found is not None:
            return found

        leaves = self.definition.leaves_of(state)
        if not self.has_regions:
            return sum(self.counts[leaf] for leaf in leaves)

        counts = self.counts.items()
        return sum(number for each, number in counts if not leaves_in(each).isdisjoint(leaves))

    def counted(self) -> dict[Any, int]:
        """Return the number of agents in each state or, with regions, in each occupied state."""
        if not self.has_regions:
            return self.counts

        # in the order of the chart, since the order in which they occurred is not kept
        found = sorted(filter(self.counts.get, self.counts), key=self._place_of)
        return {state: self.counts[state] for state in found}

    def _place_of(self, state: Any) -> tuple[int, ...]:
        rows = self.chart._nested
        assert rows is not None
        return rows.place(state).leaves

    def begin_listing(self) -> None:
        """Begin with empty lists of the agents in each state."""
        if self.has_regions:
            self.members = {channel.state: Listing() for channel in self.channels}
        else:
            self.members = {state: [] for state in self.definition.states}

    def listings_in(self, state: Any) -> list[Listing]:
        """Return the lists that contain an agent in a state of a chart with regions."""
        return [self.members[each] for each in self.chart.active(state) if each in self.members]

    def column_readers(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yield the fields that a checkpoint keeps, each with its reader."""
        if issubclass(self.cls, Proxy):
            yield KEPT, attrgetter(KEPT)
            return

        for name in self.cls.fields:
            if name not in Agent.fields:
                yield name, slot_of(self.cls, name).__get__


@dataclass(frozen=True, slots=True)
class Parts:
    """The marked methods of a world's class.

    Args:
        steps: Steps, with their states.
        measures: Measures by name.
        treatments: Rounds of treatments by name, or 0 for those that runs must ask for.
        picture: The method that defines how an agent is drawn, if there is one.
    """

    steps: Sequence[tuple[str, Step, tuple[Any, ...]]]
    measures: Sequence[str]
    treatments: Mapping[str, int]
    picture: str | None = None


@lru_cache(maxsize=256)
def parts_of(cls: type[World[Any]]) -> Parts:
    """Return the marked methods of a world's class.

    Raises:
        DefinitionError: If marked methods cannot work; the message lists them all.
    """
    steps, measures, pictures, treatments = [], [], [], {}
    problems = [*type_problems(cls), *_activation_problems(cls)]
    for name, method in methods_of(cls):
        problems += _method_problems(cls, name, method)
        if hasattr(method, STEP):
            steps.append((name, method, getattr(method, STEP)))
        if hasattr(method, MEASURE):
            measures.append(name)
        if hasattr(method, PICTURE):
            pictures.append(name)
        if hasattr(method, TREATMENT):
            treatments[name] = getattr(method, TREATMENT)

    problems += [
        f"{cls.__name__}.{name} is a field of a world: measure it with a method that returns "
        f"self.{name}"
        for name, field in cls.fields.items()
        if field.declared.is_measured
    ]
    if len(pictures) > 1:
        problems.append(f"{cls.__name__} has several pictures: {', '.join(pictures)}")
    refuse_all(problems)

    return Parts(steps, measures, treatments, *pictures)


def measures_of(cls: Any) -> dict[str, Callable[[Any], Any]]:
    """Return a reader for each measure of a kind of agents: its fields, then its methods."""
    fields = {
        name: slot_of(cls, name).__get__
        for name, field in getattr(cls, "fields", {}).items()
        if field.declared.is_measured
    }
    methods = {
        name: methodcaller(name) for name, method in methods_of(cls) if hasattr(method, MEASURE)
    }

    return {**fields, **methods}


def make_kinds(
    world: World[Any],
    classes: Sequence[type[Agent]],
    parts: Parts,
    logger: EventLogger | None,
    clock: Callable[[], float],
) -> dict[type, Kind]:
    """Return the kinds of a population, each with its chart and its steps.

    Raises:
        DefinitionError: If a kind has no chart, or charts and steps do not match; the message lists
            all problems.
    """
    refuse_all([problem for cls in classes for problem in _kind_problems(cls)])
    refuse_all(list(_meaning_problems(world, classes)))
    by_class = {cls: _own_steps(cls) for cls in classes}
    by_rate = world.activation == "rate"
    given = [
        _give_step(by_class, type(world).__name__, *step, by_rate=by_rate) for step in parts.steps
    ]
    refuse_all([problem for each in given for problem in each])

    return {
        cls: _kind(cls, by_class[cls], parts, logger, clock, by_rate=by_rate) for cls in classes
    }


def _kind(
    cls: type[Agent],
    steps: dict[Any, Step],
    parts: Parts,
    logger: EventLogger | None,
    clock: Callable[[], float],
    *,
    by_rate: bool,
) -> Kind:
    chart = cls.chart.bound(chart_name(cls), logger, clock)
    steps = {} if by_rate else _timed_steps(cls, _by_leaf(cls, steps))
    kind = Kind(cls, chart, steps, _limits_of(cls))
    if by_rate:
        kind.channels += [
            Channel(kind, each, method, getattr(method, RATE))
            for _, method, states in parts.steps
            if issubclass(cls, _kind_wanted(method))
            for state in states
            for each in _listed_in(kind, state)
        ]
        kind.channels += _channels_of_chart(kind)

    return kind


def triggers_of(charts: Iterable[Definition[Any]]) -> frozenset[str] | None:
    """Return the triggers that any of several charts has; None if one need not name them all."""
    found: set[str] = set()
    for chart in charts:
        if chart.hierarchy.descriptors:
            return None
        found.update(each.trigger for each in chart.transitions)
        found.update(chart.hierarchy.triggers)

    return frozenset(found)


def charts_of(world: World[Any], classes: Iterable[type[Agent]]) -> list[Definition[Any]]:
    """Return the charts of a population's kinds, and of those that the world's class names."""
    every = dict.fromkeys([*classes, *kinds_of(type(world))])
    charts = (getattr(cls, "chart", None) for cls in every)
    return [chart.definition for chart in charts if isinstance(chart, Statechart)]


def _meaning_problems(world: World[Any], classes: Sequence[type[Agent]]) -> Iterator[str]:
    """Yield what is wrong with the keys of ``meanings``."""
    if not world.meanings:
        return

    charts = charts_of(world, classes)
    # by their texts, since prompts contain those
    known = {state_text(each) for chart in charts for each in states_of(chart)}
    for key in world.meanings:
        if not {state_text(each) for each in leaves_in(key)} <= known:
            owner = type(world).__name__
            yield f"{owner}.meanings has the unknown state {unknown_among(key, charts)}"


def _listed_in(kind: Kind, state: Any) -> Sequence[Any]:
    """Return the states under which agents in a state, or nested inside it, are listed."""
    leaves = kind.definition.leaves_of(state)
    # in several regions of a state, an agent is in several of its leaves
    return (state,) if kind.has_regions and leaves else leaves


def _channels_of_chart(kind: Kind) -> Iterator[Channel]:
    """Yield the events that happen at rates in the chart itself."""
    for rated in kind.chart.rated() if kind.is_ticked else ():
        step, rate = partial(_without_world, rated.make), rated.rate
        if callable(rate):
            rate = partial(_without_world, rate)
        for each in _listed_in(kind, rated.source):
            yield Channel(kind, each, step, rate)


def _without_world(function: Callable[[Any], Any], _world: Any, agent: Any) -> Any:
    return function(agent)


def _give_step(
    by_class: Mapping[type[Agent], dict[Any, Step]],
    owner: str,
    name: str,
    method: Step,
    states: Sequence[Any],
    *,
    by_rate: bool,
) -> Iterator[str]:
    """Give a step to the kinds whose charts have its states, and yield its problems."""
    wanted = _kind_wanted(method)
    fitting = [cls for cls in by_class if issubclass(cls, wanted)]
    if unknown := _unknown_to_all(states, fitting):
        listed = ", ".join(map(repr, unknown))
        yield f"{owner}.{name}: steps during states that no agent's chart has: {listed}"

    for cls, each in product(fitting, states):
        if not _has_state(cls, each):
            continue
        if each in cls.chart.definition.final_states:
            yield (
                f"{owner}.{name}: steps during {each!r}, a final state of {cls.__name__}, in which "
                "an agent is done: take it out of @during, or out of final_states"
            )
        other = by_class[cls].setdefault(each, method)
        # at rates, a state may have several events
        if other is not method and not by_rate:
            where = f"{cls.__name__} in {state_text(each)!r}"
            yield f"{owner} has two steps of a {where}: {other.__name__} and {name}"


def _unknown_to_all(states: Iterable[Any], classes: Sequence[type[Agent]]) -> list[Any]:
    return [each for each in states if not any(_has_state(cls, each) for cls in classes)]


def treatments_by_round(
    world: World[Any], parts: Parts, asked: Iterable[str], rounds: int
) -> dict[int, list[str]]:
    """Return the names of the treatments to apply in each round.

    Args:
        world: The world.
        parts: The marked methods of its class.
        asked: Treatments of the run, such as ``warning@12``.
        rounds: Number of rounds.

    Raises:
        FieldValueError: If a treatment or a round does not exist.
    """
    # a run that is shorter than the class expects leaves out later treatments
    found: dict[int, list[str]] = {}
    for name, at in parts.treatments.items():
        if at:
            found.setdefault(at, []).append(name)

    for text in asked:
        name, _, number = text.partition("@")
        if name not in parts.treatments:
            known = ", ".join(parts.treatments) or "none"
            raise FieldValueError(
                f"{type(world).__name__} has no treatment {name!r}: it has {known}"
            )
        if not number.isdecimal():
            example = f"{name}@{min(12, rounds)}"
            raise FieldValueError(f"treatment {text!r} needs its round: write {example}")
        if not 1 <= int(number) <= rounds:
            begins = f": write {name}@1 for one from the beginning" if not int(number) else ""
            raise FieldValueError(f"treatment {text}: the run has the rounds 1 to {rounds}{begins}")

        found.setdefault(int(number), []).append(name)

    return found


def methods_of(cls: type) -> Iterator[tuple[str, Any]]:
    """Return the methods of a class in order of definition, those of bases first."""
    members = {name: of for base in reversed(cls.__mro__) for name, of in vars(base).items()}
    return ((name, of) for name, of in members.items() if inspect.isfunction(of))


def _activation_problems(cls: type[World[Any]]) -> Iterator[str]:
    """Yield the problems of a world's activation."""
    for name, value, known in (
        ("order", cls.order, ORDERS),
        ("activation", cls.activation, ACTIVATIONS),
    ):
        if value not in known:
            listed = ", ".join(map(repr, known))
            yield f"{cls.__name__}.{name} must be one of {listed}, got {value!r}"

    if cls.activation != "all" and (cls.together or cls.overlap):
        other = "together" if cls.together else "overlap"
        yield (
            f"{cls.__name__} has activation = {cls.activation!r} and {other} = True: leave one out"
        )


def _method_problems(cls: type[Any], name: str, method: Any) -> Iterator[str]:
    marks = [mark for mark in _MARKS if hasattr(method, mark)]
    for mark in marks:
        yield from _argument_problems(cls, name, method, mark)
    # only a step has something to wait for
    is_plain = name in _HOOKS or bool({*marks} - {STEP})
    if is_plain and inspect.iscoroutinefunction(method):
        yield f"{cls.__name__}.{name} is async, but has nothing to wait for"
    base = World if issubclass(cls, World) else Agent
    if marks and hasattr(base, name):
        yield f"{cls.__name__}.{name} would hide {base.__name__}.{name}: give it another name"


def _argument_problems(cls: type[Any], name: str, method: Any, mark: str) -> Iterator[str]:
    # agents have measures but no activation
    activation = getattr(cls, "activation", "all")
    wanted = {
        STEP: ["an agent", "another"] if activation == "pair" else ["an agent"],
        PICTURE: ["an agent"],
    }
    taken = ["self", *wanted.get(mark, ())]
    try:
        inspect.signature(method).bind(*taken)
    except TypeError:
        where = f"{place_of_method(cls, name)}: {cls.__name__}.{name}"
        yield f"{where} must take only {' and '.join(taken)}"
    if mark == STEP:
        yield from _rate_problems(cls, name, method)


def _rate_problems(cls: type[World[Any]], name: str, method: Any) -> Iterator[str]:
    has_rate, by_rate = getattr(method, RATE) is not None, cls.activation == "rate"
    if by_rate and not has_rate:
        yield f"{cls.__name__}.{name} needs a rate: write  @during(..., rate=0.5)"
    elif has_rate and not by_rate:
        yield f"{cls.__name__}.{name} has a rate: set  activation = 'rate'  in the world"

    rate = getattr(method, RATE)
    if isinstance(rate, str) and not hasattr(cls, rate):
        yield (
            f"{cls.__name__}.{name} has the rate {rate!r}, but {cls.__name__} has no such field: "
            f"for a field of each agent, write  rate=lambda world, agent: agent.{rate}"
        )


def _kind_problems(cls: Any) -> list[str]:
    chart = getattr(cls, "chart", None)
    if not isinstance(chart, Statechart):
        return [f"{cls.__name__} has no chart: set  chart = Statechart(...)  in the class"]

    if issubclass(cls, Proxy):
        return []

    definition = chart.definition
    limited = _limited(definition)
    late = [
        state_text(each.source)
        for each in definition.transitions
        if each.trigger == TIMEOUT and each.source not in limited and cls.timeout_threshold is None
    ]
    endless = (
        f"{cls.__name__} never times out in {', '.join(dict.fromkeys(late))}: give the chart "
        "timeouts={state: ticks}, or the class a timeout_threshold"
    )

    measured = [
        problem
        for name, method in methods_of(cls)
        if hasattr(method, MEASURE)
        for problem in _method_problems(cls, name, method)
    ]

    return type_problems(cls) + measured + [endless] * bool(late)


def _kind_wanted(method: Any) -> type:
    """Return the class of agents that a step declares as the type of its argument."""
    try:
        hints = get_type_hints(method)
    except Exception:  # imported for type checkers only, or defined in a function
        return Agent

    names = list(inspect.signature(method).parameters)
    wanted = hints.get(names[1]) if len(names) > 1 else None

    return wanted if isinstance(wanted, type) and issubclass(wanted, Agent) else Agent


def chart_of(cls: type[Agent]) -> Statechart[Any]:
    """Return the chart of a kind, with the name that it has in logs.

    Raises:
        DefinitionError: If it has no chart.
    """
    refuse_all(_kind_problems(cls))

    return cls.chart.bound(chart_name(cls), None, time)


def chart_name(cls: type[Agent]) -> str:
    """Return the name of a kind's chart, by default that of the kind."""
    name = cls.chart.definition.name
    return cls.__name__.lower() if name == DEFAULT_NAME else name


def _limited(definition: Definition[Any]) -> Collection[Any]:
    """Return the leaves in which a limit of the chart can cause a time-out."""
    # a time-out in one region is an event for all of them
    if definition.hierarchy.tree.has_regions and definition.timeouts:
        return definition.states

    return {leaf for state in definition.timeouts for leaf in definition.leaves_of(state)}


def _has_regions(chart: Statechart[Any]) -> bool:
    return chart.definition.hierarchy.tree.has_regions


def _is_ticked(cls: type[Agent], chart: Statechart[Any]) -> bool:
    # an object of another class handles time in its own turn
    return not issubclass(cls, Proxy) and (chart.has_timers or _has_regions(chart))


def _own_steps(cls: type[Agent]) -> dict[Any, Step]:
    """Return the steps that a kind brings itself: the turns of objects of other classes."""
    return dict.fromkeys(cls.chart.definition.states, act) if issubclass(cls, Guest) else {}


def _timed_steps(cls: type[Agent], steps: dict[Any, Step]) -> dict[Any, Step]:
    """Return the steps of a kind. Those of proxies count their objects' ticks."""
    if not issubclass(cls, Proxy) or issubclass(cls, Guest):
        return steps

    return dict.fromkeys(cls.chart.definition.states, timed(steps))


def _limits_of(cls: type[Agent]) -> dict[Any, int]:
    """Return the number of ticks after which an agent times out, by state."""
    definition = cls.chart.definition
    # an object of another class handles time in its own turn
    has_timeouts = any(each.trigger == TIMEOUT for each in definition.transitions)
    if not has_timeouts or issubclass(cls, Proxy) or _is_ticked(cls, cls.chart):
        return {}

    due_after = {}
    for state in definition.states:
        limit = definition.timeouts.get(state, cls.timeout_threshold)
        if state not in definition.final_states and limit is not None and isfinite(limit):
            due_after[state] = floor(limit) + 1

    return due_after


def _unguarded(definition: Definition[Any]) -> dict[Any, dict[str, tuple[Any, ...]]]:
    """Return the targets of decisions about transitions without a guard, by state and trigger."""
    if definition.tree is not None:
        return {}

    found: dict[Any, dict[str, tuple[Any, ...]]] = {each: {} for each in definition.decision_states}
    guarded = {
        (each.source, each.trigger) for each in definition.transitions if each.guard is not None
    }
    for each in definition.transitions:
        row = found.get(each.source)
        if row is not None and (each.source, each.trigger) not in guarded:
            row[each.trigger] = tuple(dict.fromkeys((*row.get(each.trigger, ()), each.target)))

    return found


def _has_state(cls: type[Agent], state: Any) -> bool:
    return bool(cls.chart.definition.leaves_of(state))


def _by_leaf(cls: type[Agent], steps: dict[Any, Step]) -> dict[Any, Step]:
    """Return the step for each leaf: that of the innermost enclosing state with one."""
    tree = cls.chart.definition.tree
    if tree is None:
        return steps
    if _is_ticked(cls, cls.chart):
        return Turns(tree, steps)
    if tree.tree.has_regions:
        return EveryState(steps)

    found = {}
    for leaf in tree.leaves:
        owner = next((each for each in tree.around(leaf) if each in steps), None)
        if owner is not None:
            found[leaf] = steps[owner]

    return found
