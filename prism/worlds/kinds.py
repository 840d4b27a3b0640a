"""What a run has to know of each kind of agents, and what is wrong with classes."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import floor, isfinite
from typing import Any

from prism.errors import DefinitionError
from prism.statechart import Configuration, Definition, Statechart
from prism.statechart.states import state_text
from prism.statechart.transitions import DEFAULT_NAME, TIMEOUT
from prism.worlds._agent import Agent
from prism.worlds._agent_set import leaves_in
from prism.worlds.fields import MARKS, MEASURE, RATE, STEP, TREATMENT, hints_of, marked
from prism.worlds.guests import Guest, GuestChart
from prism.worlds.world import World, defines, kinds_of

Step = Callable[[Any, Any], Any]


@dataclass(slots=True)
class Channel:
    """An event that happens at a rate to agents in a state.

    Args:
        kind: The kind of the agents.
        state: The state.
        step: What happens.
        rate: Events per round for each agent: a number, the name of a field, or a function.
        most: The largest rate that a function returns, if that was declared.
        is_reported: Whether a warning has said what the rate costs.
    """

    kind: Kind
    state: Any
    step: Any
    rate: Any
    most: float | None = None
    is_reported: bool = False


@dataclass(slots=True)
class Kind:
    """A kind of agents.

    Args:
        cls: Its class.
        chart: Its chart, with the run's logger and clock.
        steps: The step for each leaf state.
        limits: Ticks after which an agent times out, by state.
        choices: For events whose transitions have no condition, by state and trigger: the targets
            among which an agent decides, which are none if there is one; None if nobody decides
            between several.
        is_nested: Whether its chart has states inside states, or timers, rates and eventless
            transitions of its own.
        channels: Its events in continuous time.
        counts: Agents in each state, unless they are objects of other classes.
        has_timers: Whether time passes for its agents.
    """

    cls: type[Agent]
    chart: Any
    steps: Mapping[Any, Step]
    limits: Mapping[Any, int]
    choices: Mapping[tuple[Any, str], tuple[Any, ...] | None]
    is_nested: bool
    channels: list[Channel] = field(default_factory=list)
    counts: Counter[Any] = field(default_factory=Counter)
    has_timers: bool = False

    def step_of(self, state: Any) -> Any:
        """Return the step of a state; with regions, that of each active one in turn."""
        steps = self.steps
        if type(state) is not Configuration:
            return steps.get(state)
        leaf_of = {steps[leaf]: leaf for leaf in reversed(state.leaves) if leaf in steps}
        if not leaf_of:
            return None
        return lambda world, agent: _several(world, agent, [*leaf_of.items()][::-1])


async def _several(world: Any, agent: Any, steps: Sequence[tuple[Any, Any]]) -> None:
    """Take the step of each region, unless the region has moved meanwhile."""
    for step, leaf in steps:
        if leaf in leaves_in(agent.state):
            running = step(world, agent)
            if running is not None:
                await running


def make_kind(cls: type[Agent], turns: Any) -> Kind:
    """Return a kind of agents, to which a run gives turns."""
    definition, world, is_guest = cls.chart.definition, type(turns.world), issubclass(cls, Guest)
    # charts of objects ask for the time once for each transition
    clock = turns.count_transition if is_guest else turns.seconds
    chart: Any = cls.chart.bound(chart_name(cls), turns.events.logger, clock)
    if is_guest:
        acts = dict.fromkeys(definition.states, lambda world, guest: guest.act(world))
        return Kind(cls, GuestChart(chart), acts, {}, _choices_in(definition), is_nested=False)

    by_rate = is_by_rate(world)
    steps: dict[Any, Step] = {} if by_rate else _by_leaf(definition, dict(_steps_of(world, cls)))
    is_nested = definition.is_nested
    limits, choices = _limits_of(cls), _choices_in(definition)
    has_timers = is_nested or bool(limits)
    kind = Kind(cls, chart, steps, limits, choices, is_nested, has_timers=has_timers)
    kind.channels += _channels(kind, world) if by_rate else ()
    return kind


def is_by_rate(cls: type[World[Any]]) -> bool:
    """Return whether events of a world happen at rates."""
    return any(rate is not None for rate, _ in marked(cls, RATE).values())


def runs_ahead(cls: type[World[Any]]) -> bool:
    """Return whether agents may be in several ticks: nothing is done between those."""
    between = any(defines(cls, hook) for hook in ("tick", "tick_begins", "tick_ends", "until"))
    return cls.independent and not (cls.together or between or is_by_rate(cls))


def chart_name(cls: type[Agent]) -> str:
    """Return the name of a kind's chart, by default that of the kind."""
    name = cls.chart.definition.name
    return cls.__name__.lower() if name == DEFAULT_NAME else name


