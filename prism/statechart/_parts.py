"""What a chart is written with besides transitions: states inside states, histories, functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from prism.errors import DefinitionError
from prism.statechart.states import state_text

StateT_co = TypeVar("StateT_co", bound=Enum, covariant=True)

Guard = Callable[[Any, Any], object]
"""``guard(agent, context)``: the transition may fire if the result is truthy."""

Action = Callable[[Any, Any], object]
"""``action(agent, context)``: side effect that runs just before the transition commits."""


_NOT_RUN = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
"""What tells of a function that its call runs nothing of it."""


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return one value, a list of them, or None for none, as a tuple."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def in_order(states: Iterable[Any]) -> tuple[Any, ...]:
    """Return one state or several as a tuple; those of a set, which has no order, by text."""
    # a text is iterable, too, but not a list of characters
    if isinstance(states, (str, Enum)):
        return (states,)
    return tuple(sorted(states, key=state_text) if isinstance(states, Set) else states)


def call_problems(kind: str, *functions: Any) -> Iterator[str]:
    """Yield why functions cannot be called as a guard or an action is.

    Args:
        kind: ``guard``, ``action``, ``entry``, ``exit`` or ``rate``, which are called with agent
            and context, or ``after``, which is called with the agent.
        functions: The functions.
    """
    arguments = ("agent",) if kind == "after" else ("agent", "context")
    for each in (function for function in functions if function is not None):
        name = getattr(each, "__name__", each)
        try:
            # a decorator is called itself, whatever it wraps; some code in C has no signature
            with suppress(ValueError):
                inspect.signature(each, follow_wrapped=False).bind(*arguments)
        except TypeError:
            yield f"{kind} {name!r} must be callable as {kind}({', '.join(arguments)})"
        # an instance is called by the code of its class
        if any(is_kind(code) for is_kind in _NOT_RUN for code in (each, type(each).__call__)):
            yield f"{kind} {name!r} is async or yields, so a call runs nothing: use a plain 'def'"


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


@dataclass(frozen=True, slots=True)
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
    states: Iterable[StateT_co | State[StateT_co]] = ()
    _: KW_ONLY
    initial: StateT_co | tuple[StateT_co, ...] | None = None
    parallel: bool = False
    entry: Action | Iterable[Action] | None = None
    exit: Action | Iterable[Action] | None = None

    def __post_init__(self) -> None:
        """Keep tuples of whatever may be several."""
        kept = {name: as_tuple(getattr(self, name)) for name in ("initial", "entry", "exit")}
        kept["states"] = tuple(map(as_written, in_order(self.states)))
        for name, value in kept.items():
            object.__setattr__(self, name, value)

        problems = [text for kind in ("entry", "exit") for text in call_problems(kind, *kept[kind])]
        if not kept["states"] and (self.parallel or kept["initial"]):
            problems.append("has no substates: give it some, or leave out parallel and initial")
        if self.parallel and kept["initial"]:
            problems.append("is parallel, so all its regions are entered: leave out initial")
        if problems:
            raise DefinitionError(f"state {state_text(self.state)!r}: " + "; ".join(problems))


def as_written(state: Any) -> Any:
    """Return a state; its member alone if it says no more than that."""
    is_bare = isinstance(state, State) and not (state.states or state.entry or state.exit)
    return state.state if is_bare else state


def as_state(state: Any) -> State[Any]:
    """Return a state as a `State`, which a member alone stands for, too."""
    return state if isinstance(state, State) else State(state)


def with_insides(states: Iterable[Any]) -> Iterator[State[Any]]:
    """Yield states and all that is inside, in document order."""
    for state in map(as_state, states):
        yield state
        yield from with_insides(state.states)


def done(state: Enum) -> str:
    """Return the trigger that a chart raises when a composite is done (SCXML, 3.7).

    A composite is done when a final state inside it is entered, a parallel one when all its regions
    are.
    """
    return f"done.state.{state_text(state)}"
