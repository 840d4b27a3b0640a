"""Nested states, and the transitions between them, on one level of the tree.

Level 1 has the outermost states. A leaf is on its own level and on all deeper ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.statechart.states import SEPARATOR

Inside = Mapping[str, Sequence[str]]
"""The states inside each composite state."""

Path = tuple[str, ...]
"""A state on a level, preceded by the states that contain it, outermost first."""


@dataclass(frozen=True)
class Level:
    """One level of all charts of some logs.

    Args:
        depth: The level, 1 for the outermost states.
        inside_of: Returns the states inside each composite state, for a run and a chart.
    """

    depth: int
    inside_of: Callable[[int, str | None], Inside]
    _known: dict[tuple[int, str | None, str], tuple[Path, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, logs: RunLogs, depth: int) -> Level:
        """Return a level of the charts of logs."""
        return cls(depth, lambda run, chart: logs.runs[run].charts.get(chart or "", {}))

    def paths(self, run: int, chart: str | None, state: str) -> tuple[Path, ...]:
        """Return the states that an agent in a state is in on the level, one for each region."""
        key = run, chart, state
        if key not in self._known:
            found = _paths(state, self.inside_of(run, chart), self.depth)
            self._known[key] = tuple(dict.fromkeys(found))
        return self._known[key]

    def states(self, table: pl.DataFrame, *sums: str) -> pl.DataFrame:
        """Add up the numbers of a table by state on the level.

        An agent in several regions counts in each of them.

        Args:
            table: Has ``run``, ``chart`` and ``state``.
            sums: The columns to add up; a sum with an unknown part is unknown.
        """
        placed = self._replaced(
            table,
            ["state"],
            lambda run, chart, state: ((path[-1],) for path in self.paths(run, chart, state)),
        )
        others = [name for name in table.columns if name not in sums]
        added = (
            pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
            for name in sums
        )
        return placed.group_by(others, maintain_order=True).agg(*added).select(table.columns)

    def transitions(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return a table of transitions with the states on the level that each leaves and enters.

        A transition within one state of the level is left out. One that leaves or enters several
        regions has several rows.

        Args:
            table: Has ``run``, ``chart``, ``from_state`` and ``to_state``.
        """
        return self._replaced(
            table,
            ["from_state", "to_state"],
            lambda run, chart, source, target: changes(
                self.paths(run, chart, source), self.paths(run, chart, target)
            ),
        )

    def _replaced(
        self, table: pl.DataFrame, columns: list[str], by: Callable[..., Iterable[tuple[str, ...]]]
    ) -> pl.DataFrame:
        """Replace the values of columns by their states on the level, with one row for each."""
        key = ["run", "chart", *columns]
        rows = [
            (*known, *new) for known in table.select(key).unique().iter_rows() for new in by(*known)
        ]
        schema: dict[str, Any] = {name: table.schema[name] for name in key}
        schema |= {f"{name} on level": pl.String() for name in columns}
        levels = pl.DataFrame(rows, schema=schema, orient="row")
        joined = table.join(levels, on=key, nulls_equal=True, maintain_order="left")

        return joined.with_columns(
            pl.col(f"{name} on level").alias(name) for name in columns
        ).select(table.columns)


def changes(before: Sequence[Path], after: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the states that are left and entered on a level, paired within their regions."""
    left = [path for path in before if path not in after]
    entered = [path for path in after if path not in before]
    pairs = [(path, other) for path in left for other in _nearest(path, entered)]
    pairs += [(other, path) for path in entered for other in _nearest(path, left)]
    for path, other in dict.fromkeys(pairs):
        yield path[-1], other[-1]


def _nearest(path: Path, others: Sequence[Path]) -> list[Path]:
    """Return the states that share the most enclosing states with a given one."""
    shared = [len({*path}.intersection(other)) for other in others]
    return [other for other, number in zip(others, shared, strict=True) if number == max(shared)]


def on_level_of(table: pl.DataFrame, inside: Inside, depth: int) -> pl.DataFrame:
    """Return the agents and shares on a level, for a single run and chart without columns."""
    named = table.with_columns(run=pl.lit(0, pl.UInt32), chart=pl.lit(None, pl.String))
    level = Level(depth, lambda _run, _chart: inside)
    return level.states(named, "agents", "share").drop("run", "chart")


def depth_of(inside: Inside) -> int:
    """Return the number of levels of a chart."""
    around = {each: composite for composite, states in inside.items() for each in states}
    return max((len([*_path(state, around)]) for state in around), default=1)


def _paths(state: str, inside: Inside, depth: int) -> Iterator[Path]:
    around = {each: composite for composite, states in inside.items() for each in states}
    leaves = state.split(SEPARATOR) if around and state not in around else [state]
    return (tuple(_path(leaf, around))[:depth] for leaf in leaves)


def _path(state: str, around: Mapping[str, str]) -> Iterator[str]:
    """Yield the states that contain a state, outermost first, and the state itself."""
    if state in around:
        yield from _path(around[state], around)
    yield state
