"""Asserting which states an agent went through, with a failure that says where and why it went elsewhere."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from prism.errors import AgentError, FieldValueError
from prism.statechart import Statechart
from prism.statechart.bookkeeping import agent_name
from prism.statechart.explain import explain
from prism.statechart.states import state_text

_CUT = "..."
_ARROW = " > "
_SHOWN_BEFORE = 4
_SHOWN_AFTER = 4
_LOST = (
    "its history is full, and may have lost what came before these {} moves: raise max_history_depth, or assert how "
    "the path ends, with '... > a > b'"
)


@dataclass(frozen=True, slots=True)
class _Way:
    """The way that an agent came: its states, and the context of the move out of each."""

    states: tuple[str, ...]
    moves: tuple[Any, ...]
    is_cut: bool = False
    keeps_history: bool = True


def assert_path(
    agent: Any, path: str | Sequence[Any], *, chart: Statechart[Any] | None = None, context: Any = None
) -> None:
    """Assert that an agent went through these states, from the first that its history knows to where it is now.

    Self-transitions are not recorded and so are no part of a path. The failure shows both paths, where they part, and
    for the first move that is missing the events that could have made it, with what their guards say now.

    Args:
        agent: Anything with a ``state``, and a ``state_history`` if it has made moves.
        path: The states, such as ``"idle > scrolling > evaluating"``, or a list of them. One that begins with ``...``
            tells only how the way ends.
        chart: The chart that the agent is driven by; without it the living charts are searched for one that fits.
        context: What the missing event would have been about; by default what the record at that place says.

    Raises:
        AssertionError: If the agent took another path.
        AgentError: If its history holds something other than transitions.
        FieldValueError: If the path names a state that the agent's enum does not have.
    """
    __tracebackhide__ = True
    expected, ends_so = _expected(agent, path)
    way = _way_of(agent)
    actual = way.states
    if ends_so and len(actual) >= len(expected):
        actual = actual[len(actual) - len(expected) :]
    if actual == expected and (ends_so or not way.is_cut):
        return
    raise AssertionError("\n".join(_difference(agent, expected, ends_so, way, chart, context)))


def _expected(agent: Any, path: str | Sequence[Any]) -> tuple[tuple[str, ...], bool]:
    given = [part.strip() for part in path.split(">")] if isinstance(path, str) else [state_text(item) for item in path]
    ends_so = given[:1] == [_CUT]
    states = tuple(given[ends_so:])
    state = getattr(agent, "state", None)
    known = [state_text(member) for member in type(state)] if isinstance(state, Enum) else states
    wrong = [repr(text) for text in states if text not in known]
    if wrong or not states:
        problem = f"names {', '.join(wrong)}" if wrong else "is empty"
        raise FieldValueError(f"the path {problem}: use the states {', '.join(known)}, such as 'a > b'")
    return states, ends_so


def _way_of(agent: Any) -> _Way:
    history = getattr(agent, "state_history", None)
    states: list[str] = []
    moves: list[Any] = []
    try:
        for record in history or ():
            if not states or states[-1] != state_text(record.from_state):  # moved by hand in between
                states.append(state_text(record.from_state))
                moves.append(None)
            moves[-1] = record
            states.append(state_text(record.to_state))
            moves.append(None)
        now = state_text(agent.state)
    except AttributeError as error:
        raise AgentError(f"cannot read the path of {type(agent).__name__} {agent_name(agent)!r}: {error}") from None
    if not states or states[-1] != now:
        states.append(now)
        moves.append(None)
    depth = getattr(history, "maxlen", None) or getattr(agent, "max_history_depth", None)
    is_cut = history is not None and depth is not None and len(history) >= depth
    return _Way(tuple(states), tuple(moves), is_cut, history is not None)


def _difference(
    agent: Any, expected: tuple[str, ...], ends_so: bool, way: _Way, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    from_end = ends_so or way.is_cut
    length = min(len(expected), len(way.states)) if from_end else None
    wanted, actual = (path[len(path) - length :] if length else path for path in (expected, way.states))
    parts = _first_difference(wanted, actual)
    yield f"agent {agent_name(agent)!r} {'may have taken' if wanted == actual else 'took'} another path:"
    yield from _aligned(wanted, actual, parts, _CUT + _ARROW if from_end else "")
    if not way.keeps_history:
        yield "it keeps no state_history, so that only its present state is known"
    elif way.is_cut:
        yield _LOST.format(len(way.moves) - 1)
    if 0 < parts < len(wanted):
        record = way.moves[len(way.moves) - len(actual) + parts - 1]
        yield from _missing_move(agent, wanted[parts - 1 : parts + 1], record, chart, context)


def _first_difference(expected: tuple[str, ...], actual: tuple[str, ...]) -> int:
    pairs = zip(expected, actual, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(actual)))


def _aligned(expected: tuple[str, ...], actual: tuple[str, ...], parts: int, before: str) -> Iterator[str]:
    """Give both paths, each state below the other's, and a mark where they part; far from there they are cut short."""
    start, end = max(0, parts - _SHOWN_BEFORE), parts + _SHOWN_AFTER
    before = _CUT + _ARROW if start else before
    rows = [list(path[start:end]) + [_CUT] * (len(path) > end) for path in (expected, actual)]
    longest = max(map(len, rows))
    widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(longest)]
    for name, row in zip(("expected", "actual"), rows, strict=True):
        shown = _ARROW.join(text.ljust(width) for text, width in zip(row, widths, strict=False))
        yield f"  {name:<8}  {before}{shown}".rstrip()
    if expected == actual:
        return
    indent = len(before) + sum(width + len(_ARROW) for width in widths[: parts - start])
    yield f"  {'':<8}  {' ' * indent}^ here they part"


