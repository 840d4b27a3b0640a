"""What a calibration has found, as tables."""

from __future__ import annotations

import polars as pl

from prism.science._calibrate import Calibration


def policy_probabilities(found: Calibration) -> pl.DataFrame:
    """Return the probabilities of decisions: one row for each option of each cell.

    Args:
        found: What `calibrate` returned.

    Returns:
        ``state``, ``event``, ``group`` (null for all together), ``option``, ``n`` decisions of the
        cell, ``count``, ``probability`` (null where not identified), and ``agents``.
    """
    rows = [
        (cell.state, cell.event, cell.group, option, cell.n, count, probability, cell.agents)
        for cell in found.cells
        for option, count, probability in zip(
            cell.options,
            cell.counts,
            cell.probabilities or [None] * len(cell.options),
            strict=True,
        )
    ]
    schema = {
        **dict.fromkeys(("state", "event", "group", "option"), pl.String),
        **dict.fromkeys(("n", "count"), pl.Int64),
        "probability": pl.Float64,
        "agents": pl.Int64,
    }

    return pl.DataFrame(rows, schema, orient="row")


def policy_unidentified(found: Calibration) -> pl.DataFrame:
    """Return what could not be identified and why.

    Args:
        found: What `calibrate` returned.

    Returns:
        One row each: ``what``, ``state``, ``event``, ``group``, ``name``, ``n`` and ``reason``.
    """
    names = ("what", "state", "event", "group", "name", "n", "reason")
    rows = [[getattr(each, name) for name in names] for each in found.unidentified]
    schema = {name: pl.Int64() if name == "n" else pl.String() for name in names}
    return pl.DataFrame(rows, schema, orient="row")
