"""Main effects and interactions of the factors of a design, by analysis of variance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import Any

import polars as pl

from prism.science._arrays import Array, np
from prism.science._design import Cell, Design
from prism.science._libraries import library
from prism.science._statistics import holm

_SCHEMA = {
    **dict.fromkeys(("measure", "term"), pl.String()),
    **dict.fromkeys(("df", "df_residual"), pl.Int64()),
    **dict.fromkeys(("f", "p", "p_holm", "eta_squared"), pl.Float64()),
}

_ROUNDING = 1e-20
"""Share of the variation below which sums of squares are only rounding."""

_LEAST = 1e-9
"""Difference of a category from its mean below which it is only rounding."""


def model_of(design: Design, measures: Sequence[str]) -> pl.DataFrame:
    """Return main effects of all factors, and interactions of two, on each measure.

    A linear model has every factor as categories, all interactions of two, and the seed as a block,
    since runs of the same seed share their random numbers (Fisher 1935, The Design of Experiments).
    Each term is tested by F with sums of squares of type II: what the model with all terms that do
    not contain it leaves over without it, and explains with it.

    Args:
        design: The design.
        measures: The measures.

    Returns:
        A row for each measure and term: ``measure``, ``term`` (such as ``arm`` or ``arm x
        friends``), ``df``, ``df_residual``, ``f``, ``p``, ``p_holm`` (Holm's correction over all
        rows) and ``eta_squared`` (partial: the term's share of what it and the residuals explain).
        There is no row for a measure that is the same in all runs or that factors and seeds explain
        completely, none for a design with too few runs, and none for a term that cannot be told
        apart from others, such as an interaction whose runs are missing.
    """
    rows = list(chain.from_iterable(_terms(design, name) for name in measures))
    corrected = holm([row["p"] for row in rows])
    told = [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]

    return pl.DataFrame(told, schema=_SCHEMA)


def _terms(design: Design, measure: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a measure; none if it does not vary, or there are too few runs."""
    cells = [each for each in design.cells if measure in each.measured.values]
    if len(cells) < 2:
        return

    values = np.array([each.measured.values[measure] for each in cells], dtype=float)
    values -= values.mean()
    terms = _columns_of(design.factors, cells)
    varied = (values**2).sum()
    # a column for each of many seeds would take long; differences from their means give the same
    block = _dummies([str(each.measured.run.seed) for each in cells])
    values = _without_means(block, values)
    terms = {term: _varying(_without_means(block, of)) for term, of in terms.items()}
    residuals, rank = _left_over(values, *terms.values())
    freedom = len(values) - block.shape[1] - rank
    # if factors and seeds explain everything, the residuals are only rounding errors
    if freedom < 1 or not residuals > _ROUNDING * varied:
        return

    for term, columns in terms.items():
        beside = [of for other, of in terms.items() if not set(term) <= set(other)]
        without, fewer = _left_over(values, *beside)
        with_it, more = _left_over(values, *beside, columns)
        df, squares = more - fewer, without - with_it
        if df:
            f = squares / df / (residuals / freedom)
            yield {
                "measure": measure,
                "term": " x ".join(term),
                "df": df,
                "df_residual": freedom,
                "f": f,
                "p": float(library("scipy.stats").f.sf(f, df, freedom)),
                "eta_squared": squares / (squares + residuals),
            }


def _columns_of(factors: Iterable[str], cells: Sequence[Cell]) -> dict[tuple[str, ...], Array]:
    """Return the columns of each factor, and of each two of them."""
    alone = {name: _dummies([str(each.levels[name]) for each in cells]) for name in factors}
    terms: dict[tuple[str, ...], Array] = {(name,): of for name, of in alone.items()}
    for one, other in combinations(alone, 2):
        terms[one, other] = _products(alone[one], alone[other])

    return terms


def _dummies(levels: Sequence[str]) -> Array:
    """Return a column for each level, with 1 where a run has it."""
    columns = dict.fromkeys(levels)
    return np.array([[float(level == each) for each in columns] for level in levels])


def _products(one: Array, other: Array) -> Array:
    found: Array = np.einsum("ri,rj->rij", one, other).reshape(len(one), -1)
    return found


def _without_means(block: Array, values: Array) -> Array:
    """Return the differences of values, or of columns, from their means in each block."""
    means = (block / block.sum(axis=0)).T @ values
    found: Array = values - block @ means
    return found


def _varying(columns: Array) -> Array:
    """Return columns with 0 for what is only rounding, which a rank would count."""
    return np.where(np.abs(columns) < _LEAST, 0.0, columns)


def _left_over(values: Array, *columns: Array) -> tuple[float, int]:
    """Return the residual sum of squares of a linear model, and its rank."""
    if not columns:
        return float((values**2).sum()), 0

    design = np.concatenate(columns, axis=1)
    weights, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)

    return float(((values - design @ weights) ** 2).sum()), int(rank)
