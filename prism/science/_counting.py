"""Choices as counts by agent, level and point of decision, and how far two of them diverge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from prism.runs._calibrated import RELEVANCE
from prism.runs._policy_file import Policy
from prism.science._choices import Choices, Point

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

ALL = "all"
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Counted:
    """Counts, or sums of probabilities.

    Args:
        matrix: One row an agent, one column a level, point and option.
    """

    matrix: Array

    def sums(self, weights: Array) -> Array:
        """Return the sums over agents, each taken so many times; one row a row of weights."""
        return weights @ self.matrix


@dataclass(frozen=True)
class Grid:
    """The cells in which choices are counted.

    Args:
        points: Where it was decided.
        levels: By what the decisions are grouped, and the groups: ``("archetype", "lurker")``.
        cells: One row a cell: the numbers of its level and its point.
        edges: Edges of the bins of relevance.
    """

    points: tuple[Point, ...]
    levels: tuple[tuple[str, str], ...]
    cells: Array
    edges: tuple[float, ...]

    @property
    def width(self) -> int:
        """Most options of a point."""
        return max(len(options) for _, _, options in self.points)

    def count(self, choices: Choices) -> Counted:
        """Count what was chosen."""
        import numpy as np

        places = {point: number for number, point in enumerate(self.points)}
        rows = choices.table.select("point", "chosen").rows()
        chosen = [
            (places[choices.points[point]], choices.points[point][2].index(name))
            for point, name in rows
        ]
        weights = np.zeros((len(rows), self.width))
        weights[np.arange(len(rows)), [option for _, option in chosen]] = 1

        return self._summed(choices, [place for place, _ in chosen], weights)

    def expect(self, choices: Choices, policy: Policy, of: Choices | None = None) -> Counted:
        """Sum up the probabilities that a policy gives to the options of the same questions.

        Args:
            choices: The choices, whose questions are taken.
            policy: The policy.
            of: Choices that these are a part of, and whose agents have a row each.
        """
        import numpy as np

        places = {point: number for number, point in enumerate(self.points)}
        rows = choices.table.select("point", "group", *choices.covariates).rows()
        known: dict[Any, Sequence[float]] = {}
        weights = np.zeros((len(rows), self.width))
        for number, row in enumerate(rows):
            if row not in known:
                point, group, *values = row
                named = dict(zip(choices.covariates, values, strict=True))
                state, event, options = choices.points[point]
                found = policy.look_up(state, event, options, group, named)
                known[row] = () if found is None else found.probabilities
            weights[number, : len(known[row])] = known[row]

        return self._summed(choices, [places[choices.points[row[0]]] for row in rows], weights, of)

    def agents_of(self, choices: Choices, of: Choices | None = None) -> Array:
        """Return the number of the agent of every decision, in the order of `Counted.matrix`."""
        import numpy as np

        keys = choices.table.select("run", "agent_id").rows()
        numbers = {agent: number for number, agent in enumerate(_agents(of or choices))}
        return np.array([numbers[key] for key in keys], dtype=int)

    def agents_in(self, counted: Counted) -> Array:
        """Return the number of agents that decided anything in each level."""
        import numpy as np

        by_cell = counted.matrix.reshape(len(counted.matrix), len(self.cells), self.width).sum(
            axis=2
        )
        found = [
            (by_cell[:, self.cells[:, 0] == level].sum(axis=1) > 0).sum()
            for level in range(len(self.levels))
        ]

        return np.array(found)

    def sizes(self, counts: Array) -> Array:
        """Return the number of decisions in each level."""
        import numpy as np

        by_cell = counts.reshape(len(self.cells), self.width).sum(axis=1)
        return np.bincount(self.cells[:, 0], by_cell, minlength=len(self.levels))

    def _summed(
        self, choices: Choices, points: Sequence[int], weights: Array, of: Choices | None = None
    ) -> Counted:
        import numpy as np

        cells = {tuple(cell): number for number, cell in enumerate(self.cells.tolist())}
        numbers = {level: number for number, level in enumerate(self.levels)}
        agents, everybody = self.agents_of(choices, of), _agents(of or choices)
        matrix = np.zeros((len(everybody), len(self.cells), self.width))
        for levels in _levels_of(choices, self.edges):
            columns = [
                cells[numbers[level], point] for level, point in zip(levels, points, strict=True)
            ]
            np.add.at(matrix, (agents, np.array(columns, dtype=int)), weights)

        return Counted(matrix.reshape(len(everybody), len(self.cells) * self.width))


def make_grid(compared: Sequence[Choices], bins: int) -> Grid:
    """Return the cells that the decisions of any of the choices fall in."""
    edges = tuple(number / bins for number in range(bins + 1))
    points = tuple(dict.fromkeys(point for each in compared for point in each.points))
    places = {point: number for number, point in enumerate(points)}
    found: dict[tuple[str, str], set[int]] = {}
    for each in compared:
        decided = [places[each.points[number]] for number in each.table["point"]]
        for levels in _levels_of(each, edges):
            for level, point in set(zip(levels, decided, strict=True)):
                found.setdefault(level, set()).add(point)

    order = [by for by, _ in found]
    levels = sorted(found, key=lambda level: (order.index(level[0]), level[1]))
    cells = [
        (number, point) for number, level in enumerate(levels) for point in sorted(found[level])
    ]

    return Grid(points, tuple(levels), _array(cells), edges)


def weighted_divergence(grid: Grid, left: Array, right: Array, smoothing: float) -> Array:
    """Return the Jensen-Shannon divergence of each level, in bits; NaN where it is unknown.

    Args:
        grid: The cells.
        left: Counts, one row a sample; its numbers of decisions weigh the points of a level.
        right: The counts to compare with.
        smoothing: What is added to each count.
    """
    import numpy as np

    shape = (-1, len(grid.cells), grid.width)
    options = [len(grid.points[point][2]) for point in grid.cells[:, 1]]
    is_option = np.arange(grid.width) < _array(options)[:, None]
    ours, theirs = (each.reshape(shape) for each in (left, right))
    sizes = ours.sum(axis=2)
    known = (sizes > 0) & (theirs.sum(axis=2) > 0)
    ours, theirs = ((each + smoothing) * is_option for each in (ours, theirs))

    with np.errstate(invalid="ignore"):
        p, q = (each / each.sum(axis=2, keepdims=True) for each in (ours, theirs))
    bits = np.where(known, _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2, 0.0)
    weights = np.where(known, sizes, 0.0)
    level = np.equal.outer(grid.cells[:, 0], np.arange(len(grid.levels))).astype(float)
    with np.errstate(invalid="ignore"):
        found: Array = (bits * weights) @ level / (weights @ level)

    return np.clip(found, 0, 1)


def _entropy(chances: Array) -> Array:
    import numpy as np

    safe = np.where(chances > 0, chances, 1.0)
    found: Array = -(safe * np.log2(safe)).sum(axis=2)
    return found


def _levels_of(choices: Choices, edges: Sequence[float]) -> list[list[tuple[str, str]]]:
    """Return the levels of every decision, by each thing that they are grouped by."""
    table = choices.table
    relevances = table[RELEVANCE].to_list() if RELEVANCE in table.columns else []

    return [
        [(ALL, ALL)] * table.height,
        [(choices.by, group) for group in table["group"]],
        [("state", state) for state in table["state"]],
        [(RELEVANCE, _bin_of(value, edges)) for value in relevances or [None] * table.height],
    ]


def _bin_of(value: float | None, edges: Sequence[float]) -> str:
    if value is None:
        return _UNKNOWN

    bins = list(pairwise(edges))
    low, high = next((each for each in bins if value < each[1]), bins[-1])
    return f"{low:.2f} to {high:.2f}"


def _agents(choices: Choices) -> tuple[Any, ...]:
    return tuple(choices.table.select("run", "agent_id").unique().sort("run", "agent_id").rows())


def _array(values: Any) -> Array:
    import numpy as np

    return np.asarray(values)
