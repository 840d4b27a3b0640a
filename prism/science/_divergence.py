"""How far the choices of a model and those of a policy lie apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from prism.errors import FieldValueError
from prism.runs._policy_file import ARCHETYPE, RELEVANCE, ModelKind, Policy
from prism.science._arrays import Array, np
from prism.science._calibrate import LEAST, calibrate_choices
from prism.science._choices import Choices, Point, read_choices

if TYPE_CHECKING:
    from prism.analysis import RunLogs

BINS = 4
SPLITS = 200
REFITS = 20
"""Halves on which a policy is calibrated again, as that takes longer than counting."""

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
    # a policy answers the questions of the agents that are drawn
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
    """Return what a policy of one half of the agents expects of the other half's questions."""
    inside = half[grid.agents_of(model)].astype(bool)
    seen, unseen = (replace(model, table=model.table.filter(rows)) for rows in (inside, ~inside))

    return grid.expect(unseen, calibrate_choices(seen, kind, least), model)


def _split(agents: int, splits: int, random: Any) -> Array:
    """Return random halves of the agents: one row a split, 1 for those of the first half."""
    row = np.arange(agents) < agents // 2
    return np.asarray(random.permuted(np.tile(row, (splits, 1)), axis=1), float)


def _samples(agents: int, splits: int, random: Any) -> Array:
    """Return how often each agent is drawn in bootstrap samples: one row a sample."""
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
    """Return a row for each level of what `divergence` returns.

    Args:
        grid: The cells.
        own: Counts of the model, one row an agent.
        theirs: Those of the policy.
        drawn: Both in bootstrap samples, one row a sample.
        halves: Halves of the model and of the policy, one row a split.
        floors: Both halves of the model.
        smoothing: What is added to each count.
    """
    whole = grid.divergence(own.sum(axis=0), theirs.sum(axis=0), smoothing)[0]
    sampled, between, within = (
        grid.divergence(*each, smoothing) for each in (drawn, halves, floors)
    )
    # one agent drawn again and again says nothing of others
    sampled[:, grid.agents_in(own) < 2] = np.nan
    # reflected, as a sample diverges more than the whole does
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

    # null where one of them is
    return found.with_columns(above=pl.col("halves") > pl.col("floor_high"))


def _of_known(values: Array, summarize: Callable[[Array], Any]) -> Array:
    """Summarize what is known of each level; NaN if that is nothing."""
    known = [column[~np.isnan(column)] for column in values.T]
    return np.array([float(summarize(each)) if len(each) else np.nan for each in known])


