"""Asserting which states an agent went through, and saying why it took another path."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any

from prism.errors import AgentError, FieldValueError
from prism.statechart import Definition, Statechart
from prism.statechart._engine.checks import is_foreign
from prism.statechart._engine.firing import living_charts
from prism.statechart._engine.writing import DEFAULT_MAX_HISTORY_DEPTH
from prism.statechart._identity import agent_name
from prism.statechart.inspection._explain import explain
from prism.statechart.states import state_text
from prism.telemetry._loggers import describe

CUT = "..."
ARROW = " > "

_SHOWN_BEFORE = 4
_SHOWN_AFTER = 4
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

    _require_known(agent, states)

    return Expected(states, is_end)


def _require_known(agent: Any, states: tuple[str, ...]) -> None:
    state = getattr(agent, "state", None)
    known = [state_text(member) for member in type(state)] if isinstance(state, Enum) else states
    unknown = [repr(text) for text in states if text not in known]
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


@dataclass(frozen=True, slots=True)
class _Row:
    """A path in a comparison.

    Args:
        name: The label in front of it.
        states: Its states; empty texts for missing ones.
        has_more_before: Whether it begins earlier than shown.
    """

    name: str
    states: tuple[str, ...]
    has_more_before: bool = False

    def is_cut_at(self, start: int) -> bool:
        """Return True if it has states before a place."""
        return self.has_more_before or (start > 0 and self.states[start - 1] != "")


@dataclass(frozen=True, slots=True)
class _Payload:
    """The context to evaluate guards with.

    Args:
        context: The context.
        origin: Where it comes from, for the message.
        is_whole: Whether it is all that the event carried, not just what a record keeps of it.
    """

    context: Any
    origin: str
    is_whole: bool


def explain_failure(
    agent: Any, expected: Expected, taken: Taken, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    """Return the lines that explain why the path taken is not the one expected."""
    rows = _align(expected, taken)
    wanted, actual = (row.states for row in rows)
    missing = max(wanted.count(""), actual.count(""))
    place = _first_difference(wanted, actual, missing)

    verb = "may have taken" if wanted == actual else "took"
    yield f"agent {agent_name(agent)!r} {verb} another path:"
    yield from _draw(rows, place)

    if not taken.has_history:
        yield "it keeps no state_history, so only its current state is known"
    elif taken.is_full:
        yield _FULL.format(len(taken.records) - 1)
    elif missing:
        yield f"its history is complete: it began in {taken.states[0]!r}"

    if missing < place < len(wanted):
        record = taken.records[len(taken.records) - len(actual) + place - 1]
        source, target = wanted[place - 1 : place + 1]
        yield from _missing_transition(agent, source, target, record, chart, context)


def _align(expected: Expected, taken: Taken) -> tuple[_Row, _Row]:
    """Return both paths from their beginning, or end to end if one beginning is not known."""
    if not (expected.is_end or taken.is_full):
        return _Row("expected", expected.states), _Row("actual", taken.states)

    is_open = taken.is_full or not taken.has_history
    wanted = expected.states[-len(taken.states) :] if is_open else expected.states
    actual = taken.states[-len(wanted) :] if expected.is_end else taken.states
    length = max(len(wanted), len(actual))

    wanted_has_more = expected.is_end or len(wanted) < len(expected.states)
    actual_has_more = is_open or len(actual) < len(taken.states)
    return (
        _Row("expected", _filled(wanted, length), wanted_has_more),
        _Row("actual", _filled(actual, length), actual_has_more),
    )


def _filled(states: tuple[str, ...], length: int) -> tuple[str, ...]:
    return ("",) * (length - len(states)) + states


def _first_difference(wanted: tuple[str, ...], actual: tuple[str, ...], missing: int) -> int:
    """Return the first place after the missing states at which two paths differ."""
    for place, (one, other) in enumerate(zip(wanted, actual, strict=False)):
        if one != other and place >= missing:
            return place

    # all that both have is the same, so that one begins or ends earlier
    return min(len(wanted), len(actual)) if missing == 0 else missing - 1


def _draw(rows: tuple[_Row, _Row], place: int) -> Iterator[str]:
    """Return both paths around a place, one below the other, with a mark where they differ."""
    start, end = max(0, place - _SHOWN_BEFORE), place + _SHOWN_AFTER
    shown = [[*row.states[start:end], *[CUT] * (len(row.states) > end)] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*shown, fillvalue="")]
    are_cut = [row.is_cut_at(start) for row in rows]
    margin = len(CUT + ARROW) if start or any(are_cut) else 0

    for row, cells, is_cut in zip(rows, shown, are_cut, strict=True):
        before = CUT + ARROW if is_cut else " " * margin
        yield f"  {row.name:<8}  {before}{_joined(cells, widths)}".rstrip()

    if rows[0].states != rows[1].states:
        indent = margin + sum(width + len(ARROW) for width in widths[: place - start])
        yield f"  {'':<8}  {' ' * indent}^ they differ here"


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    empty = cells.count("")
    indent = sum(width + len(ARROW) for width in widths[:empty])
    texts = [text.ljust(width) for text, width in zip(cells, widths, strict=False)]
    return " " * indent + ARROW.join(texts[empty:])


def _missing_transition(
    agent: Any, source: str, target: str, record: Any, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    instead = ""
    if record is not None:
        instead = f"instead, {record.trigger!r} led to {state_text(record.to_state)!r}; "

    found = [chart.definition] if chart is not None else _fitting_charts(agent)
    if len(found) != 1:
        which = f"of the charts in memory, {_names_of(found)} could be the agent's"
        yield f"{instead}to see which guard failed, pass chart=; {which}"
        return

    leading = [
        each for each in found[0].transitions if (each.source, each.target) == (source, target)
    ]
    triggers = {each.trigger: each.source for each in leading}
    yield f"{instead}{source!r} leads to {target!r} by {_listing(triggers)}"

    for trigger, state in triggers.items():
        payload = _payload_for(agent, trigger, record, context)
        yield _guard_outcomes(found[0], agent, trigger, state, payload)


def _listing(triggers: Iterable[str]) -> str:
    return ", ".join(map(repr, triggers)) or "no event: the chart has no such transition"


def _names_of(charts: Sequence[Definition[Any]]) -> str:
    names = Counter(repr(each.name) for each in charts)
    shown = [
        name if count == 1 else f"{name} ({count} charts)" for name, count in sorted(names.items())
    ]
    return ", ".join(shown) or "none"


def _guard_outcomes(
    chart: Definition[Any], agent: Any, trigger: str, state: Any, payload: _Payload
) -> str:
    explanation = explain(chart, agent, trigger, payload.context, state=state)
    raised = next((each for each in explanation.candidates if each.error is not None), None)
    if raised is None or raised.error is None or payload.is_whole:
        return f"evaluated now, with {payload.origin}:\n{explanation}"

    # the guard may have raised only because the record lacks what it reads
    return (
        f"evaluated now, with {payload.origin}, the guard of {raised.transition} raises "
        f"{describe(raised.error)}: a record keeps only what identifies a context, so the guard's "
        "outcome for the event is unknown; pass context="
    )


def _payload_for(agent: Any, trigger: str, record: Any, context: Any) -> _Payload:
    if context is not None:
        return _Payload(context, f"the context {context!r}", is_whole=True)

    # the context of an event that did not happen is unknown
    is_its_own = record is not None and record.trigger == trigger
    origin = "the recorded context" if is_its_own else "the context of that transition,"
    if record is None:
        origin = "the context of the last transition,"
        record = next(reversed(getattr(agent, "state_history", None) or ()), None)

    recorded = getattr(record, "context", None)
    if recorded is None:
        return _Payload(None, "no context", is_whole=is_its_own)
    # a number or a text is recorded in this form
    if isinstance(recorded, dict) and list(recorded) == ["value"]:
        recorded = recorded["value"]

    return _Payload(recorded, f"{origin} {recorded!r}", is_whole=False)


def _fitting_charts(agent: Any) -> list[Definition[Any]]:
    """Return the living charts that could have driven an agent, one for each definition."""
    fitting = _search_charts(agent)
    if len(fitting) > 1:
        # some may be left from earlier tests with nothing that refers to them; collecting them
        # takes long in a large suite, so only if it can make a difference
        del fitting
        gc.collect()
        fitting = _search_charts(agent)

    return fitting


def _search_charts(agent: Any) -> list[Definition[Any]]:
    fitting: list[Definition[Any]] = []
    for chart in living_charts():
        if _fits(chart, agent) and chart not in fitting:
            fitting.append(chart)

    return fitting


def _fits(chart: Definition[Any], agent: Any) -> bool:
    # members of other enums may have the same text, and so be equal
    if is_foreign(agent.state, chart):
        return False

    edges = {(each.source, each.trigger, each.target) for each in chart.transitions}
    history = getattr(agent, "state_history", None) or ()
    return agent.state in chart.states and all(
        (record.from_state, record.trigger, record.to_state) in edges for record in history
    )
