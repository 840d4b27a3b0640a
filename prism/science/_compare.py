"""Comparing runs: what differs between groups of them, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prism.errors import FieldValueError
from prism.science._compared_names import Source
from prism.science._comparison import Comparison

RESAMPLES = 9_999
"""Bootstrap samples, unless told otherwise."""


def compare(
    *groups: Source | Sequence[Source],
    paired: bool | None = None,
    measures: Iterable[str] | None = None,
    from_round: int = 1,
    to_round: int | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare groups of runs, each with the first.

    Pairs of runs with the same seed share their random numbers, so what differs within them is due
    to what the groups differ in. Each measure gets the difference of the means with a bootstrap
    interval (BCa), a test (Wilcoxon's signed-rank test for pairs, else Mann and Whitney's U;
    Kolmogorov and Smirnov's D for distributions), Holm's correction over all tests, and an effect
    size.

    Args:
        groups: For each group a run's folder or log, a folder with runs below it, a pattern such as
            ``runs/warned-*``, or several of these. Of a single folder, such as that of a batch, the
            folders that hold runs are the groups.
        paired: Whether to pair runs by their seeds. By default they are paired if no seed comes up
            twice in a group and two groups share at least two seeds (one, if a group has but one
            run).
        measures: The measures to compare, by name: the fewer tests, the milder the correction. None
            takes all.
        from_round: The first round that counts, such as the first after a burn-in.
        to_round: The last round that counts. By default all runs must have the same rounds.
        confidence: Coverage of the intervals, between 0 and 1.
        resamples: Bootstrap samples.
        seed: Seed of the bootstrap and of permutations.
        progress: Called with the number of runs that are measured, and that of all.

    Returns:
        The comparison.

    Raises:
        InputError: If there is no second group, a run cannot be read or is given twice, the runs
            differ in their rounds, they cannot be paired as wanted, or a measure is unknown.
    """
    _check(confidence, resamples, from_round, to_round)

    # scipy, statsmodels and polars take a second to import, which other commands can do without
    from prism.science._differences import compared

    return compared(
        groups,
        paired=paired,
        measures=measures,
        from_round=from_round,
        to_round=to_round,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        progress=progress,
    )


def _check(confidence: float, resamples: int, from_round: int, to_round: int | None) -> None:
    if not 0 < confidence < 1:
        raise FieldValueError(f"confidence must be between 0 and 1, got {confidence}")
    if resamples < 1:
        raise FieldValueError(f"resamples must be 1 or more, got {resamples}")
    if from_round < 1:
        raise FieldValueError(f"from_round must be 1 or more, got {from_round}")
    if to_round is not None and to_round < from_round:
        raise FieldValueError(f"to_round must be {from_round} or more, got {to_round}")
