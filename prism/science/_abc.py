"""Approximate Bayesian computation: find parameters whose simulated figures match observed ones.

The population is adaptive (APMC; Lenormand, Jabot and Deffuant 2013, Computational Statistics
28(6)). Each generation keeps the nearest half of all points, draws new ones around them, and
weights each by how likely it was to be drawn. The tolerance therefore shrinks with every
generation. At the end, the parameters are regressed on the remaining differences (Beaumont, Zhang
and Balding 2002, Genetics 162(4)), on a logit scale, so that none leaves its bounds.

Coordinates go from 0 to 1, evenly between the bounds of a parameter. Everything is a function of
the points so far and a seed, so a resumed fit draws the same points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from prism.randomness import RandomStream
from prism.science._arrays import Array, np
from prism.science._libraries import library

KEPT = 0.5
"""Share of the points of a generation that is kept."""

_WIDENING = 2.0
"""The kernel has twice the covariance of the kept points (Beaumont et al. 2009)."""

_LEAST_NEW = 0.1
"""If a smaller share of a generation is near enough, it is the last one."""

_EDGE = 1e-6
_RIDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Targets:
    """The figures that simulated ones are compared with.

    Args:
        values: The figures.
        spreads: The standard error of each: how far the true figure may lie from it.
    """

    values: Array
    spreads: Array


@dataclass(frozen=True, slots=True)
class Population:
    """The points that are kept among all that were drawn.

    Args:
        places: Their places among all points, the nearest first.
        weights: Their weights, which sum to 1.
        distances: How far each is from the targets, in standard deviations of the noise.
        tolerance: The largest of the distances.
    """

    places: Array
    weights: Array
    distances: Array
    tolerance: float


@dataclass(frozen=True)
class Search:
    """The state of a search.

    Args:
        targets: The figures to compare with.
        seed: Seed of the fit.
        samples: Points of the first generation; each later one has half as many.
        generations: Maximum number of generations.
        points: All points so far, a row each.
        odds: The density with which each was drawn; 1 for those of the first generation.
        figures: The figures of each point, a column per target; NaN if it failed.
    """

    targets: Targets
    seed: int
    samples: int
    generations: int
    points: Array = field(repr=False)
    odds: Array = field(repr=False)
    figures: Array = field(repr=False)

    @cached_property
    def population(self) -> Population:
        """The points that are kept."""
        kept = int(self.samples * KEPT)
        return keep_nearest(self.points, self.odds, self._noisy, self.targets, kept)

    @cached_property
    def adjusted(self) -> Array:
        """The kept points, adjusted to what they would be if their figures were the targets."""
        return adjusted(self.points, self.population, self._noisy, self.targets)

    @property
    def is_to_grow(self) -> bool:
        """Whether another generation follows."""
        before = len(self.points)
        made = 1 + (before - self.samples) // self._growth
        if made == 1 or made >= self.generations:
            return made < self.generations

        new = self.population.places >= before - self._growth
        return bool(new.sum() >= _LEAST_NEW * self._growth)

    def next_points(self) -> tuple[Array, Array]:
        """Draw the next generation; return its points, and the density of each."""
        return next_points(self.points, self.population, self._growth, self.seed)

    def quantiles(self, parameter: int, levels: tuple[float, ...]) -> list[float]:
        """Return quantiles of a parameter, given by its index, after the search."""
        return quantiles(self.adjusted[:, parameter], self.population.weights, levels)

    @property
    def _growth(self) -> int:
        return self.samples - int(self.samples * KEPT)

    @cached_property
    def _noisy(self) -> Array:
        return with_spread(self.figures, self.targets, self.seed)


def first_points(size: int, parameters: int, seed: int) -> Array:
    """Return points that fill the unit cube evenly, a row each (Latin hypercube)."""
    qmc = library("scipy.stats.qmc")
    found: Array = qmc.LatinHypercube(parameters, rng=_dice(seed, "first")).random(size)

    return found


def keep_nearest(
    points: Array, odds: Array, figures: Array, targets: Targets, size: int
) -> Population:
    """Return the nearest points.

    Args:
        points: All points so far, a row each.
        odds: The density with which each was drawn; 1 for those of the first generation.
        figures: The figures of each point, a column per target; NaN if it failed.
        targets: The targets.
        size: How many to keep.
    """
    off = (figures - targets.values) / noise_of(points, figures, targets)
    distances = np.sqrt((off**2).sum(axis=1))
    # a point that failed is farther than any other
    places = np.argsort(np.where(np.isnan(distances), np.inf, distances), kind="stable")[:size]
    places = places[np.isfinite(distances[places])]
    weights = 1 / odds[places]
    reached = distances[places]

    return Population(places, weights / weights.sum(), reached, float(reached.max(initial=0.0)))


def noise_of(points: Array, figures: Array, targets: Targets) -> Array:
    """Return the variation of each figure between runs with equal parameters, at least its spread.

    This is the residual of a quadratic regression on the parameters over all points; of the mean if
    there are too few of them. A figure that depends mostly on the parameters counts for more than
    one that is mostly chance.
    """
    known = ~np.isnan(figures).any(axis=1)
    columns = points.shape[1]
    pairs = [points[:, i] * points[:, j] for i in range(columns) for j in range(i, columns)]
    design = np.column_stack([np.ones(len(points)), points, *pairs])[known]
    if len(design) <= design.shape[1]:
        design = design[:, :1]

    fitted = design @ np.linalg.lstsq(design, figures[known], rcond=None)[0]
    free = max(len(design) - design.shape[1], 1)
    rest = ((figures[known] - fitted) ** 2).sum(axis=0) / free
    found = np.maximum(np.sqrt(rest), targets.spreads)

    return np.where(found > 0, found, 1.0)


def next_points(points: Array, population: Population, size: int, seed: int) -> tuple[Array, Array]:
    """Draw points around those that are kept; return them, and the density of each.

    Args:
        points: All points so far.
        population: Those that are kept.
        size: How many to draw.
        seed: Seed of the fit.
    """
    dice = _dice(seed, "around", len(points))
    kept, weights = points[population.places], population.weights
    covariance = np.atleast_2d(np.cov(kept, rowvar=False, aweights=weights)) * _WIDENING
    covariance += np.eye(kept.shape[1]) * _RIDGE
    inside, drawn = np.empty((0, kept.shape[1])), 0
    while len(inside) < size:
        around = kept[dice.choice(len(kept), size=size, p=weights)]
        tried = around + dice.multivariate_normal(np.zeros(kept.shape[1]), covariance, size=size)
        drawn += size
        inside = np.concatenate([inside, tried[((tried >= 0) & (tried <= 1)).all(axis=1)]])

    # points outside are drawn again, so all others are more likely by the same factor
    share = len(inside) / drawn
    found = inside[:size]
    kernel = library("scipy.stats").multivariate_normal(np.zeros(kept.shape[1]), covariance)
    densities = np.array([weights @ np.atleast_1d(kernel.pdf(each - kept)) for each in found])

    return found, densities / share


def adjusted(points: Array, population: Population, figures: Array, targets: Targets) -> Array:
    """Return the kept points, adjusted to what they would be if their figures were the targets.

    Args:
        points: All points.
        population: Those that are kept.
        figures: The figures of all points.
        targets: The targets.
    """
    kept = np.clip(points[population.places], _EDGE, 1 - _EDGE)
    off = figures[population.places] - targets.values
    logits = np.log(kept / (1 - kept))
    # nearer points count for more (Epanechnikov's kernel)
    near = 1 - (population.distances / (population.tolerance * (1 + _EDGE) or 1.0)) ** 2
    roots = np.sqrt(near * population.weights)[:, None]
    scale = np.where(off.std(axis=0) > 0, off.std(axis=0), 1.0)
    design = np.column_stack([np.ones(len(off)), off / scale])
    slopes = np.linalg.lstsq(design * roots, logits * roots, rcond=None)[0][1:]
    moved = logits - (off / scale) @ slopes
    found: Array = 1 / (1 + np.exp(-np.clip(moved, -40, 40)))

    return found


def quantiles(values: Array, weights: Array, levels: tuple[float, ...]) -> list[float]:
    """Return quantiles of values that have weights."""
    order = np.argsort(values)
    # each value is in the middle of its weight
    reached = np.cumsum(weights[order]) - weights[order] / 2

    return [float(each) for each in np.interp(levels, reached, values[order])]


def with_spread(figures: Array, targets: Targets, seed: int) -> Array:
    """Return figures as they would be observed, with an error of the size of their spread.

    The posterior is then that of targets that are known up to a normal error (Wilkinson 2013,
    Statistical Applications in Genetics and Molecular Biology 12(2)).

    Args:
        figures: The figures of all points, a row per point.
        targets: The targets.
        seed: Seed of the fit.
    """
    # rows are drawn one after the other, so those of earlier generations do not change
    errors = _dice(seed, "spread").standard_normal(figures.shape)
    found: Array = figures + errors * targets.spreads

    return found


def _dice(seed: int, *key: str | int) -> np.random.Generator:
    return np.random.default_rng(RandomStream(seed, "fit", *key).index(2**53))
