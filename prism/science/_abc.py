"""Approximate Bayesian computation: parameters whose simulated figures match observed ones.

Points fill the bounds evenly. Those whose figures are nearest to the targets are kept, and their
parameters are regressed on the differences that remain (Beaumont, Zhang and Balding 2002, Genetics
162(4)), on a logit scale, so that none leaves its bounds. Coordinates go from 0 to 1, evenly
between the bounds of a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prism.randomness import RandomStream
from prism.science._arrays import Array, np
from prism.science._libraries import library

_EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Posterior:
    """The points that are kept.

    Args:
        places: Their places among all points, the nearest first.
        weights: Their weights, which sum to 1; the nearest count most (Epanechnikov's kernel).
        distances: How far each is from the targets, in standard deviations of the noise.
        points: Their coordinates, adjusted to what they would be if their figures were the targets.
    """

    places: Array
    weights: Array
    distances: Array
    points: Array


def even_points(size: int, parameters: int, seed: int) -> Array:
    """Return points that fill the unit cube evenly, a row each (Latin hypercube)."""
    qmc = library("scipy.stats.qmc")
    found: Array = qmc.LatinHypercube(parameters, rng=_dice(seed, "points")).random(size)
    return found


def posterior_of(
    points: Array, figures: Array, values: Array, spreads: Array, *, seed: int, size: int
) -> Posterior:
    """Return the posterior of the parameters, given figures that are known up to a normal error.

    To each simulated figure an error of that size is added (Wilkinson 2013, Statistical
    Applications in Genetics and Molecular Biology 12(2)).

    Args:
        points: All points, a row each.
        figures: Their figures, a column per target; NaN if a run failed.
        values: The targets.
        spreads: The standard error of each target: how far the true figure may lie from it.
        seed: Seed of the fit.
        size: How many points to keep.
    """
    observed = figures + _dice(seed, "errors").standard_normal(figures.shape) * spreads
    off = (observed - values) / noise_of(points, figures, spreads)
    distances = np.sqrt((off**2).sum(axis=1))
    # a point that failed is farther than any other
    order = np.argsort(np.where(np.isnan(distances), np.inf, distances), kind="stable")
    places = order[np.isfinite(distances[order])][:size]

    reached = distances[places]
    near = 1 - (reached / (reached.max(initial=0.0) * (1 + _EDGE) or 1.0)) ** 2
    moved = _adjusted(points[places], off[places], near)
    return Posterior(places, near / near.sum(), reached, moved)


def noise_of(points: Array, figures: Array, spreads: Array) -> Array:
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
    found = np.maximum(np.sqrt(rest), spreads)
    return np.where(found > 0, found, 1.0)


def _adjusted(points: Array, off: Array, weights: Array) -> Array:
    """Return points as they would be if their figures were the targets, by weighted regression."""
    kept = np.clip(points, _EDGE, 1 - _EDGE)
    logits = np.log(kept / (1 - kept))
    design = np.column_stack([np.ones(len(off)), off])
    roots = np.sqrt(weights)[:, None]
    slopes = np.linalg.lstsq(design * roots, logits * roots, rcond=None)[0][1:]
    found: Array = 1 / (1 + np.exp(-np.clip(logits - off @ slopes, -40, 40)))
    return found


def quantiles(values: Array, weights: Array, levels: Sequence[float]) -> list[float]:
    """Return quantiles of values that have weights."""
    order = np.argsort(values)
    # each value is in the middle of its weight
    reached = np.cumsum(weights[order]) - weights[order] / 2
    return [float(each) for each in np.interp(levels, reached, values[order])]


def _dice(seed: int, key: str) -> np.random.Generator:
    return np.random.default_rng(RandomStream(seed, "fit", key).index(2**53))