def _missing_move(
    agent: Any, move: tuple[str, ...], record: Any, chart: Statechart[Any] | None, context: Any
) -> Iterator[str]:
    source, target = move
    made = f"instead, {record.trigger!r} led to {state_text(record.to_state)!r}; " if record is not None else ""
    found = [chart] if chart is not None else list(_fitting_charts(agent))
    if len(found) != 1:
        names = ", ".join(sorted({repr(each.name) for each in found})) or "none"
        yield f"{made}to learn which guard said no, give chart=; of the living charts, {names} could be the agent's"
        return
    ways = [item for item in found[0].transitions if (item.source, item.target) == (source, target)]
    yield f"{made}{source!r} leads to {target!r} by {_listing(item.trigger for item in ways)}"
    about, origin = _context_for(agent, record, context)
    for trigger in dict.fromkeys(item.trigger for item in ways):
        state = next(item.source for item in ways)
        yield f"asked now, with {origin}:"
        yield str(explain(found[0], agent, trigger, about, state=state))


def _listing(triggers: Iterator[str]) -> str:
    return ", ".join(map(repr, dict.fromkeys(triggers))) or "no event: the chart has no such transition"


def _context_for(agent: Any, record: Any, context: Any) -> tuple[Any, str]:
    if context is not None:
        return context, f"the context {context!r}"
    if record is None and getattr(agent, "state_history", None):
        record = agent.state_history[-1]
    recorded = getattr(record, "context", None)
    return recorded, "no context" if recorded is None else f"the recorded context {recorded!r}"


def _fitting_charts(agent: Any) -> Iterator[Statechart[Any]]:
    """Find the living charts that could have driven an agent; of those that look alike, one."""
    seen: set[Any] = set()
    for found in gc.get_objects():
        if isinstance(found, Statechart) and _fits(found, agent):
            looks = found.name, tuple(map(str, found.transitions))
            if looks not in seen:
                yield found
            seen.add(looks)


def _fits(chart: Statechart[Any], agent: Any) -> bool:
    moves = {(item.source, item.trigger, item.target) for item in chart.transitions}
    history = getattr(agent, "state_history", None) or ()
    return agent.state in chart.states and all(
        (record.from_state, record.trigger, record.to_state) in moves for record in history
    )
