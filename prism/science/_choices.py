"""The decisions of runs as choices: who chose which option, with their groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from prism.analysis._reading.scanning import read_object
from prism.errors import InputError
from prism.runs._config import digest
from prism.statechart.reasoner._own_prompts import in_words
from prism.telemetry.events import AGENT_JOINED, DECISION, RUN_STARTED

if TYPE_CHECKING:
    from prism.analysis import RunLogs

ARCHETYPE = "archetype"

Point = tuple[str, str, tuple[str, ...]]
"""A decision point: state, event and options."""

_NO_RUN = ""

_COLUMNS = ("run", "agent_id", "state", "event", "options", "chosen", "group", "point")


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A run from which a policy was calibrated.

    Args:
        run: Its label.
        log_sha256: SHA-256 of its log.
        decisions: Number of its decisions that were used.
        left_out: Number of the other decisions, by the reason for leaving them out.
    """

    run: str
    log_sha256: str
    decisions: int
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Choices:
    """Decisions of one run or several.

    Args:
        table: One row per decision: ``run``, ``agent_id``, ``state``, ``event``, ``options``,
            ``chosen``, ``group``, and ``point`` (a number).
        points: The decision points, by number.
        by: How agents are grouped.
        groups: All groups, including those without decisions.
        sources: The runs.
        charts: Names of the charts that the agents follow.
    """

    table: pl.DataFrame
    points: tuple[Point, ...]
    by: str
    groups: tuple[str, ...]
    sources: tuple[PolicySource, ...]
    charts: tuple[str, ...]


def read_choices(logs: RunLogs, *, by: str = ARCHETYPE) -> Choices:
    """Read the decisions of runs.

    Decisions that took the fallback, and those whose choice is not among their options, are left
    out and counted.

    Args:
        logs: The runs.
        by: How to group agents: by ``archetype``, or by an attribute.

    Raises:
        InputError: If the runs have no decision, or none that can be used.
    """
    decided = _with_run(logs.scan(DECISION)).rename({"trigger": "event"}).collect()
    if not decided.height:
        names = ", ".join(str(run.path) for run in logs.runs)
        raise InputError(f"there is nothing to calibrate from: {names} hold no decisions")

    agents = _agents(logs, by)
    known = decided.join(
        agents.select("run", "agent_id", "group"),
        on=["run", "agent_id"],
        how="left",
        nulls_equal=True,
    ).with_columns(pl.col("group").fill_null(in_words(None)))
    known = known.with_columns(left_out=_why_left_out())
    used = known.filter(pl.col("left_out").is_null())
    if not used.height:
        reasons = ", ".join(sorted(set(known["left_out"])))
        raise InputError(
            f"there is nothing to calibrate from: all decisions are left out ({reasons})"
        )
    table, points = _numbered(used)

    return Choices(
        table.select(*_COLUMNS),
        points,
        by,
        tuple(sorted(set(agents["group"]) | set(table["group"]))),
        _sources(logs, known),
        _charts(logs, agents),
    )


def _charts(logs: RunLogs, agents: pl.DataFrame) -> tuple[str, ...]:
    """Return the names of the agents' charts: that of the run, or their own."""
    started = logs.scan(RUN_STARTED).collect()
    found = {*_column(started, "chart"), *_column(agents, "chart")}
    return tuple(sorted(name for name in found if name is not None))


def _with_run(frame: pl.LazyFrame) -> pl.LazyFrame:
    has_run = "run" in frame.collect_schema()
    return frame if has_run else frame.with_columns(run=pl.lit(_NO_RUN))


def _agents(logs: RunLogs, by: str) -> pl.DataFrame:
    """Return the agents with their groups."""
    joined = _with_run(logs.scan(AGENT_JOINED)).collect()
    attributes = [read_object(text) for text in _column(joined, "attributes")]
    chosen = [name for name in ("run", "agent_id", "chart") if name in joined.columns]

    return joined.select(chosen).with_columns(
        pl.Series("group", _groups(_column(joined, by), attributes, by), pl.String)
    )


def _groups(own: Sequence[Any], attributes: Sequence[Mapping[str, Any]], by: str) -> list[str]:
    """Return the group of each agent, from the key of that name or an attribute.

    Raises:
        InputError: If no agent has any.
    """
    values = [
        found.get(by) if value is None else value
        for value, found in zip(own, attributes, strict=True)
    ]
    if by != ARCHETYPE and all(value is None for value in values):
        known = sorted({name for found in attributes for name in found})
        has = f"they have {', '.join(known)}" if known else "the log has none of them"
        raise InputError(f"is {by!r}, which is not an attribute of the agents: {has}", field="by")

    return [in_words(value) for value in values]


def _column(frame: pl.DataFrame, name: str) -> list[Any]:
    return frame[name].to_list() if name in frame.columns else [None] * frame.height


def _why_left_out() -> pl.Expr:
    return (
        pl.when(pl.col("source") == "fallback")
        .then(pl.lit("fallback"))
        .when(~pl.col("options").list.contains(pl.col("chosen")))
        .then(pl.lit("not among the options"))
        .when(pl.col("options").list.len() < 2)
        .then(pl.lit("one option"))
    )


def _numbered(used: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Point, ...]]:
    keys = ["state", "event", "options"]
    points = used.select(keys).unique().with_columns(_key=pl.col("options").list.join("\0"))
    points = points.sort("state", "event", "_key").drop("_key").with_row_index("point")
    table = used.join(points, on=keys, how="left", maintain_order="left")

    return table, tuple(
        (state, event, tuple(options)) for state, event, options in points.select(keys).iter_rows()
    )


def _sources(logs: RunLogs, known: pl.DataFrame) -> tuple[PolicySource, ...]:
    several = len(logs.runs) > 1
    found = []
    for run in logs.runs:
        rows = known.filter(run=run.label) if several else known
        left_out = rows["left_out"].drop_nulls().value_counts(sort=True)
        used = rows.filter(pl.col("left_out").is_null()).height
        found.append(PolicySource(run.label, digest(run.path), used, dict(left_out.iter_rows())))

    return tuple(found)