@dataclass(frozen=True)
class Grid:
    """The cells in which choices are counted.

    Counts, and sums of probabilities, are arrays with one row an agent (or a sample of agents) and
    one column a level, point and option.

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

    def count(self, choices: Choices) -> Array:
        """Count what was chosen."""
        rows = choices.table.select("point", "chosen").rows()
        options = [choices.points[point][2].index(name) for point, name in rows]
        weights = np.zeros((len(rows), self.width))
        weights[np.arange(len(rows)), options] = 1

        return self._summed(choices, weights)

    def expect(self, choices: Choices, policy: Policy, of: Choices | None = None) -> Array:
        """Sum up the probabilities that a policy gives to the options of the same questions.

        Args:
            choices: The choices, whose questions are taken.
            policy: The policy.
            of: Choices that these are a part of, and whose agents have a row each.
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

    def agents_of(self, choices: Choices, of: Choices | None = None) -> Array:
        """Return the place of the agent of every decision, as a row of the counts."""
        keys = choices.table.select("run", "agent_id").rows()
        numbers = {agent: number for number, agent in enumerate(_agents(of or choices))}
        return np.array([numbers[key] for key in keys], dtype=int)

    def sizes(self, counts: Array) -> Array:
        """Return the number of decisions in each level, of one row of counts or of each."""
        by_cell = counts.reshape(*counts.shape[:-1], len(self.cells), self.width).sum(axis=-1)
        found: Array = by_cell @ self._is_of_level
        return found

    def agents_in(self, counts: Array) -> Array:
        """Return the number of agents that decided anything in each level."""
        found: Array = (self.sizes(counts) > 0).sum(axis=0)
        return found

    def divergence(self, left: Array, right: Array, smoothing: float) -> Array:
        """Return the Jensen-Shannon divergence of each level, in bits; NaN where it is unknown.

        Args:
            left: Counts, one row a sample; its numbers of decisions weigh the points of a level.
            right: The counts to compare with.
            smoothing: What is added to each count.
        """
        options = [len(self.points[point][2]) for point in self.cells[:, 1]]
        is_option = np.arange(self.width) < np.asarray(options)[:, None]
        ours, theirs = (each.reshape(-1, len(self.cells), self.width) for each in (left, right))
        sizes = ours.sum(axis=2)
        known = (sizes > 0) & (theirs.sum(axis=2) > 0)
        ours, theirs = ((each + smoothing) * is_option for each in (ours, theirs))

        with np.errstate(invalid="ignore"):
            p, q = (each / each.sum(axis=2, keepdims=True) for each in (ours, theirs))
        bits = np.where(known, _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2, 0.0)
        weights = np.where(known, sizes, 0.0)
        with np.errstate(invalid="ignore"):
            found: Array = (bits * weights) @ self._is_of_level / (weights @ self._is_of_level)

        return np.clip(found, 0, 1)

    @property
    def _is_of_level(self) -> Array:
        """A row a cell, a column a level."""
        return np.asarray(np.equal.outer(self.cells[:, 0], np.arange(len(self.levels))), float)

    def _summed(self, choices: Choices, weights: Array, of: Choices | None = None) -> Array:
        """Sum up, by agent and cell, what each decision has for each option."""
        cells = {tuple(cell): number for number, cell in enumerate(self.cells.tolist())}
        numbers = {level: number for number, level in enumerate(self.levels)}
        points = _places(choices, {point: number for number, point in enumerate(self.points)})
        agents, everybody = self.agents_of(choices, of), _agents(of or choices)
        matrix = np.zeros((len(everybody), len(self.cells), self.width))
        for levels in _levels_of(choices, self.edges):
            columns = [
                cells[numbers[level], point] for level, point in zip(levels, points, strict=True)
            ]
            np.add.at(matrix, (agents, np.array(columns, dtype=int)), weights)

        return matrix.reshape(len(everybody), len(self.cells) * self.width)


def make_grid(compared: Sequence[Choices], bins: int) -> Grid:
    """Return the cells that the decisions of any of the choices fall in."""
    edges = tuple(number / bins for number in range(bins + 1))
    points = tuple(dict.fromkeys(point for each in compared for point in each.points))
    places = {point: number for number, point in enumerate(points)}
    found: dict[tuple[str, str], set[int]] = {}
    for level, point in chain.from_iterable(_cells_of(each, edges, places) for each in compared):
        found.setdefault(level, set()).add(point)

    # levels of one kind stay together, in the order in which the kinds come up
    order = [by for by, _ in found]
    levels = sorted(found, key=lambda level: (order.index(level[0]), level[1]))
    cells = [
        (number, point) for number, level in enumerate(levels) for point in sorted(found[level])
    ]

    return Grid(points, tuple(levels), np.asarray(cells), edges)


def _cells_of(
    choices: Choices, edges: Sequence[float], places: Mapping[Point, int]
) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the levels of the decisions, each with the place of a point that comes up in it."""
    points = _places(choices, places)
    for levels in _levels_of(choices, edges):
        yield from set(zip(levels, points, strict=True))


def _entropy(chances: Array) -> Array:
    safe = np.where(chances > 0, chances, 1.0)
    found: Array = -(safe * np.log2(safe)).sum(axis=2)
    return found


def _places(choices: Choices, places: Mapping[Point, int]) -> list[int]:
    """Return the place of the point of every decision."""
    return [places[choices.points[number]] for number in choices.table["point"]]


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
