"""The divergence between the choices of a model and those of a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from prism.errors import FieldValueError
from prism.runs._policy_file import ARCHETYPE, RELEVANCE, ModelKind, Policy
from prism.science._arrays import Array, np
from prism.science._calibrate import LEAST, calibrate_choices
from prism.science._choices import Choices, Point, read_choices
from prism.science._libraries import library

if TYPE_CHECKING:
    from prism.analysis import RunLogs

BINS = 4
SPLITS = 200
REFITS = 20
"""Most splits for which a policy is calibrated anew, which takes longer than counting."""

_DIGITS = 12
"""Decimals of a divergence; the rest is rounding."""

_TAIL = 0.025

ALL = "all"
_UNKNOWN = "unknown"


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
    """Measure how much the choices of a model and those of a policy differ.

    The Jensen-Shannon divergence of two distributions, ``H((P + Q) / 2) - (H(P) + H(Q)) / 2`` in
    bits (Lin 1991), is 0 for equal distributions and 1 for disjoint ones. It is computed at each
    decision point (state, event and options), and averaged over points, weighted by the number of
    the model's decisions: overall, and by group, state and bin of relevance.

    Small samples from one distribution diverge as well. The ``floor`` shows by how much: the agents
    of the model are split into random halves many times, and the floor is the mean divergence of
    the two halves. ``halves`` is the mean divergence of such a half from the policy, at the same
    sample size, so it can be compared with the floor. ``divergence`` uses all decisions.

    Args:
        logs: The runs of the model.
        policy: The runs of the policy; or the policy itself, whose probabilities for the model's
            questions are used (since it draws nothing, ``halves`` is smaller); or ``markov`` or
            ``logit``, to calibrate such a policy on one half of the agents and compare it with the
            other half.
        by: How to group agents; by default as the policy does, or by ``archetype``.
        least: The smallest number of decisions that identifies a cell, if a policy is calibrated.
        bins: Number of bins of relevance, of equal width from 0 to 1.
        splits: Number of random splits, and of bootstrap samples of agents. A policy is calibrated
            on at most 20 splits.
        smoothing: Added to every count (Laplace smoothing).
        seed: Seed of the splits and samples.

    Returns:
        A row for all decisions, and one for each level: ``by``, ``level``, ``n`` decisions of the
        model, ``n_policy`` of the policy, ``divergence`` with its 95 % interval from ``low`` to
        ``high`` (basic bootstrap over agents, which corrects the bias of sampling), ``halves``,
        ``floor``, ``floor_high`` (the 97.5th percentile of the splits), and ``above`` (whether
        ``halves`` exceeds it). Null where there are too few decisions.

    Raises:
        FieldValueError: If a number is out of range.
        InputError: If the runs contain no decisions.
        MissingExtraError: If the extra ``science`` is not installed.
    """
    _check(bins, splits, smoothing)
    random = np.random.default_rng(seed)
    known = (policy.by, policy.covariates) if isinstance(policy, Policy) else (ARCHETYPE, ())
    covariates = tuple(dict.fromkeys((RELEVANCE, *known[1])))
    read = partial(read_choices, by=by or known[0], covariates=covariates)
    model = read(logs)
    other = None if isinstance(policy, Policy | str) else read(policy)

    grid = make_grid([each for each in (model, other) if each is not None], bins)
    own = grid.count(model)
    split = _split(len(own), splits, random)
    floors = split @ own, (1 - split) @ own
    if other is not None:
        theirs = grid.count(other)
        halves = floors[0], _split(len(theirs), splits, random) @ theirs
    elif isinstance(policy, Policy):
        theirs = grid.expect(model, policy)
        halves = floors[0], split @ theirs
    else:
        expected = partial(_expected_by_half, grid, model, cast(ModelKind, policy), least)
        theirs = expected(split[0]) + expected(1 - split[0])
        refitted = np.stack([expected(half).sum(axis=0) for half in split[:REFITS]])
        halves = floors[1][: len(refitted)], refitted

    samples = _samples(len(own), splits, random)
    # the policy answers the questions of the same agents
    others = samples if other is None else _samples(len(theirs), splits, random)
    drawn = samples @ own, others @ theirs

    return _table(grid, own, theirs, drawn, halves, floors, smoothing)


def _check(bins: int, splits: int, smoothing: float) -> None:
    if bins < 1 or splits < 1 or smoothing < 0:
        raise FieldValueError(
            "bins and splits must be 1 or more, and smoothing 0 or more; "
            f"got {bins}, {splits} and {smoothing}"
        )


def _expected_by_half(
    grid: Grid, model: Choices, kind: ModelKind, least: int, half: Array
) -> Array:
    """Calibrate a policy on one half of the agents; return its expected counts for the other."""
    inside = half[agents_of(model)].astype(bool)
    seen, unseen = (replace(model, table=model.table.filter(rows)) for rows in (inside, ~inside))

    return grid.expect(unseen, calibrate_choices(seen, kind, least), model)


def _split(agents: int, splits: int, random: Any) -> Array:
    """Return random splits of the agents, a row each, with 1 for the first half."""
    row = np.arange(agents) < agents // 2
    return np.asarray(random.permuted(np.tile(row, (splits, 1)), axis=1), float)


def _samples(agents: int, splits: int, random: Any) -> Array:
    """Return how often each agent is drawn in bootstrap samples, a row each."""
    if not agents:
        return np.zeros((splits, 0))

    return np.asarray(random.multinomial(agents, [1 / agents] * agents, size=splits), float)


def _table(
    grid: Grid,
    own: Array,
    theirs: Array,
    drawn: tuple[Array, Array],
    halves: tuple[Array, Array],
    floors: tuple[Array, Array],
    smoothing: float,
) -> pl.DataFrame:
    """Return the table of `divergence`.

    Args:
        grid: The cells.
        own: Counts of the model, a row per agent.
        theirs: Counts of the policy.
        drawn: Both counts in bootstrap samples, a row per sample.
        halves: A half of the model and one of the policy, a row per split.
        floors: Both halves of the model.
        smoothing: Added to each count.
    """
    whole = grid.divergence(own.sum(axis=0), theirs.sum(axis=0), smoothing)[0]
    sampled, between, within = (
        grid.divergence(*each, smoothing) for each in (drawn, halves, floors)
    )
    # one agent drawn repeatedly shows no variation
    sampled[:, grid.agents_in(own) < 2] = np.nan
    # reflected, since samples diverge more than the whole
    low, high = (
        np.clip(2 * whole - _of_known(sampled, partial(np.quantile, q=share)), 0, 1)
        for share in (1 - _TAIL, _TAIL)
    )
    columns = {
        "by": [by for by, _ in grid.levels],
        "level": [level for _, level in grid.levels],
        "n": grid.sizes(own.sum(axis=0)).round().astype(int),
        "n_policy": grid.sizes(theirs.sum(axis=0)).round().astype(int),
        "divergence": whole,
        "low": low,
        "high": high,
        "halves": _of_known(between, np.mean),
        "floor": _of_known(within, np.mean),
        "floor_high": _of_known(within, partial(np.quantile, q=1 - _TAIL)),
    }
    found = pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))

    # null if either half is
    return found.with_columns(above=pl.col("halves") > pl.col("floor_high"))


def _of_known(values: Array, summarize: Callable[[Array], Any]) -> Array:
    """Summarize the known values of each level; NaN if there are none."""
    known = [column[~np.isnan(column)] for column in values.T]
    return np.array([float(summarize(each)) if len(each) else np.nan for each in known])


@dataclass(frozen=True)
class Grid:
    """The cells in which choices are counted.

    Counts, and sums of probabilities, are arrays with a row per agent (or sample of agents) and a
    column per cell and option.

    Args:
        points: The decision points.
        levels: Each grouping with a level of it, such as ``("archetype", "lurker")``.
        cells: A row per ``cell``: ``by`` and ``level``, their ``number``, and the ``point``.
        bins: Number of bins of relevance.
    """

    points: tuple[Point, ...]
    levels: tuple[tuple[str, str], ...]
    cells: pl.DataFrame
    bins: int

    @property
    def width(self) -> int:
        """The largest number of options at a point."""
        return max(len(options) for _, _, options in self.points)

    def count(self, choices: Choices) -> Array:
        """Count the chosen options."""
        rows = choices.table.select("point", "chosen").rows()
        options = [choices.points[point][2].index(name) for point, name in rows]

        return self._summed(choices, np.eye(self.width)[options])

    def expect(self, choices: Choices, policy: Policy, of: Choices | None = None) -> Array:
        """Sum the probabilities that a policy gives to the options of the same questions.

        Args:
            choices: The choices whose questions are answered.
            policy: The policy.
            of: The choices that these are part of, whose agents are the rows.
        """
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

        return self._summed(choices, weights, of)

    def sizes(self, counts: Array) -> Array:
        """Return the number of decisions in each level, for one row of counts or several."""
        by_cell = counts.reshape(*counts.shape[:-1], self.cells.height, self.width).sum(axis=-1)
        found: Array = by_cell @ self._is_of_level
        return found

    def agents_in(self, counts: Array) -> Array:
        """Return the number of agents with decisions in each level."""
        found: Array = (self.sizes(counts) > 0).sum(axis=0)
        return found

    def divergence(self, left: Array, right: Array, smoothing: float) -> Array:
        """Return the Jensen-Shannon divergence of each level, in bits; NaN where it is unknown.

        Args:
            left: Counts, a row per sample; their numbers of decisions are the weights of points.
            right: The counts to compare with.
            smoothing: Added to each count.
        """
        distance = library("scipy.spatial.distance").jensenshannon
        options = [len(self.points[point][2]) for point in self.cells["point"]]
        is_option = np.arange(self.width) < np.asarray(options)[:, None]
        ours, theirs = (each.reshape(-1, len(options), self.width) for each in (left, right))
        sizes = ours.sum(axis=2)
        known = (sizes > 0) & (theirs.sum(axis=2) > 0)
        ours, theirs = ((each + smoothing) * is_option for each in (ours, theirs))
        weights = np.where(known, sizes, 0.0)
        with np.errstate(invalid="ignore"):
            # unknown or nearly equal distributions yield NaN
            bits = np.nan_to_num(distance(ours, theirs, base=2, axis=2) ** 2)
            found: Array = (bits * weights) @ self._is_of_level / (weights @ self._is_of_level)

        # equal distributions differ by rounding only
        rounded: Array = np.round(np.clip(found, 0, 1), _DIGITS)
        return rounded

    @property
    def _is_of_level(self) -> Array:
        """Whether each cell (row) belongs to each level (column)."""
        numbers = self.cells["number"].to_numpy()
        return np.asarray(np.equal.outer(numbers, np.arange(len(self.levels))), float)

    def _summed(self, choices: Choices, weights: Array, of: Choices | None = None) -> Array:
        """Sum the options' weights of the decisions by agent and cell."""
        agents = agents_of(choices, of)
        placed = _in_levels(choices, self.points, self.bins).join(
            self.cells, on=["by", "level", "point"]
        )
        rows, cells = placed["row"].to_numpy(), placed["cell"].to_numpy()
        everybody = (of or choices).table.select("run", "agent_id").n_unique()
        matrix = np.zeros((everybody, self.cells.height, self.width))
        np.add.at(matrix, (agents[rows], cells), weights[rows])

        return matrix.reshape(everybody, -1)


