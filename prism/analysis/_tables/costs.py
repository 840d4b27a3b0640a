"""What models cost: requests, tokens and seconds, of decisions and texts together."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_sum
from prism.errors import InputError
from prism.telemetry.events import DECISION, TEXT_WRITTEN

GROUPS = ("model", "host", "what", "round")
"""What costs can be grouped by."""

_SUMMED = {
    "calls": "attempts",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "seconds": "request_seconds",
}
"""Columns, by the keys of the log that they add up."""


def costs(logs: RunLogs, *, by: Sequence[str] = ("model",)) -> pl.DataFrame:
    """Add up what models cost, in decisions and texts.

    Args:
        logs: The logs, from `read_log`.
        by: What to group costs by: ``model``, ``host``, ``what`` (``decisions`` or ``texts``),
            ``round``.

    Returns:
        One row for each group: its names; ``answers`` (decisions and texts that a model was to
        give, failed ones included), ``calls`` (requests), ``input_tokens``, ``output_tokens``, and
        ``seconds`` that the last request of each took; null where none is known. With ``run``
        first if there are several.

    Raises:
        InputError: If ``by`` has another name.
    """
    unknown = ", ".join(name for name in by if name not in GROUPS)
    if unknown:
        raise InputError(f"costs cannot be grouped by {unknown}: choose from {', '.join(GROUPS)}")

    keys = ["run", *dict.fromkeys(by)]
    columns = [*(name for name in keys[1:] if name != "what"), "model", *_SUMMED.values()]
    counts = merge_by_sum(keys)
    for frame in logs.blocks(DECISION, TEXT_WRITTEN, columns=columns):
        counts.add(_summed(frame, keys))

    table = counts.table().with_columns(
        pl.when(pl.col(f"{name}_known") > 0).then(pl.col(name)).alias(name) for name in _SUMMED
    )

    return logs.labelled(table.select(*keys, "answers", *_SUMMED).sort(keys))


def _summed(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    what = pl.when(pl.col("event") == DECISION).then(pl.lit("decisions")).otherwise(pl.lit("texts"))
    asked = frame.filter(pl.col("model").is_not_null()).with_columns(what=what)

    return asked.group_by(keys).agg(
        answers=pl.len().cast(pl.Int64),
        **{name: pl.col(key).sum() for name, key in _SUMMED.items()},
        # a sum alone cannot tell 0 from unknown
        **{f"{name}_known": pl.col(key).count().cast(pl.Int64) for name, key in _SUMMED.items()},
    )
