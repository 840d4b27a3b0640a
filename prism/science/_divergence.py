"""How far the choices of a model and those of a policy lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError
from prism.runs._calibrated import ARCHETYPE, RELEVANCE
from prism.runs._policy_file import ModelKind, Policy
from prism.science._calibrate import LEAST, calibrate_choices
from prism.science._choices import Choices, read_choices
from prism.science._counting import Counted, Grid, make_grid, weighted_divergence

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

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
    import polars as pl

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
