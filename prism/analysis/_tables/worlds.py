"""Measures, treatments and events of your own worlds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, TableMerger, merge_by_sum
from prism.analysis._reading.scanning import names_shown, read_object
from prism.errors import InputError
from prism.runlog._events import WORLD_EVENTS
from prism.telemetry.events import AGENTS_MEASURED, ROUND_ENDED, TREATMENT_APPLIED

_MEASURED = {
    "run": pl.UInt32(),
    "round": pl.Int64(),
    "measure": pl.String(),
    "value": pl.Float64(),
}
_OF_AGENTS = {
    "run": pl.UInt32(),
    "round": pl.Int64(),
    "kind": pl.String(),
    "measure": pl.String(),
    "agent_id": pl.String(),
    "quantile": pl.Float64(),
    "value": pl.Float64(),
}
_TREATED = ("run", "round", "treatment", "parameters")


def measures(logs: RunLogs) -> pl.DataFrame:
    """Return the measures of worlds as time series in long form.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``round``, ``measure`` and ``value`` (at the end of the round; null if there was nothing to
        measure), sorted by measure in the order of the world, then by round. With ``run`` first if
        there are several.
    """
    return logs.labelled(by_measure(_measured(logs)))


def by_measure(measured: Iterable[tuple[int, int | None, Mapping[str, Any]]]) -> pl.DataFrame:
    """Return the table of `measures`, with numbers of runs.

    Args:
        measured: The run, the round and the measures by name, for each end of a round.
    """
    values = [
        (run, number, name, _number(value))
        for run, number, found in measured
        for name, value in found.items()
    ]
    rows = pl.DataFrame(values, schema=_MEASURED, orient="row")
    places = rows.select("run", "measure").unique(maintain_order=True).with_row_index("place")
    table = rows.join(places, on=["run", "measure"], how="left", maintain_order="left")

    return table.sort("run", "place", "round", maintain_order=True).drop("place")


def agent_measures(logs: RunLogs) -> pl.DataFrame:
    """Return the measures of agents.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent and round, or for each quantile and round if there are many agents:
        ``round``, ``kind`` (the agents' class), ``measure``, ``agent_id`` (null for a quantile),
        ``quantile`` (0 to 1, null for an agent) and ``value`` (null if there was nothing to
        measure), in the order of the log. If there are several runs, ``run`` is the first column.
    """
    table = pl.DataFrame(list(_measured_of_agents(logs)), schema=_OF_AGENTS, orient="row")
    return logs.labelled(table)


def treatments(logs: RunLogs) -> pl.DataFrame:
    """List the treatments of worlds.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each application, in the order of the log: ``round`` (at whose beginning it was
        applied), ``treatment``, and ``parameters`` (the changed ones, with their new values, as
        JSON). If there are several runs, ``run`` is the first column.
    """
    found = [
        frame.select(_TREATED)
        for frame in logs.blocks(TREATMENT_APPLIED, columns=("round", *_TREATED[2:]))
    ]
    return logs.labelled(pl.concat(found))


def world_event_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the events that worlds logged themselves.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``event`` (its name, such as ``sold`` of ``world.sold``), ``round`` (0 during ``setup``),
        ``events``, and ``agents`` (different agents that they name by ``agent_id``), by event and
        round. If there are several runs, ``run`` is the first column.
    """
    keys = ["run", "event", "round"]
    counts = merge_by_sum(keys)
    named = TableMerger(lambda tables: tables.unique(maintain_order=True))
    is_own = pl.col("event").str.starts_with(WORLD_EVENTS)
    for frame in logs.blocks_where(is_own, columns=("round", "agent_id")):
        counts.add(frame.group_by(keys).agg(events=COUNT))
        named.add(frame.select(*keys, "agent_id").drop_nulls("agent_id").unique())

    agents = named.table().group_by(keys).agg(agents=COUNT)
    table = counts.table().join(agents, on=keys, how="left", nulls_equal=True)
    table = table.with_columns(
        pl.col("event").str.strip_prefix(WORLD_EVENTS), pl.col("agents").fill_null(0)
    )

    return logs.labelled(table.sort(keys))


def world_events(logs: RunLogs, event: str) -> pl.DataFrame:
    """List the events of one name that worlds logged themselves, with their own keys.

    Args:
        logs: The logs, from `read_log`.
        event: The name that the world gave it, such as ``sold``.

    Returns:
        One row for each, in the order of the log: ``line``, ``timestamp`` (UTC), ``round``,
        ``tick``, and a column for each key that any of them has; see `RunLogs.scan`, which returns
        the same as a query. If there are several runs, ``run`` is the first column.

    Raises:
        InputError: If there are none; the message names the existing ones.
    """
    name = event.removeprefix(WORLD_EVENTS)
    known = world_event_counts(logs)["event"].unique()
    if name not in known:
        listed = names_shown(known) or "none at all"
        raise InputError(f"the worlds logged no event {name!r}; they logged {listed}")

    return logs.scan(WORLD_EVENTS + name).collect()


def _measured(logs: RunLogs) -> Iterator[tuple[int, int | None, Mapping[str, Any]]]:
    for frame in logs.blocks(ROUND_ENDED, columns=("round", "measures")):
        ended = frame.drop_nulls("measures").select("run", "round", "measures")
        for run, number, text in ended.iter_rows():
            yield run, number, read_object(text)


def _measured_of_agents(logs: RunLogs) -> Iterator[tuple[Any, ...]]:
    columns = ("round", "kind", "measure", "values", "quantiles")
    for frame in logs.blocks(AGENTS_MEASURED, columns=columns):
        for *place, values, quantiles in frame.select("run", *columns).iter_rows():
            for agent_id, value in read_object(values).items():
                yield *place, agent_id, None, _number(value)
            for quantile, value in read_object(quantiles).items():
                yield *place, None, float(quantile), _number(value)


def _number(value: Any) -> float | None:
    # true and false are also measures, of whether something has happened
    is_number = isinstance(value, (int, float)) and isfinite(value)
    return float(value) if is_number else None
