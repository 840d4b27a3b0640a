"""How far the choices of a model and those of a policy lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from prism.errors import FieldValueError
from prism.runs._calibrated import ARCHETYPE, RELEVANCE
from prism.runs._policy_file import ModelKind, Policy
from prism.science._calibrate import LEAST, calibrate_choices
from prism.science._choices import Choices, Point, read_choices

if TYPE_CHECKING:
    import numpy as np

    from prism.analysis import RunLogs

    Array = np.ndarray[Any, Any]

BINS = 4
SPLITS = 200
REFITS = 20
"""Halves on which a policy is calibrated again, as that takes longer than counting."""

_TAIL = 0.025


def divergence(
    logs: RunLogs,
    policy: RunLogs | Policy | ModelKind = "markov",
    *,
    by: str | None = None,
    least: int = LEAST,
    bins: int = BINS,
    splits: int = SPLITS,
    smoothing: float = 0.0,
    seed: int = 0,
) -> pl.DataFrame:
    """Say how far the choices of a model and those of a policy lie apart.

    The Jensen-Shannon divergence of two distributions, ``H((P + Q) / 2) - (H(P) + H(Q)) / 2`` in
    bits (Lin 1991), is 0 for equal ones and 1 for such as have nothing in common. It is taken at
    each point of decision (state, event and options), and averaged with the numbers of the model's
    decisions as weights: over all, and by group, state and bin of relevance.

    Small samples of one distribution diverge, too. So the agents of the model are split in random
    halves again and again, and the mean divergence of the two is the ``floor``: what the model
    differs by from itself. ``halves`` is the mean divergence of a half of the model from the policy
    at that size, which compares with the floor; ``divergence`` is that of everything.

    Args:
        logs: The runs of the model.
        policy: The runs of the policy. Or the policy itself: its probabilities of the questions
            that the model was asked are taken, and that it draws none makes ``halves`` smaller. Or
            ``markov`` or ``logit``: such a policy is calibrated on one half of the agents, and
            compared on the other.
        by: What agents are grouped by; what the policy says, or ``archetype``.
        least: Fewest decisions that identify a cell, where a policy is calibrated.
        bins: Bins of relevance from 0 to 1, of equal width.
        splits: Random halves, and bootstrap samples of agents; a policy is calibrated on 20 halves
            at most.
        smoothing: What is added to every count (Laplace smoothing).
        seed: Seed of halves and samples.

    Returns:
        One row for all, and one for each level: ``by``, ``level``, ``n`` decisions of the model,
        ``n_policy`` of the policy, ``divergence`` with the ends ``low`` and ``high`` of its 95 %
        interval (bootstrap over agents, reflected at the estimate, which takes off what sampling
        adds), ``halves``, ``floor``, ``floor_high`` (97.5 % of the splits lie below), and ``above``
        (whether ``halves`` does not). Null where there are not decisions enough.

    Raises:
        FieldValueError: If a number is out of its range.
        InputError: If runs hold no decisions.
        MissingExtraError: If the extra ``science`` is not installed.
    """
    if bins < 1 or splits < 1 or smoothing < 0:
        raise FieldValueError(
            "bins and splits must be 1 or more, and smoothing 0 or more; "
            f"got {bins}, {splits} and {smoothing}"
        )

    import numpy as np

    random = np.random.default_rng(seed)
    grouped = by or (policy.by if isinstance(policy, Policy) else ARCHETYPE)
    names = policy.covariates if isinstance(policy, Policy) else ()
    covariates = tuple(dict.fromkeys((RELEVANCE, *names)))
    model = read_choices(logs, by=grouped, covariates=covariates)
    if not isinstance(policy, (Policy, str)):
        other = read_choices(policy, by=grouped, covariates=covariates)
        return compare_choices(model, other, bins, splits, smoothing, random)

    return _compare_policy(model, policy, least, bins, splits, smoothing, random)


def compare_choices(
    model: Choices, other: Choices, bins: int, splits: int, smoothing: float, random: Any
) -> pl.DataFrame:
    """Say how far the choices of two runs lie apart; see `divergence`."""
    grid = make_grid((model, other), bins)
    own, theirs = grid.count(model), grid.count(other)
    split = _split(len(own.matrix), splits, random)
    first, second = own.sums(split), own.sums(1 - split)
    half = theirs.sums(_split(len(theirs.matrix), splits, random))

    halves = first, half
    return _table(
        grid, own, theirs, halves, (first, second), splits, smoothing, random, paired=False
    )


def _compare_policy(
    model: Choices,
    policy: Policy | ModelKind,
    least: int,
    bins: int,
    splits: int,
    smoothing: float,
    random: Any,
) -> pl.DataFrame:
    grid = make_grid((model,), bins)
    own = grid.count(model)
    split = _split(len(own.matrix), splits, random)
    first, second = own.sums(split), own.sums(1 - split)

    if isinstance(policy, Policy):
        theirs = grid.expect(model, policy)
        halves = first, theirs.sums(split)
    else:
        theirs = _crossed(grid, model, policy, least, split[0])
        refits = split[:REFITS]
        halves = (
            second[: len(refits)],
            _calibrated(grid, model, policy, least, refits),
        )

    return _table(
        grid, own, theirs, halves, (first, second), splits, smoothing, random, paired=True
    )


def _crossed(grid: Grid, model: Choices, kind: ModelKind, least: int, half: Array) -> Counted:
    """Return what a policy of each half of the agents expects of the questions of the other."""
    first = _of_half(grid, model, kind, least, half)
    second = _of_half(grid, model, kind, least, 1 - half)
    return replace(first, matrix=first.matrix + second.matrix)


def _calibrated(grid: Grid, model: Choices, kind: ModelKind, least: int, halves: Array) -> Array:
    """Return the sums of what policies of one half expect of the other; one row a split."""
    import numpy as np

    return np.stack(
        [_of_half(grid, model, kind, least, half).matrix.sum(axis=0) for half in halves]
    )


def _of_half(grid: Grid, model: Choices, kind: ModelKind, least: int, half: Array) -> Counted:
    """Return what a policy of one half of the agents expects of the other half's questions."""
    inside = half[grid.agents_of(model)].astype(bool)
    seen, unseen = (replace(model, table=model.table.filter(rows)) for rows in (inside, ~inside))

    return grid.expect(unseen, calibrate_choices(seen, kind, least=least), model)


