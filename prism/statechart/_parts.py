"""What a chart is written with besides transitions: states inside states, histories, functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, Generic, TypeVar

from prism.errors import DefinitionError
from prism.statechart.states import state_text

StateT_co = TypeVar("StateT_co", bound=Enum, covariant=True)

Guard = Callable[[Any, Any], object]
"""``guard(agent, context)``: the transition may fire if the result is truthy."""

Action = Callable[[Any, Any], object]
"""``action(agent, context)``: side effect that runs just before the transition commits."""

Rate = Callable[[Any, Any], float]
"""``rate(agent, context)``: how often a tick a transition is made; 0 means never."""

Delay = Callable[[Any], int]
"""``after(agent)``: after how many ticks a transition is made."""


TIMING = ("after", "rate", "probability")
"""The fields that say when, or with which probability, a transition is made."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return one value, or a tuple of them, as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def callable_problems(kind: str, value: Any) -> list[str]:
    """Return why a value cannot be a guard or an action; nothing for None.

    Args:
        kind: ``guard``, ``action``, ``entry``, ``exit`` or ``rate``, which are called with agent
            and context, or ``after``, which is called with the agent.
        value: The function.
    """
    if value is None:
        return []
    arguments = ("agent",) if kind == "after" else ("agent", "context")
    call = f"{kind}({', '.join(arguments)})"
    if not callable(value):
        return [f"{kind} must be callable as {call}, got {value!r}"]
    name = getattr(value, "__name__", value)
    # an instance is called by the code of its class
    if any(map(inspect.iscoroutinefunction, (value, type(value).__call__))):
        return [f"{kind} {name!r} is async, but runs without an event loop: use 'def'"]
    try:
        # a decorator is called itself, whatever it wraps
        inspect.signature(value, follow_wrapped=False).bind(*arguments)
    except TypeError:
        return [f"{kind} {name!r} must be callable as {call}"]
    except ValueError:
        # some callables of C code have no signature
        return []
    return []


def timing_problems(item: Any) -> Iterator[str]:
    """Yield what is wrong with the times, rates and shares of a transition."""
    timing = [name for name in TIMING if getattr(item, name) is not None]
    after, rate, share = item.after, item.rate, item.probability
    if len(timing) > 1:
        yield f"{' and '.join(timing)} cannot be combined"
    if item.trigger is None and (after or rate):
        yield f"{timing[0]} needs a trigger, under which the log has it"
    if callable(after) or callable(rate):
        yield from callable_problems(timing[0], getattr(item, timing[0]))
    elif after is not None and not (type(after) is int and after >= 1):
        yield f"after must be a whole number of ticks, 1 or more, got {after!r}"
    elif rate is not None and not (_is_positive(rate) and rate < inf):
        yield f"rate must be a number above 0 or a function, got {rate!r}"
    if share is not None and not (_is_positive(share) and share <= 1):
        yield f"probability must be above 0 and at most 1, got {share!r}"


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True, slots=True)
class History(Generic[StateT_co]):
    """A target: the states inside a composite that were active when it was last left.

    Args:
        state: The composite.
        deep: Whether to enter the leaves again, not only the composite's direct child.
        default: Where the transition leads if the composite has not been left yet: a state inside
            it, or a tuple with one in each region. The composite's initial state by default.
    """

    state: StateT_co
    deep: bool = False
    default: StateT_co | tuple[StateT_co, ...] | None = None

    def __str__(self) -> str:
        """Return the composite with SCXML's and UML's mark of a history."""
        return f"{state_text(self.state)}.H" + ("*" if self.deep else "")


@dataclass(frozen=True, slots=True, init=False)
class State(Generic[StateT_co]):
    """A state of a chart, with the states inside it.

    Args:
        state: The member that names it.
        states: The states inside, in order: members, or ``State(...)`` with states inside. Without
            any, the state is a leaf.
        initial: Where a transition to this state leads: a state inside, or a tuple with one in each
            region. The first state inside by default.
        parallel: Whether the states inside are regions, all of which are active together.
        entry: ``action(agent, context)`` or a list of them, called when the state is entered.
        exit: The same, called when it is left.

    Raises:
        DefinitionError: Listing all problems.
    """

    state: StateT_co
    states: tuple[StateT_co | State[StateT_co], ...]
    initial: tuple[StateT_co, ...]
    parallel: bool
    entry: tuple[Action, ...]
    exit: tuple[Action, ...]

    def __init__(
        self,
        state: StateT_co,
        states: Iterable[StateT_co | State[StateT_co]] = (),
        *,
        initial: StateT_co | tuple[StateT_co, ...] | None = None,
        parallel: bool = False,
        entry: Action | Iterable[Action] | None = None,
        exit: Action | Iterable[Action] | None = None,  # noqa: A002 - UML's and SCXML's word
    ) -> None:
        # a single text is not a list of characters
        inside = (states,) if isinstance(states, str) else tuple(map(as_written, states))
        targets = () if initial is None else as_tuple(initial)
        entries, exits = _functions(entry), _functions(exit)
        values = (state, inside, targets, parallel, entries, exits)
        for name, value in zip(State.__match_args__, values, strict=True):
            object.__setattr__(self, name, value)

        functions = [*(("entry", each) for each in entries), *(("exit", each) for each in exits)]
        problems = [text for each in functions for text in callable_problems(*each)]
        if not inside and (parallel or targets):
            problems.append("has no substates: give it some, or leave out parallel and initial")
        if parallel and targets:
            problems.append("is parallel, so all its regions are entered: leave out initial")
        if problems:
            raise DefinitionError(f"state {state_text(state)!r}: " + "; ".join(problems))


def _functions(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def as_written(state: Any) -> Any:
    """Return a state; its member alone if it says no more than that."""
    is_bare = isinstance(state, State) and not (state.states or state.entry or state.exit)
    return state.state if is_bare else state


def member_of(state: Any) -> Any:
    """Return the member that names a state."""
    return state.state if isinstance(state, State) else state


def with_insides(states: Iterable[Any]) -> Iterator[Any]:
    """Yield states and all that is inside, in document order."""
    for state in states:
        yield state
        if isinstance(state, State):
            yield from with_insides(state.states)


def done(state: Enum) -> str:
    """Return the trigger that a chart raises when a composite is done (SCXML, 3.7).

    A composite is done when a final state inside it is entered, a parallel one when all its regions
    are.
    """
    return f"done.state.{state_text(state)}"
