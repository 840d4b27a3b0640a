"""Asserting which states an agent went through, and saying why it took another path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any

from prism.errors import AgentError, FieldValueError
from prism.statechart import Statechart
from prism.statechart.inspection import explain
from prism.statechart.memory import count_of
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.statechart.transitions import DEFAULT_MAX_HISTORY_DEPTH

CUT = "..."
ARROW = " > "


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
    parts = path.split(ARROW.strip()) if isinstance(path, str) else path
    expected = [state_text(part).strip() for part in parts]
    is_end = expected[:1] == [CUT]
    expected = expected[is_end:]
    _require_states(agent, expected)

    states, records = _path_of(agent)
    start = max(0, len(states) - len(expected)) if is_end else 0
    is_cut = not is_end and _may_be_cut(agent)
    if states[start:] == expected and not is_cut:
        return

    verb = "may have taken" if states[start:] == expected else "took"
    lines = [
        f"agent {agent_name(agent)!r} {verb} another path:",
        f"  expected  {ARROW.join([CUT, *expected] if is_end else expected)}",
        f"  actual    {ARROW.join([CUT, *states] if is_cut else states)}",
    ]
    if is_cut:
        lines.append(
            "its history is full, and may have lost what came before these "
            f"{len(states) - 1} transitions: raise max_history_depth "
            f"({DEFAULT_MAX_HISTORY_DEPTH} where it is not set), or assert how the path ends, with "
            f"'{CUT} > a > b'"
        )
    else:
        lines += _missing(agent, expected, states[start:], records[start:], chart, context)
    raise AssertionError("\n".join(lines))


def _require_states(agent: Any, states: Sequence[str]) -> None:
    state = getattr(agent, "state", None)
    valid = [state_text(member) for member in type(state)] if isinstance(state, Enum) else states
    # a configuration is written as its states, joined
    unknown = [
        repr(text) for text in states if text not in valid and not {*text.split("+")} <= {*valid}
    ]
    if unknown or not states:
        problem = f"names {', '.join(unknown)}" if unknown else "is empty"
        raise FieldValueError(
            f"the path {problem}: use the states {', '.join(valid)}, such as 'a > b'"
        )


def _history_of(agent: Any) -> Any:
    """Return an agent's records, wherever they are kept, or what its own class keeps as such."""
    return Statechart.history(agent) or getattr(agent, "state_history", None)


def _path_of(agent: Any) -> tuple[list[str], list[Any]]:
    """Return the states of an agent in order, and the record of leaving each, if there is one.

    Of an agent that keeps no history, it is the present state alone.
    """
    states: list[str] = []
    records: list[Any] = []

    def enter(state: Any) -> None:
        if states[-1:] != [state_text(state)]:
            states.append(state_text(state))
            records.append(None)

    try:
        for record in _history_of(agent) or ():
            # the agent may have been moved by hand since the last record
            enter(record.from_state)
            records[-1] = record
            enter(record.to_state)
        if not states or hasattr(agent, "state"):
            enter(agent.state)
    except AttributeError as error:
        name = f"{type(agent).__name__} {agent_name(agent)!r}"
        raise AgentError(
            f"cannot read the path of {name}: {error}; compare what the fixture "
            "transition_log recorded: transition_log.transitions(agent)"
        ) from None

    return states, records


def _may_be_cut(agent: Any) -> bool:
    """Return True if the history may lack its beginning."""
    history = _history_of(agent)
    # the engine bounds every history that it writes itself
    writes_itself = callable(getattr(type(agent), "transition_to", None))
    default = None if writes_itself else DEFAULT_MAX_HISTORY_DEPTH
    depth = count_of(agent, "max_history_depth") or default
    limits = depth, count_of(history, "maxlen")

    return history is not None and any(
        limit is not None and len(history) >= limit for limit in limits
    )


def _missing(
    agent: Any,
    expected: Sequence[str],
    states: Sequence[str],
    records: Sequence[Any],
    chart: Statechart[Any] | None,
    context: Any,
) -> Iterator[str]:
    """Yield what is known of the first transition that is missing."""
    if _history_of(agent) is None:
        yield "it keeps no state_history, so only its current state is known"
        return

    pairs = zip_longest(expected, states)
    index = next(index for index, (wanted, state) in enumerate(pairs) if wanted != state)
    if not 0 < index < len(expected):
        return

    record = records[index - 1]
    if record is not None:
        yield f"instead, {record.trigger!r} led to {state_text(record.to_state)!r}"
    if chart is None:
        yield "to see which guard failed, pass chart="
        return

    yield from _explained(agent, expected[index - 1], expected[index], record, chart, context)


def _explained(
    agent: Any, source: str, target: str, record: Any, chart: Statechart[Any], context: Any
) -> Iterator[str]:
    state = chart.state_of(source) if chart.can_be_in(source) else None
    possible = () if state is None else chart.triggers
    triggers = [each for each in possible if target in chart.valid_targets(state, each)]
    listed = ", ".join(map(repr, triggers)) or "no event: the chart has no such transition"
    yield f"{source!r} leads to {target!r} by {listed}"

    origin = "the given context"
    if context is None:
        context = _recorded_context(agent, record)
        origin = "the recorded context, which keeps only what identifies it (see context=),"
    for trigger in triggers:
        explanation = explain(chart.definition, agent, trigger, context, state)
        yield f"evaluated now, with {origin} {context!r}:\n{explanation}"


def _recorded_context(agent: Any, record: Any) -> Any:
    """Return the recorded context of a transition, by default of the agent's last."""
    record = record or next(reversed(agent.state_history), None)
    recorded = getattr(record, "context", None)
    # a number or a text is recorded in this form
    if isinstance(recorded, dict) and list(recorded) == ["value"]:
        recorded = recorded["value"]

    return recorded
