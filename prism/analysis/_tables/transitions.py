"""Transitions: counts and probabilities."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, merge_by_sum
from prism.analysis._tables.levels import Level
from prism.telemetry.events import TRANSITION


def transition_counts(logs: RunLogs, *, depth: int | None = None) -> pl.DataFrame:
    """Count every kind of transition.

    Args:
        logs: The logs, from `read_log`.
        depth: The level to count, in charts with nested states: 1 for the outermost states. A
            transition counts if it leaves a state of that level; one that leaves or enters several
            regions counts in each. By default, the states are those of the log.

    Returns:
        ``from_state``, ``to_state``, ``trigger``, ``count`` and ``probability``: the proportion of
        all transitions out of the state, 0 to 1, which is the maximum-likelihood estimate of the
        probability in a Markov chain over the states (Anderson and Goodman 1957, Annals of
        Mathematical Statistics 28(1)). Staying in a state is not a transition and is not counted;
        see `decisions` for how often agents decided to stay. If there are several runs, ``run`` is
        the first column. If a run has several charts, each is counted separately, and named in
        ``chart`` before ``from_state``.
    """
    counts = count_transitions(logs, ["chart", "from_state", "to_state", "trigger"])
    if depth is not None:
        moved = Level.of(logs, depth).transitions(counts)
        counts = moved.group_by(pl.exclude("count")).agg(pl.col("count").sum())

    return logs.labelled(with_probabilities(counts))


def with_probabilities(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the table of `transition_counts`, with numbers of runs.

    Args:
        counts: ``run``, ``chart``, ``from_state``, ``to_state``, ``trigger`` and ``count``.
    """
    leaving = pl.col("count").sum().over("run", "chart", "from_state")
    order = ["run", "chart", "from_state", pl.col("count").neg(), "to_state", "trigger"]
    table = counts.with_columns(probability=pl.col("count") / leaving).sort(order)

    return without_lone_chart(table)


def without_lone_chart(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table without its column ``chart``, unless one of its runs has several charts."""
    is_lone = table.select("run", "chart").n_unique() == table["run"].n_unique()
    return table.drop("chart") if is_lone else table


def count_transitions(logs: RunLogs, keys: list[str]) -> pl.DataFrame:
    """Count the transitions of each run by some of their keys, as ``count``."""
    merger = merge_by_sum(["run", *keys])
    for frame in logs.blocks(TRANSITION, columns=[*keys, "from_state", "to_state"]):
        whole = frame.drop_nulls(["from_state", "to_state"])
        merger.add(whole.group_by("run", *keys).agg(count=COUNT))

    return merger.table()
