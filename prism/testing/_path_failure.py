"""Why an agent took another path than expected: where the paths differ, and what guards say."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prism.statechart import Statechart
from prism.statechart._engine.arguments import is_foreign
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
        records: The record of leaving each state, None where there is none.
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
        name: What stands before it.
        states: Its states, empty texts where it has none.
        has_more_before: Whether it begins earlier than shown.
    """

    name: str
    states: tuple[str, ...]
    has_more_before: bool = False


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
        yield "it keeps no state_history, so that only its present state is known"
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
    longest = max(map(len, shown))
    widths = [
        max(len(cells[column]) for cells in shown if column < len(cells))
        for column in range(longest)
    ]
    margin = len(CUT + ARROW) if start or any(row.has_more_before for row in rows) else 0

    for row, cells in zip(rows, shown, strict=True):
        is_cut = row.has_more_before or (start and row.states[start - 1])
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

    found = [chart] if chart is not None else _fitting_charts(agent)
    if len(found) != 1:
        which = f"of the living charts, {_names_of(found)} could be the agent's"
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


def _names_of(charts: Sequence[Statechart[Any]]) -> str:
    names = Counter(repr(each.name) for each in charts)
    shown = [
        name if count == 1 else f"{name} ({count} charts)" for name, count in sorted(names.items())
    ]
    return ", ".join(shown) or "none"


def _guard_outcomes(
    chart: Statechart[Any], agent: Any, trigger: str, state: Any, payload: _Payload
) -> str:
    explanation = explain(chart.definition, agent, trigger, payload.context, state=state)
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


def _fitting_charts(agent: Any) -> list[Statechart[Any]]:
    """Return the living charts that could have driven an agent, one for each definition."""
    fitting = _search_charts(agent)
    if len(fitting) > 1:
        # some may be left from earlier tests with nothing that refers to them; collecting them
        # takes long in a large suite, so only where it can make a difference
        del fitting
        gc.collect()
        fitting = _search_charts(agent)

    return fitting


def _search_charts(agent: Any) -> list[Statechart[Any]]:
    fitting: list[Statechart[Any]] = []
    for chart in _existing_charts():
        if _fits(chart, agent) and chart not in fitting:
            fitting.append(chart)

    return fitting


def _existing_charts() -> Iterator[Statechart[Any]]:
    kinds: list[type] = [Statechart]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())

    # every object refers to its class, so this skips all others without a look from Python
    for found in gc.get_referrers(*kinds):
        # isinstance would ask a proxy, even a dead one
        is_chart = issubclass(type(found), Statechart)
        # a chart whose definition was refused lacks attributes
        if is_chart and hasattr(found, "strict"):
            yield found


def _fits(chart: Statechart[Any], agent: Any) -> bool:
    # members of other enums may have the same text, and so be equal
    if is_foreign(agent.state, chart.definition):
        return False

    edges = {(each.source, each.trigger, each.target) for each in chart.transitions}
    history = getattr(agent, "state_history", None) or ()
    return agent.state in chart.states and all(
        (record.from_state, record.trigger, record.to_state) in edges for record in history
    )
