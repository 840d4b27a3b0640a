"""Tables that only a report needs, each made in one pass over the logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, TableMerger, merge_by_sum
from prism.analysis._tables.agents import described_agents
from prism.analysis._tables.decisions import WAS_ASKED
from prism.analysis._tables.transitions import count_transitions
from prism.telemetry import events

BINS_A_DECADE = 10
"""Number of steps per decade of latency."""

_LEAST_LATENCY = 1e-4
_AGENT = ["run", "agent_id"]
_STEP = ["run", "step", "type"]
_OUTCOMES = ("done", "skipped", "failed")
_SPENT = ("seconds", "input_tokens", "output_tokens")

OF_STEPS = (*_STEP[1:], "outcome", *_SPENT)
"""Keys of events that `step_counts` reads."""

_OF_CYCLE = ("done", "refused", "unusable", "failed")
_TOKENS = ("input_tokens", "output_tokens")

OF_CYCLES = ("state", "outcome", "prompt_tokens", *_TOKENS)
"""Keys of events that `cycle_counts` reads."""


def latency_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the decisions that a model was asked for by latency, in logarithmic steps.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``source``, ``step`` (latencies from 10^(step / `BINS_A_DECADE`) seconds to the next step;
        less than 0.1 ms counts as 0.1 ms) and ``decisions``, with ``run`` first if there are
        several. Empty if no model was asked.
    """
    merger = merge_by_sum(["run", "source", "step"])
    decades = pl.col("latency").clip(lower_bound=_LEAST_LATENCY).log10()
    # 0.001 s is on the edge of a step, and a rounding error must not move it below.
    step = (decades * BINS_A_DECADE + 1e-9).floor().cast(pl.Int64)

    for frame in logs.blocks(events.DECISION, columns=("source", "latency", "attempts")):
        timed = frame.filter(WAS_ASKED).drop_nulls("source").group_by("run", "source", step=step)
        merger.add(timed.agg(decisions=COUNT))

    return logs.labelled(merger.table().sort("run", "source", "step"))


def traffic_counts(logs: RunLogs) -> pl.DataFrame:
    """Count every kind of transition by its chart.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``chart`` (null if a log names none), ``from_state``, ``to_state``, ``trigger`` and
        ``count``, with ``run`` first if there are several.
    """
    keys = ["chart", "from_state", "to_state", "trigger"]
    return logs.labelled(count_transitions(logs, keys).sort("run", *keys))


def stay_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the decisions to stay in each state in which agents decided.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``state`` and ``count``, with ``run`` first if there are several.
    """
    merger = merge_by_sum(["run", "state"])
    stayed = (pl.col("chosen") == pl.col("state")).sum().cast(pl.Int64)
    for frame in logs.blocks(events.DECISION, columns=("state", "chosen")):
        merger.add(frame.drop_nulls("state").group_by("run", "state").agg(count=stayed))

    return logs.labelled(merger.table().sort("run", "state"))


def states_met(logs: RunLogs) -> pl.DataFrame:
    """List the states of agents in the order in which they appear in the log.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``chart`` (null if a log names none), ``state`` and ``began``, the number of agents that
        joined in it, with ``run`` first if there are several.
    """
    merger = TableMerger(_met)

    for frame in logs.blocks(
        events.AGENT_JOINED, events.TRANSITION, columns=("chart", "state", "from_state", "to_state")
    ):
        place, began = pl.col("line").cast(pl.Int64) * 2, pl.col("event") == events.AGENT_JOINED
        first = frame.select(
            "run",
            "chart",
            state=pl.when(began).then("state").otherwise("from_state"),
            place=place,
            began=began.cast(pl.Int64),
        )
        then = frame.select(
            "run", "chart", state="to_state", place=place + 1, began=pl.lit(0, pl.Int64)
        )
        merger.add(_met(pl.concat([first, then]).drop_nulls("state")))

    return logs.labelled(merger.table().sort("run", "place").drop("place"))


def _met(states: pl.DataFrame) -> pl.DataFrame:
    return states.group_by("run", "chart", "state").agg(
        pl.col("place").min(), pl.col("began").sum()
    )


def step_counts(logs: RunLogs) -> pl.DataFrame:
    """Count how often each step of a workflow ran, and its time and tokens.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each step, in the order in which they first ran: ``step``, ``type``, ``done``,
        ``skipped`` and ``failed`` (how often it ended in this way), ``seconds``, ``input_tokens``
        and ``output_tokens`` (totals; null if unknown); with ``run`` first if there are several.
    """
    return _outcome_counts(logs, events.WORKFLOW_STEP, _STEP, _OUTCOMES, _SPENT)


def cycle_counts(logs: RunLogs) -> pl.DataFrame:
    """Count how the cycles of thinking agents ended, and their tokens.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each state, in the order of their first cycles: ``state``, ``done``,
        ``refused``, ``unusable`` and ``failed`` (how often a cycle ended in this way),
        ``largest_prompt`` (tokens, by the agent's own count), ``input_tokens`` and
        ``output_tokens`` (totals; null if unknown); with ``run`` first if there are several.
    """
    largest = {"largest_prompt": "prompt_tokens"}
    return _outcome_counts(
        logs, events.COGNITION_CYCLE, ["run", "state"], _OF_CYCLE, _TOKENS, largest
    )


def _outcome_counts(
    logs: RunLogs,
    event: str,
    keys: Sequence[str],
    outcomes: Sequence[str],
    spent: Sequence[str],
    largest: Mapping[str, str] = MappingProxyType({}),
) -> pl.DataFrame:
    """Count the outcomes of events by some keys, in the order of their first appearance.

    Args:
        logs: The logs.
        event: The name of the events.
        keys: The keys to group by, the run first.
        outcomes: The values of ``outcome``.
        spent: Keys to add up; null if none is known.
        largest: Keys of which to take the maximum, by their columns.
    """
    ended = [(pl.col("outcome") == name).cast(pl.Int64).alias(name) for name in outcomes]
    known = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()) for name in spent]
    most = [pl.col(name).max() for name in largest]

    def added_up(rows: pl.DataFrame) -> pl.DataFrame:
        counts = rows.group_by(keys)
        return counts.agg(pl.col("place").min(), pl.col(outcomes).sum(), *most, *known)

    merger = TableMerger(added_up)
    place = pl.col("line").cast(pl.Int64).alias("place")
    read = [*keys[1:], "outcome", *largest.values(), *spent]
    for frame in logs.blocks(event, columns=read):
        merger.add(added_up(frame.select(*keys, place, *ended, *spent, **largest)))

    return logs.labelled(merger.table().sort("run", "place").drop("place"))


def agent_table(logs: RunLogs) -> pl.DataFrame:
    """Describe each agent: its name, its last state, and what it did.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent: ``agent_id``, ``name``, ``archetype``, ``chart`` (if agents of a
        world have several), its own attributes, ``state`` (its last), ``transitions``,
        ``decisions``, and the counts of `prism.analysis.activity`, with ``run`` first if there are
        several. Columns that only feeds have are left out if there are no feeds.
    """
    table = logs.labelled(described_agents(logs, ("display_name", "archetype")))
    table = table.rename({"display_name": "name"}).drop("weighed", "fallbacks", strict=False)
    if "chart" in table.columns and table["chart"].n_unique() == 1:
        table = table.drop("chart")

    return table
