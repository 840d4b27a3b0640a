"""Main effects and interactions of the factors of a design, by analysis of variance."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import isfinite
from typing import Any

import polars as pl

from prism.science._design import Design
from prism.science._libraries import library
from prism.science._statistics import holm

_SEED = "seed"
_SCHEMA = {
    **dict.fromkeys(("measure", "term"), pl.String()),
    **dict.fromkeys(("df", "df_residual"), pl.Int64()),
    **dict.fromkeys(("f", "p", "p_holm", "eta_squared"), pl.Float64()),
}

_ROUNDING = 1e-20
"""Share of the variation below which sums of squares are only rounding."""


def model_of(design: Design, measures: Sequence[str]) -> pl.DataFrame:
    """Return main effects of all factors, and interactions of two, on each measure.

    A linear model has every factor as categories, all interactions of two, and the seed as a block,
    since runs of the same seed share their random numbers (Fisher 1935, The Design of Experiments).
    Each term is tested by F with sums of squares of type II, by statsmodels.

    Args:
        design: The design.
        measures: The measures.

    Returns:
        A row for each measure and term: ``measure``, ``term`` (such as ``arm`` or ``arm x
        friends``), ``df``, ``df_residual``, ``f``, ``p``, ``p_holm`` (Holm's correction over all
        rows) and ``eta_squared`` (partial: the term's share of what it and the residuals explain).
        There is no row for a measure that is the same in all runs or that factors and seeds explain
        completely, and none for a design with too few runs.
    """
    rows = [row for name in measures for row in _terms(design, name)]
    corrected = holm([row["p"] for row in rows])
    told = [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]

    return pl.DataFrame(told, schema=_SCHEMA)


def _terms(design: Design, measure: str) -> list[dict[str, Any]]:
    found = _anova(design, measure)
    if found is None:
        return []

    table, residuals, freedom = found
    return [
        {
            "measure": measure,
            "term": " x ".join(list(design.factors)[int(part[1:])] for part in term.split(":")),
            "df": int(row["df"]),
            "df_residual": freedom,
            "f": float(row["F"]),
            "p": float(row["PR(>F)"]),
            "eta_squared": float(row["sum_sq"] / (row["sum_sq"] + residuals)),
        }
        for term, row in table.iterrows()
        if term not in (_SEED, "Residual") and isfinite(row["F"])
    ]


def _anova(design: Design, measure: str) -> tuple[Any, float, int] | None:
    """Return the table of a measure, the residual sum of squares and its degrees of freedom.

    None if the measure does not vary, or there are too few runs.
    """
    frame, factors = _frame(design, measure)
    if frame["y"].nunique() < 2:
        return None

    block = f" + {_SEED}" if frame[_SEED].nunique() > 1 else ""
    with warnings.catch_warnings():
        # with too few runs the results are NaN, and are left out
        warnings.simplefilter("ignore")
        formula = f"y ~ ({' + '.join(factors)})**2{block}"
        fitted = library("statsmodels.formula.api").ols(formula, frame).fit()
        # if factors and seeds explain everything, the residuals are only rounding errors
        if fitted.df_resid < 1 or not fitted.ssr > _ROUNDING * fitted.centered_tss:
            return None
        table = library("statsmodels.stats.anova").anova_lm(fitted, typ=2)

    return table, float(fitted.ssr), int(fitted.df_resid)


def _frame(design: Design, measure: str) -> tuple[Any, list[str]]:
    """Return a row for each run that has a measure, and the names of the factor columns."""
    cells = [each for each in design.cells if measure in each.measured.values]
    # parameters may have any name, but variables of a formula may not
    factors = {
        f"f{place}": [str(each.levels[name]) for each in cells]
        for place, name in enumerate(design.factors)
    }
    measured = {
        "y": [each.measured.values[measure] for each in cells],
        _SEED: [str(each.measured.run.seed) for each in cells],
    }

    return library("pandas").DataFrame({**measured, **factors}), list(factors)
