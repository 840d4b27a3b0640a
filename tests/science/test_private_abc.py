"""Approximate Bayesian computation: its posteriors are those that are known.

A fit carries out hundreds of runs, so its law is held against figures that are drawn at once.
"""

import numpy as np
import pytest
from scipy import stats

from prism.science._fit import Posterior, even_points, noise_of, posterior_of, quantiles

NOISE = 0.05


def simulated(points: np.ndarray, seed: int) -> np.ndarray:
    """Return a figure that is the first coordinate and noise, and one that is noise alone."""
    dice = np.random.default_rng([seed, len(points)])
    return np.column_stack(
        [points[:, 0] + NOISE * dice.standard_normal(len(points)), dice.random(len(points))]
    )


def fitted(values: list[float], spreads: list[float], seed: int, samples: int = 300) -> Posterior:
    """Return the posterior of a fit in one dimension."""
    points = even_points(samples, 1, seed)
    figures = simulated(points, seed)
    size = samples // 5
    arrays = np.array(values), np.array(spreads)
    return posterior_of(points, figures, *arrays, seed=seed, size=size)


def test_the_posterior_is_the_known_one() -> None:
    """Of a normal figure it is normal: its noise and the target's spread, added in squares."""
    spreads, spread = [], 0.05
    for seed in range(12):
        found = fitted([0.5, 0.5], [spread, 1.0], seed)
        low, median, high = quantiles(found.points[:, 0], found.weights, (0.05, 0.5, 0.95))
        assert abs(median - 0.5) < 0.06
        spreads.append((high - low) / (2 * stats.norm.ppf(0.95)))

    assert np.mean(spreads) == pytest.approx(np.hypot(NOISE, spread), rel=0.15)


def test_planted_coordinates_lie_in_their_intervals() -> None:
    """Of 100 fits about 90 hold what was planted, also near the edges."""
    dice = np.random.default_rng(5)
    held = 0
    for seed in range(100):
        truth = dice.random()
        target = [truth + NOISE * dice.standard_normal(), dice.random()]
        found = fitted(target, [0.0, 0.0], seed)
        low, high = quantiles(found.points[:, 0], found.weights, (0.05, 0.95))
        held += low <= truth <= high

    assert 82 <= held <= 98


@pytest.mark.parametrize("size", [6, 60])
def test_the_unit_of_a_figure_is_no_matter(size: int) -> None:
    """Figures are measured by how they vary, also where points are too few for a regression."""
    points = even_points(size, 3, 1)
    figure = np.random.default_rng(3).random(size)
    one, thousand = noise_of(points, np.column_stack([figure, 1000 * figure]), np.zeros(2))
    assert thousand == pytest.approx(1000 * one)
    assert 0.1 < one < 0.5
    assert list(noise_of(points[:0], np.empty((0, 2)), np.zeros(2))) == [1, 1]
