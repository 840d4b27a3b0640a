"""The parts of a world's class: kinds of agents, steps by kind and state, measures, treatments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from operator import attrgetter
from typing import Any, get_type_hints

from prism.errors import DefinitionError, FieldValueError
from prism.statechart import Statechart
from prism.statechart._definition import DEFAULT_NAME, TIMEOUT, Definition, arguments_of
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger
from prism.worlds._agent import Agent
from prism.worlds._fields import slot_of, type_problems
from prism.worlds._guest import KEPT, Guest, act
from prism.worlds._world import MEASURE, STEP, TREATMENT, World

Step = Callable[[Any, Any], Any]

_MARKS = (STEP, MEASURE, TREATMENT)
_HOOKS = ("populate", "setup", "round_begins", "tick_begins", "tick_ends", "round_ends", "recall")


@dataclass(slots=True, eq=False)
class Kind:
    """One kind of agents in a run.

    Args:
        cls: Its class.
        chart: The class's chart, with the run's logger and clock.
        limits: Longest dwell times in ticks by state; None if the chart has no time-outs.
        steps: What an agent does in each state; a state without a step is not among them.
        agents: Its agents, in their order.
    """

    cls: type[Agent]
    chart: Statechart[Any]
    limits: Mapping[Any, float] | None
    steps: Mapping[Any, Step]
    agents: list[Any] = field(default_factory=list)

    def column_readers(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yield the fields that a checkpoint keeps, with what reads each."""
        if issubclass(self.cls, Guest):
            yield KEPT, attrgetter(KEPT)
            return

        for name, each in self.cls.fields.items():
            if each.declared.kept and name not in Agent.fields:
                yield name, slot_of(self.cls, name).__get__


@dataclass(frozen=True, slots=True)
class Parts:
    """What a world's class marks.

    Args:
        steps: Methods with the states in which they are steps.
        measures: Methods that are measured, by name.
        treatments: Rounds of treatments by name; 0 for one that is not applied by itself.
    """

    steps: Sequence[tuple[str, Step, tuple[Any, ...]]]
    measures: Sequence[str]
    treatments: Mapping[str, int]


@lru_cache(maxsize=256)
def parts_of(cls: type[World[Any]]) -> Parts:
    """Return what a world's class marks.

    Raises:
        DefinitionError: If what is marked cannot work; lists all such methods.
    """
    steps, measures, treatments = [], [], {}
    problems = type_problems(cls)
    for name, method in _methods_of(cls):
        if hasattr(method, STEP):
            steps.append((name, method, getattr(method, STEP)))
            problems += _argument_problems(cls, name, method, ("an agent",))
        if hasattr(method, MEASURE):
            measures.append(name)
            problems += _argument_problems(cls, name, method, (), is_plain=True)
        if hasattr(method, TREATMENT):
            treatments[name] = getattr(method, TREATMENT)
            problems += _argument_problems(cls, name, method, (), is_plain=True)
        if hasattr(World, name) and any(hasattr(method, mark) for mark in _MARKS):
            problems.append(f"{cls.__name__}.{name} would hide World.{name}: give it another name")
        if name in _HOOKS and inspect.iscoroutinefunction(method):
            problems.append(f"{cls.__name__}.{name} is async, and has nothing to wait for")

    if problems:
        raise DefinitionError("; ".join(problems))

    return Parts(steps, measures, treatments)


def make_kinds(
    world: World[Any],
    classes: Sequence[type[Agent]],
    parts: Parts,
    logger: EventLogger | None,
    clock: Callable[[], float],
) -> dict[type, Kind]:
    """Return the kinds of a population, each with its chart and its steps.

    Raises:
        DefinitionError: If a kind has no chart, or charts and steps do not fit; lists all.
    """
    problems = [problem for cls in classes for problem in _kind_problems(cls)]
    if problems:
        raise DefinitionError("; ".join(problems))

    by_class = {cls: _own_steps(cls) for cls in classes}
    for name, method, states in parts.steps:
        wanted = _kind_wanted(method)
        fitting = [cls for cls in classes if issubclass(cls, wanted)]
        unknown = [each for each in states if not any(_has_state(cls, each) for cls in fitting)]
        if unknown:
            problems.append(
                f"{type(world).__name__}.{name}: steps during states that no agent's chart has: "
                + ", ".join(map(repr, unknown))
            )

        pairs = [(cls, each) for cls in fitting for each in states if _has_state(cls, each)]
        for cls, each in pairs:
            other = by_class[cls].setdefault(each, method)
            if other is not method:
                problems.append(
                    f"{type(world).__name__} has two steps of a {cls.__name__} in "
                    f"{state_text(each)!r}: {other.__name__} and {name}"
                )

    if problems:
        raise DefinitionError("; ".join(problems))

    return {
        cls: Kind(
            cls,
            Statechart(**_arguments_of(cls), logger=logger, clock=clock),
            # what an object of another class does in time is up to its own turn
            None if issubclass(cls, Guest) else _limits_of(cls.chart.definition),
            by_class[cls],
        )
        for cls in classes
    }