def chart_of(cls: type[Agent]) -> Statechart[Any]:
    """Return the chart of a kind, with the name that it has in logs.

    Raises:
        DefinitionError: If it has no chart.
    """
    _refuse(_kind_problems(cls))
    return cls.chart.bound(chart_name(cls), None, float)


def definitions_of(kinds: Iterable[Any]) -> list[Definition[Any]]:
    """Return the charts of several kinds, by their names in logs; some kinds may have none."""
    able = [each for each in kinds if isinstance(getattr(each, "chart", None), Statechart)]
    charts = {(each.chart.definition, chart_name(each)): each.chart for each in able}
    return [chart.bound(name, None, float).definition for (_, name), chart in charts.items()]


# Steps


def _steps_of(world: type[World[Any]], cls: type[Agent]) -> Iterator[tuple[Any, Step]]:
    """Yield the steps of a kind with the states for which they are written."""
    for name, states in marked(world, STEP).items():
        method = getattr(world, name)
        if issubclass(cls, _kind_wanted(method)):
            for state in states:
                if cls.chart.definition.leaves_of(state):
                    yield state, method


def _by_leaf(definition: Definition[Any], steps: Mapping[Any, Step]) -> dict[Any, Step]:
    """Return the step for each leaf: that of the innermost enclosing state with one."""
    owners = {
        leaf: next((each for each in definition.hierarchy.around(leaf) if each in steps), None)
        for leaf in definition.states
    }
    return {leaf: steps[owner] for leaf, owner in owners.items() if owner is not None}


def _kind_wanted(method: Any) -> type:
    """Return the class of agents that a step declares as the type of its argument."""
    names = list(inspect.signature(method).parameters)
    wanted = hints_of(method).get(names[1]) if len(names) > 1 else None
    return wanted if isinstance(wanted, type) and issubclass(wanted, Agent) else Agent


def _limits_of(cls: type[Agent]) -> dict[Any, int]:
    """Return the number of ticks after which an agent times out, by state."""
    definition = cls.chart.definition
    if definition.is_nested:
        return {}

    timed = [each.source for each in definition.transitions if each.trigger == TIMEOUT]
    limits = [(each, definition.timeouts.get(each, cls.timeout_threshold)) for each in timed]
    return {each: floor(n) + 1 for each, n in limits if n is not None and isfinite(n)}


def _choices_in(definition: Definition[Any]) -> dict[tuple[Any, str], tuple[Any, ...] | None]:
    """Return what is decided about events whose transitions have no condition."""
    arcs: dict[tuple[Any, Any], list[Any]] = {}
    for each in () if definition.is_nested else definition.transitions:
        arcs.setdefault((each.source, each.trigger), []).append(each)
    choices: dict[tuple[Any, str], tuple[Any, ...] | None] = {}
    for key, group in arcs.items():
        if all(each.guard is None for each in group):
            targets = tuple(dict.fromkeys(each.target for each in group))
            undecided = () if len(targets) == 1 else None
            choices[key] = targets if key[0] in definition.decision_states else undecided
    return choices


def _channels(kind: Kind, world: type[World[Any]]) -> Iterator[Channel]:
    """Yield the events of its world that happen to a kind at rates."""
    hierarchy = kind.cls.chart.definition.hierarchy
    for state, method in _steps_of(world, kind.cls):
        for leaf in _one_at_a_time(hierarchy.nodes, hierarchy.numbers[state_text(state)]):
            yield Channel(kind, leaf, method, *getattr(method, RATE))


def _one_at_a_time(nodes: Sequence[Any], number: int) -> list[Any]:
    """Return leaves inside a state of which one is active at a time: of regions, the first's."""
    node = nodes[number]
    # all regions are active together: an event of the state around them happens once
    inside = node.children[:1] if node.kind == "parallel" else node.children
    return [leaf for each in inside for leaf in _one_at_a_time(nodes, each)] or [node.state]


