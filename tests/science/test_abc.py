"""Approximate Bayesian computation: its posteriors are those that are known."""

import pytest

from prism.science._abc import (
    Targets,
    adjusted,
    first_points,
    keep_nearest,
    next_points,
    noise_of,
    quantiles,
    with_spread,
)

np = pytest.importorskip("numpy")
stats = pytest.importorskip("scipy.stats")

NOISE = 0.05


def simulated(points: np.ndarray, seed: int) -> np.ndarray:
    """Return a figure that is the first coordinate and noise, and one that is noise alone."""
    dice = np.random.default_rng([seed, len(points)])
    return np.column_stack(
        [points[:, 0] + NOISE * dice.standard_normal(len(points)), dice.random(len(points))]
    )


def fitted(targets: Targets, seed: int, generations: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return the adjusted coordinates of a fit in one dimension, and their weights."""
    points, odds = first_points(100, 1, seed), np.ones(100)
    figures = simulated(points, seed)
    for generation in range(generations):
        noisy = with_spread(figures, targets, seed)
        population = keep_nearest(points, odds, noisy, targets, 50)
        if generation < generations - 1:
            new, density = next_points(points, population, 50, seed)
            points, odds = np.concatenate([points, new]), np.concatenate([odds, density])
            figures = np.concatenate([figures, simulated(new, seed + generation)])

    return adjusted(points, population, noisy, targets)[:, 0], population.weights


def test_the_posterior_is_the_known_one() -> None:
    """Of a normal figure it is normal: its noise and the target's spread, added in squares."""
    spreads, spread = [], 0.05
    for seed in range(12):
        values, weights = fitted(Targets(np.array([0.5, 0.5]), np.array([spread, 1.0])), seed)
        low, median, high = quantiles(values, weights, (0.05, 0.5, 0.95))
        assert abs(median - 0.5) < 0.06
        spreads.append((high - low) / (2 * stats.norm.ppf(0.95)))

    assert np.mean(spreads) == pytest.approx(np.hypot(NOISE, spread), rel=0.15)


@pytest.mark.slow
def test_planted_coordinates_lie_in_their_intervals() -> None:
    """Of 100 fits about 90 hold what was planted, also near the edges."""
    dice = np.random.default_rng(5)
    held = 0
    for seed in range(100):
        truth = dice.random()
        target = np.array([truth + NOISE * dice.standard_normal(), dice.random()])
        values, weights = fitted(Targets(target, np.zeros(2)), seed, generations=3)
        low, high = quantiles(values, weights, (0.05, 0.95))
        held += low <= truth <= high

    assert 82 <= held <= 98


def test_points_that_failed_are_not_kept() -> None:
    """A figure that is missing is far from every target."""
    points, targets = first_points(40, 2, 1), Targets(np.array([0.5, 0.5]), np.zeros(2))
    figures = simulated(points, 1)
    figures[::2] = np.nan
    found = keep_nearest(points, np.ones(40), figures, targets, 30)
    assert set(found.places) == set(range(1, 40, 2))
    assert found.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("size", [6, 60])
def test_the_unit_of_a_figure_is_no_matter(size: int) -> None:
    """Figures are measured by how they vary, also where points are too few for a regression."""
    points, targets = first_points(size, 3, 1), Targets(np.array([0.5, 500.0]), np.zeros(2))
    figure = np.random.default_rng(3).random(size)
    one, thousand = noise_of(points, np.column_stack([figure, 1000 * figure]), targets)
    assert thousand == pytest.approx(1000 * one)
    assert 0.1 < one < 0.5
    assert list(noise_of(points[:0], np.empty((0, 2)), targets)) == [1, 1]


@pytest.mark.slow
def test_densities_are_those_of_the_points_drawn() -> None:
    """What was drawn more often weighs less: weighted, new points are as even as the first."""
    points = first_points(2000, 1, 2)
    targets = Targets(np.array([0.8]), np.array([1.0]))
    near = keep_nearest(points, np.ones(2000), points, targets, 1900)
    new, density = next_points(points, near, 4000, 2)
    assert ((new >= 0) & (new <= 1)).all()
    weights = 1 / density
    assert np.mean(weights) == pytest.approx(1, abs=0.05)
    assert np.average(new[:, 0], weights=weights) == pytest.approx(0.5, abs=0.03)


def test_the_same_seed_draws_the_same_points() -> None:
    """A fit that is resumed draws what it would have drawn; another seed draws others."""
    targets = Targets(np.array([0.5, 0.5]), np.ones(2))
    assert (fitted(targets, 3)[0] == fitted(targets, 3)[0]).all()
    assert (fitted(targets, 3)[0] != fitted(targets, 4)[0]).any()
    figures = np.zeros((30, 2))
    assert (with_spread(figures, targets, 1)[:10] == with_spread(figures[:10], targets, 1)).all()