def make_grid(compared: Sequence[Choices], bins: int) -> Grid:
    """Return the cells that contain decisions of any of the choices."""
    points = tuple(dict.fromkeys(point for each in compared for point in each.points))
    found = pl.concat([_in_levels(each, points, bins) for each in compared]).drop("row").unique()
    kinds = [ALL, compared[0].by, "state", RELEVANCE]
    # levels of one kind stay together
    place = pl.col("by").replace_strict(kinds, range(len(kinds)))
    levels = found.select("by", "level").unique().sort(place, "level").with_row_index("number")
    cells = found.join(levels, on=["by", "level"]).sort("number", "point").with_row_index("cell")

    return Grid(points, tuple(levels.select("by", "level").rows()), cells, bins)


def _in_levels(choices: Choices, points: Sequence[Point], bins: int) -> pl.DataFrame:
    """Return each decision once per level: ``row``, ``point``, ``by`` and ``level``."""
    edges = [number / bins for number in range(bins + 1)]
    names = [f"{low:.2f} to {high:.2f}" for low, high in pairwise(edges)]
    number = (pl.col(RELEVANCE) * bins).floor().clip(0, bins - 1)
    levels = {
        ALL: pl.lit(ALL),
        choices.by: pl.col("group"),
        "state": pl.col("state"),
        RELEVANCE: number.replace_strict(range(bins), names, default=_UNKNOWN),
    }
    places = pl.Series([points.index(point) for point in choices.points])
    table = choices.table.with_row_index("row").select(
        "row", place=places.gather(choices.table["point"]), **levels
    )

    return table.rename({"place": "point"}).unpivot(
        index=["row", "point"], variable_name="by", value_name="level"
    )


def agents_of(choices: Choices, of: Choices | None = None) -> Array:
    """Return the row in the counts of each decision's agent."""
    agent = ["run", "agent_id"]
    everybody = (of or choices).table.select(agent).unique().sort(agent).with_row_index("place")
    found = choices.table.select(agent).join(
        everybody, on=agent, how="left", nulls_equal=True, maintain_order="left"
    )
    return found["place"].to_numpy()


_WIDTH, _STEP = 420, 18


def divergence_figure(table: pl.DataFrame) -> dict[str, Any]:
    """Draw the table of `divergence`: a dot for the policy, a bar for the model's own floor.

    Args:
        table: The table.

    Returns:
        The figure as Vega-Lite.
    """
    import altair as alt

    from prism.report._figures.page_figures import GREY

    rows = table.to_dicts()
    order = list(dict.fromkeys(row["level"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("level:N", sort=order, title=None, axis=alt.Axis(labelLimit=240))
    )
    title = "Jensen-Shannon divergence (bits)"
    floor = base.mark_bar(color=GREY, opacity=0.45, height=10).encode(
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
            header=alt.Header(labelAngle=0, labelAlign="left", labelPadding=24),
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