# What is wrong with classes


def check_classes(cls: type[World[Any]], kinds: Sequence[type[Agent]]) -> None:
    """Refuse what cannot work in the classes of a world and its agents.

    Raises:
        DefinitionError: Lists every problem.
    """
    _refuse(each for kind in kinds for each in _kind_problems(kind))
    _refuse([*_world_problems(cls), *_step_problems(cls, kinds)])


def _refuse(problems: Iterable[str]) -> None:
    distinct = [*dict.fromkeys(problems)]
    if distinct:
        raise DefinitionError("; ".join(distinct))


def _kind_problems(cls: Any) -> Iterator[str]:
    chart = getattr(cls, "chart", None)
    if not isinstance(chart, Statechart):
        yield f"{cls.__name__} has no chart: set  chart = Statechart(...)  in the class"
        return
    for name in (name for mark in MARKS for name in marked(cls, mark)):
        yield f"{cls.__name__}.{name} belongs in the world's class, which marks what agents do"
    definition = chart.definition
    timed = [each.source for each in definition.transitions if each.trigger == TIMEOUT]
    has_limit = definition.timeouts or cls.timeout_threshold is not None or issubclass(cls, Guest)
    if timed and not has_limit:
        where = ", ".join(dict.fromkeys(map(state_text, timed)))
        cure = "give the chart timeouts={state: ticks}, or the class a timeout_threshold"
        yield f"{cls.__name__} never times out in {where}: {cure}"


def _world_problems(cls: type[World[Any]]) -> Iterator[str]:
    for name in (*vars(World), *marked(cls, TREATMENT), *marked(cls, MEASURE)):
        is_async = inspect.iscoroutinefunction(vars(World).get(name))
        if inspect.iscoroutinefunction(getattr(cls, name, None)) != is_async:
            yield f"{cls.__name__}.{name} must {'' if is_async else 'not '}be async"
    for mark in MARKS:
        for name in chain.from_iterable(marked(base, mark) for base in cls.__mro__[1:]):
            if name not in marked(cls, mark) and getattr(cls, name) is not None:
                yield f"{cls.__name__}.{name} hides a marked method: mark it too, or make it None"
    if is_by_rate(cls) and (cls.together or defines(cls, "tick")):
        problem = "has steps with rates, which happen one by one: leave out together, and tick"
        yield f"{cls.__name__} {problem}"


def _step_problems(cls: type[World[Any]], kinds: Sequence[type[Agent]]) -> Iterator[str]:
    """Yield steps in states that no kind has, and pairs of steps in one state."""
    by_rate, all_kinds = is_by_rate(cls), {*kinds, *kinds_of(cls)}
    charts = [each for each in all_kinds if isinstance(getattr(each, "chart", None), Statechart)]
    step_by_state: dict[tuple[type, Any], str] = {}
    for name, states in marked(cls, STEP).items() if charts else ():
        method = getattr(cls, name)
        fitting = [each for each in charts if issubclass(each, _kind_wanted(method))]
        if inspect.isasyncgenfunction(method):
            yield f"{cls.__name__}.{name} would never begin: leave out its yield"
        if by_rate and getattr(method, RATE)[0] is None:
            yield f"{cls.__name__}.{name} needs a rate, as others have: @during(..., rate=0.5)"
        for state in states:
            having = [kind for kind in fitting if kind.chart.definition.leaves_of(state)]
            if not having:
                yield f"{cls.__name__}.{name}: no agent's chart has the state {state!r}"
            for kind in having:
                other = step_by_state.setdefault((kind, state), name)
                if other != name and not by_rate:
                    where = f"{kind.__name__} in {state_text(state)!r}"
                    yield f"{cls.__name__} has two steps of a {where}: {other} and {name}"


# What the log says of nested charts


def inside(chart: Definition[Any]) -> dict[str, list[str]]:
    """Return the states inside each composite state."""
    nodes = chart.hierarchy.nodes
    return {
        state_text(node.state): [state_text(nodes[each].state) for each in node.children]
        for node in nodes[1:]
        if node.children
    }
