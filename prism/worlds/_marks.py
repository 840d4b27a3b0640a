"""Marks of methods: steps of states, measures and treatments."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from inspect import isfunction
from math import inf
from typing import Any, TypeVar, overload

from prism.errors import DefinitionError

MethodT = TypeVar("MethodT", bound=Callable[..., Any])

STEP, RATE, MEASURE, TREATMENT, PICTURE = "during", "rate", "is_measure", "treats_in", "is_picture"
"""Marks of methods."""


def during(
    *states: Enum,
    rate: float | str | Callable[[Any, Any], float] | None = None,
    most: float | None = None,
) -> Callable[[MethodT], MethodT]:
    """Mark a method as the step of agents in some states: ``step(self, agent)``.

    A step that decides, or waits for a message, is ``async``.

    Args:
        states: The states.
        rate: For events in continuous time: the number of events per round for each agent. A
            number, the name of a field of the world, or a function of world and agent, which is
            called for every agent after every event. If one step of a world has a rate, all must.
        most: The largest rate that the function returns. With it, only the rate of one agent is
            evaluated for each event, so a large population takes no longer.

    Raises:
        DefinitionError: If no state is given, or the rate is no function and has a largest value.
    """
    if not states:
        raise DefinitionError("@during() names no state: name those in which agents take the step")
    for each in states:
        if not isinstance(each, Enum):
            raise DefinitionError(
                f"@during needs states of a chart, got {each!r}: write the member of the enum"
            )
    if most is not None and not (callable(rate) and 0 <= most < inf):
        raise DefinitionError(f"@during(most={most!r}) is the largest value of a rate's function")

    def mark(method: MethodT) -> MethodT:
        setattr(method, STEP, states)
        setattr(method, RATE, (rate, most))
        return method

    return mark


@overload
def measure(method: MethodT, /) -> MethodT: ...
@overload
def measure(*, label: str = ..., unit: str = ...) -> Callable[[MethodT], MethodT]: ...
def measure(method: Any = None, /, *, label: str = "", unit: str = "") -> Any:
    """Mark a method, without arguments, to be measured at the end of every round.

    That of a world returns a number, or None if there is nothing to measure. That of an agent is
    measured for each agent. Kinds of more than 500 agents are left out.

    Args:
        method: The method.
        label: The measure in words, for figures and papers.
        unit: Its unit.
    """
    if method is None:
        return partial(_labelled, label=label, unit=unit)
    setattr(method, MEASURE, True)
    return method


def _labelled(method: Any, *, label: str, unit: str) -> Any:
    method.title = " ".join(filter(None, (label or method.__name__, f"({unit})" if unit else "")))
    return measure(method)


@overload
def treatment(method: MethodT, /) -> MethodT: ...
@overload
def treatment(*, round: int) -> Callable[[MethodT], MethodT]: ...
def treatment(method: Any = None, *, round: int | None = None) -> Any:  # noqa: A002
    """Mark a method, without arguments, that changes the world.

    Args:
        method: The method.
        round: The round that begins with it. By default, it is only applied if the run asks for it,
            as in ``treatments=["warning@12"]``.
    """

    def mark(method: Any) -> Any:
        setattr(method, TREATMENT, round or 0)
        return method

    return mark if method is None else mark(method)


def marked(cls: type, mark: str) -> dict[str, Any]:
    """Return the methods of a class that have a mark, those of bases first, with its value."""
    members = {name: each for base in reversed(cls.__mro__) for name, each in vars(base).items()}
    return {
        name: getattr(each, mark)
        for name, each in members.items()
        if isfunction(each) and hasattr(each, mark)
    }
