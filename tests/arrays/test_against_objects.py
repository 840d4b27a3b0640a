"""Worlds of arrays have the distributions of worlds of objects with the same rules."""

from typing import Any

import pytest
from scipy.stats import ks_2samp

from tests.kit import crowds

LEAST_P = 0.002
"""A right model has six p-values below it once in eighty times; the seeds are fixed."""

MODELS = {
    "rumour": (crowds.Rumour, crowds.RumourOfObjects, "stifler", "spreader"),
    "epidemic": (crowds.Epidemic, crowds.EpidemicOfObjects, "recovered", "infected"),
}


def statistics_of(rounds: list[dict[str, int]], last: str, wave: str) -> tuple[float, ...]:
    """Return how many are in a state at the end, the highest of a wave, and when it passes."""
    numbers = [each[wave] for each in rounds]
    when = sum(n * number for n, number in enumerate(numbers)) / max(sum(numbers), 1)
    return rounds[-1][last], max(numbers), when


@pytest.mark.parametrize(
    ("agents", "seeds"),
    [
        (20, 20),
        pytest.param(100, 200, marks=pytest.mark.slow),
        pytest.param(2000, 200, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_runs_have_the_distribution_of_runs_of_objects(model: str, agents: int, seeds: int) -> None:
    """End, height and time of the wave are distributed as with objects (Kolmogorov-Smirnov)."""
    arrays, objects, last, wave = MODELS[model]
    columns: list[Any] = [
        [statistics_of(run(world, agents, seed), last, wave) for seed in range(seeds)]
        for run, world in (
            (crowds.rounds_in_arrays, arrays),
            (crowds.rounds_of_objects, objects),
        )
    ]
    for ours, theirs in zip(*(zip(*column, strict=True) for column in columns), strict=True):
        assert ks_2samp(ours, theirs).pvalue > LEAST_P
