"""The transitions of a log in the form that process-mining tools read."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.scanning import columns_of_schema
from prism.errors import InputError
from prism.telemetry.events import TRANSITION

_ACTIVITIES = ("to_state", "trigger")


def to_event_log(logs: RunLogs, *, activity: str = "to_state") -> pl.LazyFrame:
    """Return every transition as an event of process mining, with one case for each agent.

    The columns are those of the XES standard (IEEE 1849-2016: the extensions Concept, Time,
    Organizational and Lifecycle), as pm4py names them in a data frame:
    ``pm4py.discover_dfg(to_event_log(logs).collect().to_pandas())``.

    Args:
        logs: The logs, from `read_log`.
        activity: The column of the activity: ``to_state`` (the state that is entered) or
            ``trigger``.

    Returns:
        A query, since its result is as long as the log; ``.collect()`` gives the frame and
        ``.sink_parquet(path)`` writes it block by block. Columns: ``case:concept:name`` (the agent;
        with ``run/`` before it if there are several runs), ``concept:name`` (the activity),
        ``time:timestamp`` (UTC), ``org:resource`` (the agent), ``lifecycle:transition`` (always
        ``complete``: it takes no time), ``round``, ``tick``, ``from_state``, ``to_state`` and
        ``trigger``, in the order of the log.

    Raises:
        InputError: If there is no such activity.
    """
    if activity not in _ACTIVITIES:
        raise InputError(
            f"must be one of {', '.join(_ACTIVITIES)}, got {activity!r}", field="activity"
        )

    # Not by `scan`, which would read the log once more, for keys that are not needed here.
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
