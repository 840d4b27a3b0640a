"""Decisions: their sources, what they and texts cost, and how certain they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any, get_args

import orjson
import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, TableMerger, merge_by_sum
from prism.errors import InputError
from prism.reasoner._questions import Source
from prism.telemetry.events import DECISION, TEXT_WRITTEN

GROUPS = ("state", "model", "source", "trigger", "host", "reason", "chosen", "round")
"""The columns by which decisions can be grouped."""

WAS_ASKED: pl.Expr = pl.col("latency").is_not_null() & ~pl.all_horizontal(
    pl.col("source").eq_missing(pl.lit("fallback")), pl.col("attempts").eq_missing(pl.lit(0))
)
"""Whether a model was asked: the latency is known, and it is not a fallback without a request.

An answer without its own request counts: it came with another decision's request, and took as
long."""

SOURCES: tuple[str, ...] = get_args(Source)
COSTS = ("attempts", "input_tokens", "output_tokens")
_MEANS = ("entropy", "entropy_share", "option_mass", "chosen_first")
_OF_CHOICE = ("source", "options", "chosen", "rotation", "option_mass")
_PARTS = {"queue": "queue_seconds", "request": "request_seconds"}
"""The parts of a latency, by the names of their columns."""

_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_COLUMNS = (
    "asked",
    "answered",
    *(f"from_{source}" for source in SOURCES),
    "fallback_share",
    *COSTS,
    "latency_p50",
    "latency_p90",
    "latency_p99",
    "latency_max",
    *(f"{name}_{percentile}" for name in _PARTS for percentile in _PERCENTILES),
    *_MEANS,
    "with_probabilities",
    "repaired",
    "said",
)


def decisions(logs: RunLogs, *, by: Sequence[str] = ("state", "model")) -> pl.DataFrame:
    """Describe the decisions that agents asked a reasoner for.

    The entropy of a decision is that of the probabilities given to its options, H = -sum p log2 p
    in bits (Shannon 1948, Bell System Technical Journal 27): 0 if one option was certain, log2 n if
    n options were equally likely. Probabilities that do not add up to 1 are scaled first. Values
    that are not a distribution are ignored.

    Args:
        logs: The logs, from `read_log`.
        by: What to group decisions by, from ``GROUPS``. ``model`` is null if no model was asked.

    Returns:
        One row for each group: its names; ``asked``; ``answered`` (all but the fallbacks); the
        number from each source: ``from_model``, ``from_cache``, ``from_replay``, ``from_policy``,
        ``from_fallback``; ``fallback_share`` (0 to 1); ``attempts`` (requests), ``input_tokens``
        and ``output_tokens`` in total (null if none is known); ``latency_p50``, ``latency_p90``,
        ``latency_p99`` and ``latency_max`` in seconds, interpolated linearly, over the decisions a
        model was asked for (without fallbacks that have 0 ``attempts``, such as those after a
        budget is spent); the same for its parts, if they are known: ``queue_p50``, ``queue_p90``
        and ``queue_p99`` before the last request, ``request_p50``, ``request_p90`` and
        ``request_p99`` for it; ``entropy`` (mean, bits) and ``entropy_share`` (mean of H / log2 n,
        0 to 1, over decisions with two options or more); ``option_mass`` (mean, if a model's
        log-probabilities reveal it); ``chosen_first``, the share of a model's choices that came
        first among the options in the prompt; and the numbers of decisions ``with_probabilities``,
        ``repaired`` (asked again in other words) and ``said`` (with a reason from the model). If
        there are several runs, ``run`` is the first column.

    Raises:
        InputError: If ``by`` has another name.
    """
    keys = _keys_of("decisions", by, GROUPS)
    wanted = (
        *keys[1:],
        *_OF_CHOICE,
        "probabilities",
        "said",
        "repaired",
        "latency",
        *_PARTS.values(),
        *COSTS,
    )
    columns = list(dict.fromkeys(wanted))
    counts, latencies = merge_by_sum(keys), TableMerger(lambda tables: tables)
    for frame in logs.blocks(DECISION, columns=columns):
        counts.add(_counted(frame, keys))
        # lists, since a row for each decision would repeat the names of its group
        latencies.add(frame.filter(WAS_ASKED).group_by(keys).agg("latency", *_PARTS.values()))

    percentiles = _percentiles(latencies.table(), keys)
    table = _described(counts.table()).join(percentiles, on=keys, how="left", nulls_equal=True)

    return logs.labelled(table.select(*keys, *_COLUMNS).sort(keys))


def _was_first() -> pl.Expr:
    """Return whether a model chose the option that it was told first; null for others."""
    first = pl.col("options").list.get(pl.col("rotation").fill_null(0), null_on_oob=True)
    return pl.when(pl.col("source") == "model").then(first == pl.col("chosen"))


def _counted(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    from_sources = {
        f"from_{name}": (pl.col("source") == name).sum().cast(pl.Int64) for name in SOURCES
    }
    entropies = _entropies(frame["probabilities"].drop_nulls().unique())
    with_means = frame.join(entropies, on="probabilities", how="left").with_columns(
        chosen_first=_was_first()
    )

    return with_means.group_by(keys).agg(
        asked=COUNT,
        with_probabilities=pl.col("probabilities").count().cast(pl.Int64),
        repaired=pl.col("repaired").count().cast(pl.Int64),
        said=pl.col("said").count().cast(pl.Int64),
        **from_sources,
        **sums({name: name for name in (*COSTS, *_MEANS)}),
    )


def _described(counts: pl.DataFrame) -> pl.DataFrame:
    means = {name: pl.col(name) / pl.col(f"{name}_known") for name in _MEANS}

    return with_shares(counts).with_columns(
        **{name: if_known(name, mean) for name, mean in means.items()}
    )


def with_shares(counts: pl.DataFrame) -> pl.DataFrame:
    """Return counts with the answered decisions, the share of fallbacks, and the known costs.

    Args:
        counts: ``asked``, a column ``from_`` for each source, and the sums of costs.
    """
    return counts.with_columns(
        answered=pl.col("asked") - pl.col("from_fallback"),
        fallback_share=pl.col("from_fallback") / pl.col("asked"),
        **{name: if_known(name, pl.col(name)) for name in COSTS},
    )


def _percentiles(latencies: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    measured = {
        f"{name}_{percentile}": pl.col(column).explode().quantile(share, "linear")
        for name, column in {"latency": "latency", **_PARTS}.items()
        for percentile, share in _PERCENTILES.items()
    }
    return latencies.group_by(keys).agg(**measured, latency_max=pl.col("latency").explode().max())


def _entropies(texts: pl.Series) -> pl.DataFrame:
    """Return the entropies of probabilities given as JSON."""
    pairs = [_entropy(orjson.loads(text)) for text in texts]
    schema = dict.fromkeys(("entropy", "entropy_share"), pl.Float64)
    return pl.DataFrame(pairs, schema=schema, orient="row").with_columns(probabilities=texts)


def _entropy(probabilities: Any) -> tuple[float | None, float | None]:
    """Return the entropy in bits, and as a proportion of the maximum."""
    values = list(probabilities.values()) if isinstance(probabilities, dict) else []
    are_numbers = all(isinstance(value, (int, float)) and value >= 0 for value in values)
    if not are_numbers or not any(values):
        return None, None

    bits = _bits(values)

    return bits, bits / log2(len(values)) if len(values) > 1 else None


def _bits(weights: Sequence[float]) -> float:
    # Divide by the largest first, since the sum of very large numbers would be infinite.
    largest = max(weights)
    total = sum(weight / largest for weight in weights)
    scaled = [weight / largest / total for weight in weights]

    return -sum(p * log2(p) for p in scaled if p) + 0.0


COST_GROUPS = ("model", "host", "what", "round")
"""The columns by which costs can be grouped."""

SUMMED = {
    "calls": "attempts",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "seconds": "request_seconds",
}
"""Columns, by the keys of the log that they sum."""

UNANSWERED = ("fallback", "failed")
"""Sources that replace an answer of a model."""


def costs(logs: RunLogs, *, by: Sequence[str] = ("model",)) -> pl.DataFrame:
    """Add up the cost of models, in decisions and texts.

    Args:
        logs: The logs, from `read_log`.
        by: What to group costs by: ``model``, ``host``, ``what`` (``decisions`` or ``texts``),
            ``round``.

    Returns:
        One row for each group: its names; ``answers`` (decisions and texts that a model gave,
        without fallbacks), ``calls`` (requests), ``input_tokens``, ``output_tokens``, and
        ``seconds`` of the last request of each; null if unknown. With ``run``
        first if there are several.

    Raises:
        InputError: If ``by`` has another name.
    """
    keys = _keys_of("costs", by, COST_GROUPS)
    columns = [*(name for name in keys[1:] if name != "what"), "model", "source", *SUMMED.values()]
    counts = merge_by_sum(keys)
    for frame in logs.blocks(DECISION, TEXT_WRITTEN, columns=columns):
        counts.add(_summed(frame, keys))

    table = counts.table().with_columns(if_known(name, pl.col(name)) for name in SUMMED)

    return logs.labelled(table.select(*keys, "answers", *SUMMED).sort(keys))


def _summed(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    what = pl.when(pl.col("event") == DECISION).then(pl.lit("decisions")).otherwise(pl.lit("texts"))
    asked = frame.filter(pl.col("model").is_not_null()).with_columns(what=what)

    answered = (~pl.col("source").is_in(UNANSWERED)).sum().cast(pl.Int64)
    return asked.group_by(keys).agg(answers=answered, **sums(SUMMED))


def _keys_of(what: str, by: Sequence[str], groups: Sequence[str]) -> list[str]:
    if unknown := ", ".join(name for name in by if name not in groups):
        known = ", ".join(groups)
        raise InputError(f"{what} cannot be grouped by {unknown}: use some of {known}")

    return ["run", *dict.fromkeys(by)]


def sums(columns: Mapping[str, str]) -> dict[str, pl.Expr]:
    """Return the sums of columns, and how many values each has, by the names they get."""
    # sums alone do not distinguish 0 from unknown, and means need the number of values
    return {
        **{name: pl.col(key).sum() for name, key in columns.items()},
        **{f"{name}_known": pl.col(key).count().cast(pl.Int64) for name, key in columns.items()},
    }


def if_known(name: str, value: pl.Expr) -> pl.Expr:
    """Return a value by its name; null if the sums of that name have no values."""
    return pl.when(pl.col(f"{name}_known") > 0).then(value).alias(name)
