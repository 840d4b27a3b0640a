"""Transitions: counts, time-outs, and an event log for process mining."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, merge_by_sum
from prism.analysis._reading.scanning import columns_of_schema
from prism.analysis._tables.levels import Level
from prism.errors import InputError
from prism.statechart._definition import TIMEOUT
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


def timeouts(logs: RunLogs, *, depth: int | None = None) -> pl.DataFrame:
    """Count the time-outs of each state in each round.

    Args:
        logs: The logs, from `read_log`.
        depth: The level to count, as in `transition_counts`. Time-outs within a state of the level
            do not count.

    Returns:
        ``round`` (null if the log has none), ``state`` (the one that was left), ``timeouts``,
        ``left`` (all transitions out of the state in that round) and ``share`` (of these, 0 to 1).
        There are only rows with time-outs. If there are several runs, ``run`` is the first column.
        If a run has several charts, each is counted separately, and named in ``chart`` before
        ``state``.
    """
    counts = count_transitions(logs, ["round", "chart", "from_state", "to_state", "trigger"])
    if depth is not None:
        written = counts.with_columns(written=pl.struct("from_state", "to_state"))
        # one that enters several regions leaves a state only once
        counts = Level.of(logs, depth).transitions(written).drop("to_state").unique()
    is_timeout = pl.col("trigger") == TIMEOUT
    table = (
        counts.group_by("run", "round", "chart", state="from_state")
        .agg(timeouts=pl.col("count").filter(is_timeout).sum(), left=pl.col("count").sum())
        .filter(pl.col("timeouts") > 0)
        .with_columns(share=pl.col("timeouts") / pl.col("left"))
    )

    return logs.labelled(without_lone_chart(table.sort("run", "round", "chart", "state")))


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


_ACTIVITIES = ("to_state", "trigger")


def to_event_log(logs: RunLogs, *, activity: str = "to_state") -> pl.LazyFrame:
    """Return every transition as a process-mining event, with one case for each agent.

    The columns are those of the XES standard (IEEE 1849-2016: the extensions Concept, Time,
    Organizational and Lifecycle), as pm4py names them in a data frame:
    ``pm4py.discover_dfg(to_event_log(logs).collect().to_pandas())``.

    Args:
        logs: The logs, from `read_log`.
        activity: The column of the activity: ``to_state`` (the state that is entered) or
            ``trigger``.

    Returns:
        A query, since its result is as long as the log: ``.collect()`` gives the frame and
        ``.sink_parquet(path)`` writes it block by block. Columns: ``case:concept:name`` (the agent;
        with ``run/`` before it if there are several runs), ``concept:name`` (the activity),
        ``time:timestamp`` (UTC), ``org:resource`` (the agent), ``lifecycle:transition`` (always
        ``complete``, since it takes no time), ``round``, ``tick``, ``from_state``, ``to_state`` and
        ``trigger``, in the order of the log.

    Raises:
        InputError: If there is no such activity.
    """
    if activity not in _ACTIVITIES:
        raise InputError(
            f"must be one of {', '.join(_ACTIVITIES)}, got {activity!r}", field="activity"
        )

    # Not by `scan`, which would read the log once more to find keys that are not needed here.
    transitions = logs.scan_columns(TRANSITION, columns_of_schema(TRANSITION))
    agent = pl.col("agent_id")
    case = agent
    if "run" in transitions.collect_schema():
        # Agents of several runs may have the same ids.
        case = pl.concat_str("run", "agent_id", separator="/")

    return transitions.select(
        case.alias("case:concept:name"),
        pl.col(activity).alias("concept:name"),
        pl.col("timestamp").alias("time:timestamp"),
        agent.alias("org:resource"),
        pl.lit("complete").alias("lifecycle:transition"),
        "round",
        "tick",
        "from_state",
        "to_state",
        "trigger",
    )
