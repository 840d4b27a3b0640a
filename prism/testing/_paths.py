"""Asserting which states an agent went through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from prism.errors import AgentError, FieldValueError
from prism.statechart import Statechart
from prism.statechart._engine.writing import DEFAULT_MAX_HISTORY_DEPTH
from prism.statechart._identity import agent_name
from prism.statechart.states import state_text
from prism.testing._path_failure import ARROW, CUT, Expected, Taken, explain_failure


def assert_path(
    agent: Any,
    path: str | Sequence[Any],
    *,
    chart: Statechart[Any] | None = None,
    context: Any = None,
) -> None:
    """Assert that an agent went through these states, from the first in its history to its state.

    Self-transitions are not recorded, so they are not part of a path. A failure shows both paths
    and where they differ; for the first missing transition it shows the events that could have
    caused it, with the present outcomes of their guards.

    Args:
        agent: Any object with a ``state``, and a ``state_history`` if it has made transitions.
        path: The states, such as ``"idle > scrolling > evaluating"``, or a list of them. A path
            that begins with ``...`` gives only the end.
        chart: The chart that drives the agent; by default the one living chart that fits.
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

    raise AssertionError("\n".join(explain_failure(agent, expected, taken, chart, context)))


def _read_expected(agent: Any, path: str | Sequence[Any]) -> Expected:
    texts = _parts(path) if isinstance(path, str) else [state_text(item) for item in path]
    is_end = texts[:1] == [CUT]
    states = tuple(texts[1:] if is_end else texts)

    state = getattr(agent, "state", None)
    known = [state_text(member) for member in type(state)] if isinstance(state, Enum) else states
    unknown = [repr(text) for text in states if text not in known]
    if unknown or not states:
        problem = f"names {', '.join(unknown)}" if unknown else "is empty"
        raise FieldValueError(
            f"the path {problem}: use the states {', '.join(known)}, such as 'a > b'"
        )

    return Expected(states, is_end)


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
