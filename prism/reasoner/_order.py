"""What the order of the options decides: averages over rotations, and places in the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
from statistics import NormalDist

from prism.reasoner._questions import Decision
from prism.statechart.states import state_text

_LEAST_EXPECTED = 5
"""Expected choices of each place, from which a chi-square test is meant to be used."""

_SIGNIFICANT = 0.001


def averaged(decisions: Sequence[Decision], options: Sequence[str]) -> Decision:
    """Return the decisions on one question, asked in several rotations, as one.

    Its probabilities are the averages; a choice by name counts as certain. Rotations that fell back
    are left out, unless all did.

    Args:
        decisions: One decision for each rotation.
        options: The texts of the options.
    """
    answered = [each for each in decisions if each.source != "fallback"] or decisions
    first, cost = answered[0], decisions[0].cost
    for each in decisions[1:]:
        if cost is not None and each.cost is not None:
            cost.follow(each.cost)
    if first.source == "fallback":
        return replace(first, cost=cost)

    chances = [
        each.probabilities or {text: float(text == state_text(each.chosen)) for text in options}
        for each in answered
    ]
    mean = {text: sum(each[text] for each in chances) / len(chances) for text in options}
    masses = [each.option_mass for each in answered if each.option_mass is not None]
    apart = max((distance(*pair) for pair in combinations(chances, 2)), default=0.0)
    return replace(
        first,
        probabilities=mean,
        cost=cost,
        rotation=None,
        rotations_apart=round(apart, 6),
        option_mass=round(sum(masses) / len(masses), 6) if masses else None,
    )


def distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the total variation distance of two distributions, from 0 to 1."""
    return sum(abs(one[text] - other[text]) for text in one) / 2


class Places:
    """How often a model chose each place in its list of options, by the number of options.

    Only lists whose order was drawn count, since in a fixed order a place cannot be told from its
    option.
    """

    def __init__(self) -> None:
        self._counts: dict[int, Counter[int]] = {}

    def add(self, options: Sequence[str], chosen: str, rotation: int | None, source: str) -> None:
        """Count the place of a choice.

        Args:
            options: The texts of the options, in the chart's order.
            chosen: The text of the choice.
            rotation: How many options were moved from the beginning of the list to its end.
            source: What chose; only a ``model`` counts.
        """
        if source == "model" and rotation is not None and chosen in options:
            size = len(options)
            place = (options.index(chosen) - rotation) % size
            self._counts.setdefault(size, Counter())[place] += 1

    def to_dict(self) -> dict[str, list[int]]:
        """Return the choices of each place, by the number of options, as plain data."""
        return {
            str(size): [counts[place] for place in range(size)]
            for size, counts in sorted(self._counts.items())
        }


def place_effect(places: Mapping[str, Sequence[int]]) -> str | None:
    """Return in words how many choices the place in the list explains; None if by chance.

    If the order of the options is drawn, and a choice depends on the options alone, each place is
    equally likely. This is Pearson's chi-square test of that, over all numbers of options together,
    with the approximation of Wilson and Hilferty (1931), at p < .001.

    Args:
        places: What `Places.to_dict` returns.
    """
    statistic, freedom, most, total = 0.0, 0, 0, 0
    for counts in places.values():
        expected = sum(counts) / len(counts)
        if len(counts) > 1 and expected >= _LEAST_EXPECTED:
            statistic += sum((count - expected) ** 2 / expected for count in counts)
            freedom += len(counts) - 1
            most += max(counts)
            total += sum(counts)
    if not freedom:
        return None

    spread = 2 / (9 * freedom)
    score = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / sqrt(spread)
    if NormalDist().cdf(-score) >= _SIGNIFICANT:
        return None
    return f"the place in the list explains {most:,} of {total:,} choices (p < .001)"
