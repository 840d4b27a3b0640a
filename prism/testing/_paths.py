"""Asserting which states an agent went through, with a failure that says where and why it went elsewhere."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from prism.errors import AgentError, FieldValueError
from prism.statechart import Statechart
from prism.statechart._engine.writing import DEFAULT_MAX_HISTORY_DEPTH
from prism.statechart._identity import agent_name
from prism.statechart.inspection._explain import explain
from prism.statechart.states import state_text
from prism.telemetry._loggers import describe

_CUT = "..."
_ARROW = " > "
_SHOWN_BEFORE = 4
_SHOWN_AFTER = 4
_LOST = (
    "its history is full, and may have lost what came before these {} moves: raise max_history_depth "
    f"({DEFAULT_MAX_HISTORY_DEPTH} where it is not set), or assert how the path ends, with '... > a > b'"
)


@dataclass(frozen=True, slots=True)
class _Way:
    """The way that an agent came: its states, and the record of the move out of each."""

    states: tuple[str, ...]
    moves: tuple[Any, ...]
    is_cut: bool
    keeps_history: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """One of two paths that are compared: its states, empty where it has none, and whether there are more before."""

    name: str
    states: tuple[str, ...]
    goes_back: bool = False


@dataclass(frozen=True, slots=True)
class _About:
    """What to put to the guards of an event, what to call that, and whether it is known to be the whole context."""

    context: Any
    origin: str
    is_whole: bool


def assert_path(
    agent: Any,
    path: str | Sequence[Any],
    *,
    chart: Statechart[Any] | None = None,
    context: Any = None,
) -> None:
    """Assert that an agent went through these states, from the first that its history knows to where it is now.

    Self-transitions are not recorded and so are no part of a path. The failure shows both paths,
    where they part, and for the first move that is missing the events that could have made it, with
    what their guards say now.

    Args:
        agent: Anything with a ``state``, and a ``state_history`` if it has made moves.
        path: The states, such as ``"idle > scrolling > evaluating"``, or a list of them. One that
            begins with ``...`` tells only how the way ends.
        chart: The chart that the agent is driven by; without it the living charts are searched for
            one that fits.
        context: What the missing event would have been about; by default what the record at that
            place says, or that of the last move.

    Raises:
        AssertionError: If the agent took another path.
        AgentError: If its history holds something other than transitions.
        FieldValueError: If the path names a state that the agent's enum does not have.
    """
    __tracebackhide__ = True
    expected, ends_so = _expected(agent, path)
    way = _way_of(agent, is_needed=not ends_so or len(expected) > 1)
    actual = way.states[-len(expected) :] if ends_so else way.states
    if actual == expected and (ends_so or not way.is_cut):
        return

    raise AssertionError("\n".join(_difference(agent, expected, ends_so, way, chart, context)))


def _expected(agent: Any, path: str | Sequence[Any]) -> tuple[tuple[str, ...], bool]:
    given = (
        [part.strip() for part in path.split(">")]
        if isinstance(path, str)
        else [state_text(item) for item in path]
    )
    ends_so = given[:1] == [_CUT]
    states = tuple(given[ends_so:])
    state = getattr(agent, "state", None)
    known = [state_text(member) for member in type(state)] if isinstance(state, Enum) else states
    wrong = [repr(text) for text in states if text not in known]
    if wrong or not states:
        problem = f"names {', '.join(wrong)}" if wrong else "is empty"
        raise FieldValueError(
            f"the path {problem}: use the states {', '.join(known)}, such as 'a > b'"
        )

    return states, ends_so


def _way_of(agent: Any, *, is_needed: bool) -> _Way:
    """Read the way from the history; one that cannot be read counts as empty where only the present is asked for."""
    history, now = getattr(agent, "state_history", None), _present_state(agent)
    states: list[str] = []
    moves: list[Any] = []

    try:
        for record in history or ():
            # moved by hand in between
            if not states or states[-1] != state_text(record.from_state):
                states.append(state_text(record.from_state))
                moves.append(None)

            moves[-1] = record
            states.append(state_text(record.to_state))
            moves.append(None)
    except AttributeError as error:
        if is_needed:
            raise _unreadable(agent, f"its history holds no transitions, {error}", now) from None
        states, moves = [], []

    if not states or states[-1] != now:
        states.append(now)
        moves.append(None)

    return _Way(tuple(states), tuple(moves), _is_full(agent, history), history is not None)


def _present_state(agent: Any) -> str:
    try:
        return state_text(agent.state)
    except AttributeError as error:
        raise AgentError(
            f"cannot read the path of {type(agent).__name__} {agent_name(agent)!r}: {error}"
        ) from None


def _unreadable(agent: Any, problem: str, now: str) -> AgentError:
    return AgentError(
        f"cannot read the path of {type(agent).__name__} {agent_name(agent)!r}: {problem}; compare what the fixture "
        f"transition_log heard, transition_log.moves(agent), or assert only where it is now, '{_CUT}{_ARROW}{now}'"
    )


def _is_full(agent: Any, history: Any) -> bool:
    """Return whether a history may have lost its beginning: the engine bounds every one that it writes itself."""
    writes_itself = callable(getattr(type(agent), "transition_to", None))
    depth = getattr(
        agent, "max_history_depth", None if writes_itself else DEFAULT_MAX_HISTORY_DEPTH
    )
    limits = (depth, getattr(history, "maxlen", None))

    return history is not None and any(
        limit is not None and len(history) >= limit for limit in limits
    )


def _difference(
    agent: Any,
    expected: tuple[str, ...],
    ends_so: bool,
    way: _Way,
    chart: Statechart[Any] | None,
    context: Any,
) -> Iterator[str]:
    rows = _beside(expected, ends_so, way)
    wanted, actual = (row.states for row in rows)
    empty = max(wanted.count(""), actual.count(""))
    parts = _parting(wanted, actual, empty)
    yield f"agent {agent_name(agent)!r} {'may have taken' if wanted == actual else 'took'} another path:"
    yield from _aligned(rows, parts)

    if not way.keeps_history:
        yield "it keeps no state_history, so that only its present state is known"
    elif way.is_cut:
        yield _LOST.format(len(way.moves) - 1)
    elif empty:
        yield f"its history is whole: it began in {way.states[0]!r}"

    if empty < parts < len(wanted):
        record = way.moves[len(way.moves) - len(actual) + parts - 1]
        yield from _missing_move(agent, wanted[parts - 1 : parts + 1], record, chart, context)


def _beside(expected: tuple[str, ...], ends_so: bool, way: _Way) -> tuple[_Row, _Row]:
    """Put both paths beside each other, end to end where it is not known, or not asked, how they began."""
    if not (ends_so or way.is_cut):
        return _Row("expected", expected), _Row("actual", way.states)

    is_open = way.is_cut or not way.keeps_history
    wanted = expected[-len(way.states) :] if is_open else expected
    actual = way.states[-len(wanted) :] if ends_so else way.states
    length = max(len(wanted), len(actual))

    return (
        _Row("expected", _from_end(wanted, length), ends_so or len(wanted) < len(expected)),
        _Row("actual", _from_end(actual, length), is_open or len(actual) < len(way.states)),
    )


def _from_end(states: tuple[str, ...], length: int) -> tuple[str, ...]:
    return ("",) * (length - len(states)) + states


def _parting(expected: tuple[str, ...], actual: tuple[str, ...], empty: int) -> int:
    """Find where two paths part; where what they both have is the same, one begins before the other."""
    pairs = list(zip(expected, actual, strict=False))
    same = min(len(expected), len(actual)) if empty == 0 else empty - 1
    return next(
        (place for place, (one, other) in enumerate(pairs) if one != other and place >= empty), same
    )


def _aligned(rows: tuple[_Row, _Row], parts: int) -> Iterator[str]:
    """Return both paths around the place where they part, one below the other, with a mark."""
    start, end = max(0, parts - _SHOWN_BEFORE), parts + _SHOWN_AFTER
    shown = [[*row.states[start:end], *[_CUT] * (len(row.states) > end)] for row in rows]
    longest = max(map(len, shown))
    widths = [
        max(len(cells[place]) for cells in shown if place < len(cells)) for place in range(longest)
    ]
    margin = len(_CUT + _ARROW) if start or any(row.goes_back for row in rows) else 0
    for row, cells in zip(rows, shown, strict=True):
        before = (
            _CUT + _ARROW if row.goes_back or (start and row.states[start - 1]) else " " * margin
        )
        yield f"  {row.name:<8}  {before}{_joined(cells, widths)}".rstrip()

    if rows[0].states != rows[1].states:
        indent = margin + sum(width + len(_ARROW) for width in widths[: parts - start])
        yield f"  {'':<8}  {' ' * indent}^ here they part"


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    empty = cells.count("")
    indent = sum(width + len(_ARROW) for width in widths[:empty])
    texts = [text.ljust(width) for text, width in zip(cells, widths, strict=False)]
    return " " * indent + _ARROW.join(texts[empty:])


def _missing_move(
    agent: Any, move: tuple[str, ...], record: Any, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    source, target = move
    made = (
        f"instead, {record.trigger!r} led to {state_text(record.to_state)!r}; "
        if record is not None
        else ""
    )
    found = [chart] if chart is not None else _fitting_charts(agent)
    if len(found) != 1:
        living = f"of the living charts, {_names_of(found)} could be the agent's"
        yield f"{made}to learn which guard said no, give chart=; {living}"
        return

    ways = [item for item in found[0].transitions if (item.source, item.target) == (source, target)]
    yield f"{made}{source!r} leads to {target!r} by {_listing(item.trigger for item in ways)}"

    for trigger, state in {item.trigger: item.source for item in ways}.items():
        yield _answer(
            found[0], agent, trigger, state, _context_for(agent, trigger, record, context)
        )


def _listing(triggers: Iterator[str]) -> str:
    return (
        ", ".join(map(repr, dict.fromkeys(triggers)))
        or "no event: the chart has no such transition"
    )


def _names_of(charts: Sequence[Statechart[Any]]) -> str:
    names = Counter(repr(each.name) for each in charts)
    shown = [
        name if count == 1 else f"{name} ({count} charts)" for name, count in sorted(names.items())
    ]
    return ", ".join(shown) or "none"


def _answer(chart: Statechart[Any], agent: Any, trigger: str, state: Any, about: _About) -> str:
    explanation = explain(chart.definition, agent, trigger, about.context, state=state)
    raised = next((found for found in explanation.candidates if found.error is not None), None)
    if raised is None or raised.error is None or about.is_whole:
        return f"asked now, with {about.origin}:\n{explanation}"

    return (
        f"asked now, with {about.origin}, the guard of {raised.transition} raises {describe(raised.error)}: a record "
        "keeps only what identifies a context, so that what the guard says to the event cannot be told; give context="
    )


def _context_for(agent: Any, trigger: str, record: Any, context: Any) -> _About:
    if context is not None:
        return _About(context, f"the context {context!r}", is_whole=True)

    is_its_own = record is not None and record.trigger == trigger
    origin = "the recorded context" if is_its_own else "the context of that move,"
    if record is None:
        origin = "the context of the last move,"
        record = next(reversed(getattr(agent, "state_history", None) or ()), None)

    recorded = getattr(record, "context", None)
    if recorded is None:
        return _About(None, "no context", is_whole=is_its_own)
    # so a record keeps a number or a text
    if isinstance(recorded, dict) and list(recorded) == ["value"]:
        recorded = recorded["value"]

    return _About(recorded, f"{origin} {recorded!r}", is_whole=False)


def _fitting_charts(agent: Any) -> list[Statechart[Any]]:
    """Find the living charts that could have driven an agent; of those with the same definition, one."""
    gc.collect()  # a chart of an earlier test, which nothing refers to any more, is no candidate
    fitting: list[Statechart[Any]] = []
    for found in gc.get_objects():
        # isinstance would ask a proxy, even one of the dead
        is_chart = issubclass(type(found), Statechart)
        # one whose definition was refused is not
        is_complete = is_chart and hasattr(found, "strict")
        if is_complete and _fits(found, agent) and found not in fitting:
            fitting.append(found)

    of_its_states = [
        chart for chart in fitting if any(state is agent.state for state in chart.states)
    ]

    # members of other enums may have the same text, and so be equal
    return of_its_states or fitting


def _fits(chart: Statechart[Any], agent: Any) -> bool:
    moves = {(item.source, item.trigger, item.target) for item in chart.transitions}
    history = getattr(agent, "state_history", None) or ()
    return agent.state in chart.states and all(
        (record.from_state, record.trigger, record.to_state) in moves for record in history
    )
