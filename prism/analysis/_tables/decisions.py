"""What was asked of models, what came back, and how sure the answers were."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any, get_args

import orjson
import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_sum
from prism.errors import InputError
from prism.statechart.reasoner._questions import Source
from prism.telemetry.events import DECISION

GROUPS = ("state", "model", "source", "trigger", "host", "reason", "chosen", "round")
"""What decisions can be told apart by."""

WAS_ASKED: pl.Expr = pl.col("latency").is_not_null() & ~pl.all_horizontal(
    pl.col("source").eq_missing(pl.lit("fallback")), pl.col("attempts").eq_missing(pl.lit(0))
)
"""Whether a model was asked for a decision: its latency is known, and it is no fallback without a request.

An answer without a request of its own counts: it is that of another decision's request, and came as
late."""

_SOURCES: tuple[str, ...] = get_args(Source)
_COSTS = ("attempts", "input_tokens", "output_tokens")
_ENTROPIES = ("entropy", "entropy_share")


def decisions(logs: RunLogs, *, by: Sequence[str] = ("state", "model")) -> pl.DataFrame:
    """Describe the decisions that agents put to a reasoner.

    The entropy of a decision is that of the probabilities its chooser gave to the options, H = -sum
    p log2 p in bits (Shannon 1948, Bell System Technical Journal 27): 0 if it was sure, log2 n if n
    options were all the same to it. Probabilities that do not add up to 1 are scaled first; what is
    no distribution is left out.

    Args:
        logs: What `read_log` gave.
        by: What to tell decisions apart by, from ``GROUPS``. ``model`` is null where no model was
            asked.

    Returns:
        One row for each group: its names; ``asked``; ``answered`` (all but the fallbacks); how many
        came from each source: ``from_model``, ``from_cache``, ``from_replay``, ``from_policy``,
        ``from_fallback``; ``fallback_share`` (0 to 1); ``attempts`` (requests), ``input_tokens``
        and ``output_tokens`` in total (null where none is known); ``latency_p50``, ``latency_p90``,
        ``latency_p99`` and ``latency_max`` in seconds, over the decisions that a model was asked
        for (fallbacks with ``attempts`` 0, as where a budget was spent, are not among them),
        interpolated linearly; ``entropy`` (mean, bits) and ``entropy_share`` (mean of H / log2 n, 0
        to 1, over decisions with two options or more). With ``run`` first if there are several.

    Raises:
        InputError: If ``by`` names something else.
    """
    if unknown := [name for name in by if name not in GROUPS]:
        raise InputError(
            f"decisions are not told apart by {', '.join(unknown)}: choose from {', '.join(GROUPS)}"
        )

    keys = ["run", *dict.fromkeys(by)]
    counts, latencies = merge_by_sum(keys), TableMerger(lambda tables: tables)
    for frame in logs.blocks(
        DECISION, columns=[*keys[1:], "source", "probabilities", "latency", *_COSTS]
    ):
        counts.add(_counted(frame, keys))
        latencies.add(frame.filter(WAS_ASKED).select(*keys, "latency"))

    table = _described(counts.table()).join(
        _percentiles(latencies.table(), keys), on=keys, how="left", nulls_equal=True
    )

    return logs.labelled(table.select(*keys, *_COLUMNS).sort(keys))


_COLUMNS = (
    *("asked", "answered", *(f"from_{source}" for source in _SOURCES), "fallback_share", *_COSTS),
    *("latency_p50", "latency_p90", "latency_p99", "latency_max", *_ENTROPIES),
)


def _counted(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    known = _entropies(frame["probabilities"].drop_nulls().unique())
    source = pl.col("source")
    sums = [pl.col(name).sum() for name in (*_COSTS, *_ENTROPIES)]
    numbers = [
        pl.col(name).count().cast(pl.Int64).alias(f"{name}_known")
        for name in (*_COSTS, *_ENTROPIES)
    ]

    return (
        frame.join(known, on="probabilities", how="left")
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("asked"),
            *((source == name).sum().cast(pl.Int64).alias(f"from_{name}") for name in _SOURCES),
            *sums,
            *numbers,
        )
    )


def _described(counts: pl.DataFrame) -> pl.DataFrame:
    asked = pl.col("asked")
    return counts.with_columns(
        answered=asked - pl.col("from_fallback"),
        fallback_share=pl.col("from_fallback") / asked,
        **{name: pl.when(pl.col(f"{name}_known") > 0).then(pl.col(name)) for name in _COSTS},
        **{
            name: pl.when(pl.col(f"{name}_known") > 0).then(pl.col(name) / pl.col(f"{name}_known"))
            for name in _ENTROPIES
        },
    )


def _percentiles(latencies: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    latency = pl.col("latency")
    return latencies.group_by(keys).agg(
        *(
            latency.quantile(share / 100, "linear").alias(f"latency_p{share}")
            for share in (50, 90, 99)
        ),
        latency.max().alias("latency_max"),
    )


def _entropies(texts: pl.Series) -> pl.DataFrame:
    """Return the entropies of probabilities that are given as JSON."""
    pairs = [_entropy(orjson.loads(text)) for text in texts]
    schema = dict.fromkeys(_ENTROPIES, pl.Float64)
    return pl.DataFrame(pairs, schema=schema, orient="row").with_columns(probabilities=texts)


def _entropy(probabilities: Any) -> tuple[float | None, float | None]:
    """Return the entropy in bits, and its share of the most it could be."""
    values = list(probabilities.values()) if isinstance(probabilities, dict) else []
    if (
        not values
        or not all(isinstance(value, (int, float)) and value >= 0 for value in values)
        or not any(values)
    ):
        return None, None

    largest = max(values)
    total = sum(value / largest for value in values)
    shares = [value / largest / total for value in values]
    bits = -sum(share * log2(share) for share in shares if share) + 0.0

    return bits, bits / log2(len(values)) if len(values) > 1 else None
