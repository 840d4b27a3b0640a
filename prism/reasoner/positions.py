"""Whether the position of an option in its list explains what a model chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, erfc, sqrt

_LEAST_EXPECTED = 5
"""Expected choices of each position, from which a chi-square test is meant to be used."""

_SIGNIFICANT = 0.001


def position_effect(positions: Mapping[str, Sequence[int]]) -> str | None:
    """Return in words how many choices the position in the list explains; None if by chance.

    If the order of the options is drawn, and a choice depends on the options alone, each position
    is equally likely. That is tested at p < .001: by Pearson's chi-square, over all numbers of
    options together, where each position is expected five times; elsewhere by the exact binomial
    probability of the position that was chosen most.

    Args:
        positions: How often each position was chosen, by the number of options; see `Router`.
    """
    lists = [counts for counts in positions.values() if len(counts) > 1 and any(counts)]
    many = [counts for counts in lists if sum(counts) >= _LEAST_EXPECTED * len(counts)]
    few = [counts for counts in lists if counts not in many]
    explained: list[Sequence[int]] = []
    if many and _chance_of_all(many) < _SIGNIFICANT:
        explained += many
    explained += [counts for counts in few if _chance_of_most(counts) * len(few) < _SIGNIFICANT]
    if not explained:
        return None
    most, total = sum(map(max, explained)), sum(map(sum, explained))
    return f"the position in the list explains {most:,} of {total:,} choices (p < .001)"


def _chance_of_all(lists: Sequence[Sequence[int]]) -> float:
    """Return the probability of Pearson's chi-square, as Wilson and Hilferty (1931) have it."""
    statistic, freedom = 0.0, sum(len(counts) - 1 for counts in lists)
    for counts in lists:
        expected = sum(counts) / len(counts)
        statistic += sum((count - expected) ** 2 / expected for count in counts)
    spread = 2 / (9 * freedom)
    deviation = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / sqrt(spread)
    return erfc(deviation / sqrt(2)) / 2


def _chance_of_most(counts: Sequence[int]) -> float:
    """Return the most probability that any position is chosen as often as the one chosen most."""
    size, total = len(counts), sum(counts)
    times = range(max(counts), total + 1)
    cases: int = sum(comb(total, each) * (size - 1) ** (total - each) for each in times)
    return float(size * cases / size**total)
