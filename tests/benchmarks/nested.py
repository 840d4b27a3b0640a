"""Fires of charts with states inside states, as multiples of a guarded fire of a flat chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from prism.agents import StatechartMixin
from prism.statechart import State, Statechart, Transition
from tests.benchmarks.fire import allowed
from tests.benchmarks.harness import Column, Effort, Table, measure, named, ratio

FLAT = "flat, guarded"

At = StrEnum("At", "OUTER INNER ONE TWO")
Day = StrEnum("Day", "AWAKE PHONE BODY IDLE FEED FRESH TIRED")


class Inside(StatechartMixin):
    """An agent of the charts without regions."""

    state_type = At


class Person(StatechartMixin):
    """An agent of the charts with two regions."""

    state_type = Day


def note(_agent: Any, _context: Any) -> None:
    """Do nothing, as an entry or exit action."""


def _flat() -> Statechart[Any]:
    return Statechart([At.ONE, At.TWO], _between(At.ONE, At.TWO, allowed), initial=At.ONE)


def _deep(action: Any = None) -> Statechart[Any]:
    leaves = [State(state, entry=action, exit=action) for state in (At.ONE, At.TWO)]
    tree = State(At.OUTER, [State(At.INNER, leaves)])
    return Statechart([tree], _between(At.ONE, At.TWO), initial=At.ONE)


def _regions(guard: Any = None, action: Any = None) -> Statechart[Any]:
    def region(state: Day, *leaves: Day) -> State[Day]:
        return State(state, [State(leaf, entry=action, exit=action) for leaf in leaves])

    regions = [region(Day.PHONE, Day.IDLE, Day.FEED), region(Day.BODY, Day.FRESH, Day.TIRED)]
    moves = _between(Day.IDLE, Day.FEED, guard) + _between(Day.FRESH, Day.TIRED, guard)
    tree = [State(Day.AWAKE, regions, parallel=True)]
    return Statechart(tree, moves, initial=(Day.IDLE, Day.FRESH))


def _between(one: Any, other: Any, guard: Any = None) -> list[Transition[Any]]:
    return [Transition("go", one, other, guard), Transition("go", other, one, guard)]


CHARTS: dict[str, tuple[Callable[[], Statechart[Any]], type[StatechartMixin], float | None]] = {
    FLAT: (_flat, Inside, None),
    "depth 3": (_deep, Inside, 1.1),
    "depth 3, entry and exit on both": (lambda: _deep(note), Inside, 2.3),
    "two regions": (_regions, Person, 1.2),
    "two regions, entry and exit": (lambda: _regions(action=note), Person, 2.5),
    "two regions, both guarded": (lambda: _regions(allowed), Person, 3.9),
}
"""Each chart with its agent, and how many times as long as the flat one it may take."""


def run(effort: Effort) -> Sequence[Table]:
    """Compare charts of several shapes with a flat one."""
    found = measure([_column(name) for name in CHARTS], effort)
    flat = named(FLAT, found)
    claims = [
        claim
        for name, (_, _, most) in CHARTS.items()
        if most is not None
        for claim in ratio(
            f"{name}: how many times as long as {FLAT}", named(name, found), flat, at_most=most
        )
    ]
    return [Table("fire of charts with states inside states", "µs", FLAT, found, claims)]


def _column(name: str) -> Column:
    build, kind, _ = CHARTS[name]
    chart, agent = build(), kind()
    chart.begin(agent)
    return Column(name, "chart.fire(agent, 'go')", {"chart": chart, "agent": agent})