def treatments_by_round(
    world: World[Any], parts: Parts, asked: Iterable[str], rounds: int
) -> dict[int, list[str]]:
    """Return the names of the treatments to apply, by round.

    Args:
        world: The world.
        parts: What its class marks.
        asked: Treatments that the run asks for, such as ``warning@12``.
        rounds: Number of rounds.

    Raises:
        FieldValueError: If there is no such treatment, or no such round.
    """
    # of a shorter run than the class has in mind, the later ones are not part
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
            raise FieldValueError(f"treatment {text!r} needs its round: write {name}@12")
        if not 1 <= int(number) <= rounds:
            raise FieldValueError(f"treatment {text}: the run has the rounds 1 to {rounds}")

        found.setdefault(int(number), []).append(name)

    return found


def _methods_of(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods of a class in the order of their definition, those of bases first."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
    for name in names:
        method = inspect.getattr_static(cls, name)
        if inspect.isfunction(method):
            yield name, method


def _argument_problems(
    cls: type, name: str, method: Any, wanted: Sequence[str], *, is_plain: bool = False
) -> list[str]:
    problems = []
    try:
        inspect.signature(method).bind("self", *wanted)
    except TypeError:
        problems.append(
            f"{cls.__name__}.{name} must take self"
            + "".join(f" and {each}" for each in wanted)
            + " alone"
        )
    if is_plain and inspect.iscoroutinefunction(method):
        problems.append(f"{cls.__name__}.{name} is async, and has nothing to wait for")

    return problems


def _kind_problems(cls: Any) -> list[str]:
    chart = getattr(cls, "chart", None)
    if not isinstance(chart, Statechart):
        return [f"{cls.__name__} has no chart: set  chart = Statechart(...)  in the class"]

    if issubclass(cls, Guest):
        return []

    definition = chart.definition
    late = [
        state_text(each.source)
        for each in definition.transitions
        if each.trigger == TIMEOUT
        and each.source not in definition.timeouts
        and cls.timeout_threshold is None
    ]
    endless = (
        f"{cls.__name__} never times out in {', '.join(dict.fromkeys(late))}: give the chart "
        "timeouts={state: ticks}, or the class a timeout_threshold"
    )

    return type_problems(cls) + [endless] * bool(late)


def _kind_wanted(method: Any) -> type:
    """Return the class of agents that a step names as its argument's type."""
    try:
        hints = get_type_hints(method)
    except Exception:  # imported for type checkers only, or defined in a function
        return Agent

    names = list(inspect.signature(method).parameters)
    wanted = hints.get(names[1]) if len(names) > 1 else None

    return wanted if isinstance(wanted, type) and issubclass(wanted, Agent) else Agent


def chart_of(cls: type[Agent]) -> Statechart[Any]:
    """Return the chart of a kind, by the name that it has in the log of a run.

    Raises:
        DefinitionError: If it has none.
    """
    problems = _kind_problems(cls)
    if problems:
        raise DefinitionError("; ".join(problems))

    return Statechart(**_arguments_of(cls))


def _arguments_of(cls: type[Agent]) -> dict[str, Any]:
    """Return what makes the chart of a kind again; one without a name is called after the kind."""
    arguments = arguments_of(cls.chart.definition)
    if arguments["name"] == DEFAULT_NAME:
        arguments["name"] = cls.__name__.lower()

    return arguments


def _own_steps(cls: type[Agent]) -> dict[Any, Step]:
    """Return the steps that agents of a kind bring: the turns of objects of other classes."""
    return dict.fromkeys(cls.chart.definition.states, act) if issubclass(cls, Guest) else {}


def _limits_of(definition: Definition[Any]) -> dict[Any, float] | None:
    if all(each.trigger != TIMEOUT for each in definition.transitions):
        return None

    return {**definition.timeouts, **dict.fromkeys(definition.final_states, inf)}


def _has_state(cls: type[Agent], state: Any) -> bool:
    # states of two charts with one text are equal
    return any(state is each for each in cls.chart.definition.states)