def _split(agents: int, splits: int, random: Any) -> Array:
    """Return random halves of the agents: one row a split, 1 for those of the first half."""
    import numpy as np

    row = np.arange(agents) < agents // 2
    return np.asarray(random.permuted(np.tile(row, (splits, 1)), axis=1), float)


def _table(
    grid: Grid,
    own: Counted,
    theirs: Counted,
    halves: tuple[Array, Array],
    floors: tuple[Array, Array],
    splits: int,
    smoothing: float,
    random: Any,
    *,
    paired: bool,
) -> pl.DataFrame:
    import numpy as np

    def diverge(left: Array, right: Array) -> Array:
        return weighted_divergence(grid, left, right, smoothing)

    whole = diverge(own.matrix.sum(axis=0)[None], theirs.matrix.sum(axis=0)[None])[0]
    samples = _samples(len(own.matrix), splits, random)
    others = samples if paired else _samples(len(theirs.matrix), splits, random)
    drawn = diverge(own.sums(samples), theirs.sums(others))
    # one agent drawn again and again says nothing of others
    drawn[:, grid.agents_in(own) < 2] = np.nan

    low, high = (np.clip(2 * whole - _quantile(drawn, share), 0, 1) for share in (1 - _TAIL, _TAIL))
    between, within = diverge(*halves), diverge(*floors)
    floor_high = _quantile(within, 1 - _TAIL)
    mean_between, mean_within = _mean(between), _mean(within)
    columns: Mapping[str, Array | Sequence[Any]] = {
        "by": [by for by, _ in grid.levels],
        "level": [level for _, level in grid.levels],
        "n": grid.sizes(own.matrix.sum(axis=0)).round().astype(int),
        "n_policy": grid.sizes(theirs.matrix.sum(axis=0)).round().astype(int),
        "divergence": whole,
        "low": low,
        "high": high,
        "halves": mean_between,
        "floor": mean_within,
        "floor_high": floor_high,
    }
    above = pl.when(pl.col("halves").is_not_null() & pl.col("floor_high").is_not_null()).then(
        pl.col("halves") > pl.col("floor_high")
    )

    return (
        pl.DataFrame(columns)
        .with_columns(pl.col(pl.Float64).fill_nan(None))
        .with_columns(above=above)
    )


def _samples(agents: int, splits: int, random: Any) -> Array:
    """Return how often each agent is drawn in bootstrap samples: one row a sample."""
    import numpy as np

    if not agents:
        return np.zeros((splits, 0))

    return np.asarray(random.multinomial(agents, [1 / agents] * agents, size=splits), float)


def _quantile(values: Array, share: float) -> Array:
    import numpy as np

    return np.array(
        [_of_known(column, lambda known: np.quantile(known, share)) for column in values.T]
    )


def _mean(values: Array) -> Array:
    import numpy as np

    return np.array([_of_known(column, np.mean) for column in values.T])


def _of_known(column: Array, summarize: Any) -> float:
    """Summarize what is known of a level; NaN if that is nothing."""
    import numpy as np

    known = column[~np.isnan(column)]
    return float(summarize(known)) if len(known) else float("nan")


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


_WIDTH, _STEP = 420, 18


def divergence_figure(table: pl.DataFrame) -> dict[str, Any]:
    """Draw what `divergence` returned: a dot for the policy, a bar for the model's own floor.

    Args:
        table: The divergences.

    Returns:
        The figure as Vega-Lite.
    """
    import altair as alt

    rows = table.to_dicts()
    order = list(dict.fromkeys(row["level"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("level:N", sort=order, title=None, axis=alt.Axis(labelLimit=240))
    )
    title = "Jensen-Shannon divergence (bits)"
    floor = base.mark_bar(color="#c8cdd4", height=10).encode(
        x=alt.X("floor_high:Q", title=title, scale=alt.Scale(domainMin=0))
    )
    interval = base.mark_rule(color="#b5541c").encode(x=alt.X("low:Q", title=title), x2="high:Q")
    whole = base.mark_tick(color="#b5541c", thickness=2).encode(
        x=alt.X("divergence:Q", title=title)
    )
    halves = base.mark_point(filled=True, color="#1f5fa8", size=60, opacity=1).encode(
        x=alt.X("halves:Q", title=title),
        tooltip=["level:N", "n:Q", "halves:Q", "floor:Q", "floor_high:Q"],
    )
    layers = alt.layer(floor, interval, whole, halves).properties(
        width=_WIDTH, height=alt.Step(_STEP)
    )
    drawn = layers.facet(
        row=alt.Row(
            "by:N",
            title=None,
            sort=list(dict.fromkeys(row["by"] for row in rows)),
            header=alt.Header(labelAngle=0, labelAlign="left", labelPadding=12),
        )
    ).resolve_scale(y="independent")
    subtitle = [
        "Dot: one half of the model against the policy.",
        "Bar: 97.5 % of the model's halves against each other.",
        "Tick and line: everything, with its 95 % interval.",
    ]

    spec: dict[str, Any] = drawn.properties(
        title=alt.TitleParams("Model and policy", subtitle=subtitle, anchor="start")
    ).to_dict()
    return spec
