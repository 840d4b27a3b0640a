"""Asserting which states an agent went through, and saying why it took another path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any

from prism.errors import AgentError, FieldValueError
from prism.statechart import Statechart
from prism.statechart.inspection import explain
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.statechart.transitions import DEFAULT_MAX_HISTORY_DEPTH

CUT = "..."
ARROW = " > "

_FULL = (
    "its history is full, and may have lost what came before these {} transitions: raise "
    f"max_history_depth ({DEFAULT_MAX_HISTORY_DEPTH} where it is not set), or assert how the path "
    f"ends, with '{CUT} > a > b'"
)


def assert_path(
    agent: Any,
    path: str | Sequence[Any],
    *,
    chart: Statechart[Any] | None = None,
    context: Any = None,
) -> None:
    """Assert that an agent went through these states, from the first in its history to its state.

    Self-transitions are not recorded, so they are not part of a path. A failure shows both paths
    and, given the chart, the events that could have caused the first missing transition, with the
    present outcomes of their guards.

    Args:
        agent: Any object with a ``state``, and a ``state_history`` if it has made transitions.
        path: The states, such as ``"idle > scrolling > evaluating"``, or a list of them. A path
            that begins with ``...`` gives only the end.
        chart: The chart that drives the agent, to explain a failure by.
        context: Context of the missing event; by default the recorded one at that place, or that of
            the last transition.

    Raises:
        AssertionError: If the agent took another path.
        AgentError: If the agent's history holds anything but transitions.
        FieldValueError: If the path names a state that the agent's enum does not have.
    """
    __tracebackhide__ = True
    expected = _read_expected(agent, path)
    only_present = expected.is_end and len(expected.states) == 1
    taken = _read_taken(agent, needs_history=not only_present)

    actual = taken.states[-len(expected.states) :] if expected.is_end else taken.states
    if actual == expected.states and (expected.is_end or not taken.is_full):
        return

    raise AssertionError("\n".join(_explain_failure(agent, expected, taken, chart, context)))


def _read_expected(agent: Any, path: str | Sequence[Any]) -> Expected:
    texts = _parts(path) if isinstance(path, str) else [state_text(item) for item in path]
    is_end = texts[:1] == [CUT]
    states = tuple(texts[1:] if is_end else texts)

    _require_known(agent, states)

    return Expected(states, is_end)


def _require_known(agent: Any, states: tuple[str, ...]) -> None:
    state = getattr(agent, "state", None)
    known = [state_text(member) for member in type(state)] if isinstance(state, Enum) else states
    # a configuration is written as its states, joined
    unknown = [
        repr(text) for text in states if text not in known and not {*text.split("+")} <= {*known}
    ]
    if unknown or not states:
        problem = f"names {', '.join(unknown)}" if unknown else "is empty"
        raise FieldValueError(
            f"the path {problem}: use the states {', '.join(known)}, such as 'a > b'"
        )


def _parts(path: str) -> list[str]:
    return [part.strip() for part in path.split(ARROW.strip())]


@dataclass(slots=True)
class _Steps:
    """States in the order in which an agent was in them, and the record of leaving each."""

    states: list[str]
    records: list[Any]

    def enter(self, state: str) -> None:
        self.states.append(state)
        self.records.append(None)


def _read_taken(agent: Any, *, needs_history: bool) -> Taken:
    history, state = getattr(agent, "state_history", None), _present_state(agent)

    try:
        steps = _steps_of(history or ())
    except AttributeError as error:
        if needs_history:
            problem = f"its history holds no transitions, {error}"
            raise _unreadable(agent, problem, state) from None
        steps = _Steps([], [])

    if not steps.states or steps.states[-1] != state:
        steps.enter(state)

    return Taken(
        tuple(steps.states), tuple(steps.records), _is_full(agent, history), history is not None
    )


def _steps_of(history: Any) -> _Steps:
    steps = _Steps([], [])
    for record in history:
        source = state_text(record.from_state)
        # the agent may have been moved by hand since the last record
        if not steps.states or steps.states[-1] != source:
            steps.enter(source)

        steps.records[-1] = record
        steps.enter(state_text(record.to_state))

    return steps


def _present_state(agent: Any) -> str:
    try:
        return state_text(agent.state)
    except AttributeError as error:
        raise AgentError(f"cannot read the path of {_describe(agent)}: {error}") from None


def _unreadable(agent: Any, problem: str, state: str) -> AgentError:
    return AgentError(
        f"cannot read the path of {_describe(agent)}: {problem}; compare what the fixture "
        f"transition_log recorded, transition_log.transitions(agent), or assert only where the "
        f"agent is now, '{CUT}{ARROW}{state}'"
    )


def _describe(agent: Any) -> str:
    return f"{type(agent).__name__} {agent_name(agent)!r}"


def _is_full(agent: Any, history: Any) -> bool:
    """Return True if the history may lack its beginning."""
    # the engine bounds every history that it writes itself
    writes_itself = callable(getattr(type(agent), "transition_to", None))
    default = None if writes_itself else DEFAULT_MAX_HISTORY_DEPTH
    limits = (getattr(agent, "max_history_depth", default), getattr(history, "maxlen", None))

    return history is not None and any(
        limit is not None and len(history) >= limit for limit in limits
    )


@dataclass(frozen=True, slots=True)
class Expected:
    """A path that an agent should have taken.

    Args:
        states: The states as texts.
        is_end: Whether they are only the end of the path.
    """

    states: tuple[str, ...]
    is_end: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """The path that an agent took.

    Args:
        states: The states as texts.
        records: The record of leaving each state; None if there is none.
        is_full: Whether the history is full, so that its beginning may be missing.
        has_history: Whether the agent keeps a history at all.
    """

    states: tuple[str, ...]
    records: tuple[Any, ...]
    is_full: bool
    has_history: bool


def _explain_failure(
    agent: Any, expected: Expected, taken: Taken, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    """Return the lines that explain why the path taken is not the one expected."""
    verb = "may have taken" if expected.states == taken.states else "took"
    yield f"agent {agent_name(agent)!r} {verb} another path:"
    yield f"  expected  {_shown(expected.states, is_cut=expected.is_end)}"
    yield f"  actual    {_shown(taken.states, is_cut=taken.is_full)}"

    if not taken.has_history:
        yield "it keeps no state_history, so only its current state is known"
        return
    if taken.is_full:
        yield _FULL.format(len(taken.records) - 1)
    if taken.is_full and not expected.is_end:
        return

    start = max(0, len(taken.states) - len(expected.states)) if expected.is_end else 0
    pairs = zip_longest(expected.states, taken.states[start:])
    place = next(place for place, (wanted, state) in enumerate(pairs) if wanted != state)
    if 0 < place < len(expected.states):
        source, target = expected.states[place - 1 : place + 1]
        record = taken.records[start + place - 1]
        yield from _missing_transition(agent, source, target, record, chart, context)


def _shown(states: Sequence[str], *, is_cut: bool) -> str:
    return ARROW.join([CUT, *states] if is_cut else states)


def _missing_transition(
    agent: Any, source: str, target: str, record: Any, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    if record is not None:
        yield f"instead, {record.trigger!r} led to {state_text(record.to_state)!r}"
    if chart is None:
        yield "to see which guard failed, pass chart="
        return

    leading = [
        each
        for each in chart.definition.transitions
        if (each.source, each.target) == (source, target)
    ]
    triggers = {each.trigger: each.source for each in leading}
    listed = ", ".join(map(repr, triggers)) or "no event: the chart has no such transition"
    yield f"{source!r} leads to {target!r} by {listed}"

    origin = "the given context"
    if context is None:
        context = _recorded_context(agent, record)
        origin = "the recorded context, which keeps only what identifies it (see context=),"
    for trigger, state in triggers.items():
        explanation = explain(chart.definition, agent, trigger, context, state)
        yield f"evaluated now, with {origin} {context!r}:\n{explanation}"


def _recorded_context(agent: Any, record: Any) -> Any:
    """Return the recorded context of a transition, by default of the agent's last."""
    if record is None:
        record = next(reversed(getattr(agent, "state_history", None) or ()), None)

    recorded = getattr(record, "context", None)
    # a number or a text is recorded in this form
    if isinstance(recorded, dict) and list(recorded) == ["value"]:
        recorded = recorded["value"]

    return recorded
