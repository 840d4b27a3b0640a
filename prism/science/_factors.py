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


def model_of(design: Design, measures: Sequence[str]) -> pl.DataFrame:
    """Return main effects of all factors, and interactions of two, on each measure.

    A linear model has every factor as categories, all interactions of two, and the seed as a block,
    as runs of the same seed share their random numbers (Fisher 1935, The Design of Experiments).
    Each term is tested by F with sums of squares of type II, by statsmodels.

    Args:
        design: The design.
        measures: The measures.

    Returns:
        A row for each measure and term: ``measure``, ``term`` (such as ``arm`` or ``arm x
        friends``), ``df``, ``df_residual``, ``f``, ``p``, ``p_holm`` (Holm's correction over all
        rows) and ``eta_squared`` (partial: the term's share of what it and the residuals explain).
        Measures that are the same in all runs have none, nor has a design with too few runs.
    """
    rows = [row for name in measures for row in _terms(design, name)]
    corrected = holm([row["p"] for row in rows])
    told = [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]

    return pl.DataFrame(told, schema=_SCHEMA)


def _terms(design: Design, measure: str) -> list[dict[str, Any]]:
    names = list(design.factors)
    runs = [
        (cell.measured.values[measure], cell.measured.run.seed, *(cell.levels[n] for n in names))
        for cell in design.cells
        if measure in cell.measured.values
    ]
    if len({run[0] for run in runs}) < 2:
        return []

    # names of parameters may be anything, those in a formula may not
    columns = [f"f{place}" for place in range(len(names))]
    data = dict(zip(("y", _SEED, *columns), map(list, zip(*runs, strict=True)), strict=True))
    frame = library("pandas").DataFrame(
        {name: values if name == "y" else list(map(str, values)) for name, values in data.items()}
    )
    block = f" + {_SEED}" if len(set(data[_SEED])) > 1 else ""
    together = f"({' + '.join(columns)})**2" if len(columns) > 1 else columns[0]
    with warnings.catch_warnings():
        # where runs are too few, what comes out is no number, and is left out
        warnings.simplefilter("ignore")
        fitted = library("statsmodels.formula.api").ols(f"y ~ {together}{block}", frame).fit()
        if fitted.df_resid < 1 or not fitted.ssr > 0:
            return []
        table = library("statsmodels.stats.anova").anova_lm(fitted, typ=2)

    spelt = dict(zip(columns, names, strict=True))
    return [
        {
            "measure": measure,
            "term": " x ".join(spelt[part] for part in term.split(":")),
            "df": int(row["df"]),
            "df_residual": int(fitted.df_resid),
            "f": float(row["F"]),
            "p": float(row["PR(>F)"]),
            "eta_squared": float(row["sum_sq"] / (row["sum_sq"] + fitted.ssr)),
        }
        for term, row in table.iterrows()
        if term not in (_SEED, "Residual") and isfinite(row["F"])
    ]
