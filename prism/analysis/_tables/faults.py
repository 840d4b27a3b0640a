"""What went wrong in a run: code that raised, answers that were refused or not used."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_first
from prism.runlog._words import EXCEPTION_NAME
from prism.telemetry import events

# The most serious first: faults in the user's code, then faults that prism handled.
_FAULTS = {
    events.GUARD_FAILED: "guard_failed",
    events.ACTION_FAILED: "action_failed",
    events.WORKFLOW_STEP: "step_failed",
    events.TEXT_WRITTEN: "text_failed",
    events.COGNITION_CYCLE: "reply_unusable",
    events.COGNITION_REFUSED: "action_refused",
    events.WORKFLOW_RESET: "state_reset",
    events.COGNITION_RESET: "state_reset",
    events.WORKFLOW_REFUSED: "transition_refused",
    events.ANSWER_DISCARDED: "answer_discarded",
    events.DECISION: "fallback",
}
FAULTY = tuple(_FAULTS)
"""Names of the events that are faults, or may be."""

READ = (
    *("round", "tick", "chart", "agent_id", "from_state", "to_state", "trigger", "error"),
    *("source", "reason", "state", "chosen", "asked_in", "now_in"),
    *("outcome", "step", "target", "type"),
)
"""Keys of events that the table needs."""

_IS_ONE = {
    events.DECISION: pl.col("source") == "fallback",
    events.TEXT_WRITTEN: pl.col("source").is_in(["failed", "fallback"]),
    events.WORKFLOW_STEP: pl.col("outcome") != "done",
    events.COGNITION_CYCLE: pl.col("outcome") == "unusable",
}
"""Conditions for faults among events of a kind, if not all of them are."""

_KEYS = ["run", "fault", "chart", "from_state", "to_state", "trigger", "kind"]


def faults(logs: RunLogs) -> pl.DataFrame:
    """Count faults, grouping those with the same kind of error.

    A trigger without any transition in the chart is not a fault of the run. Nothing happens, so the
    log does not contain it. The chart warns of it once, on the standard library's logger
    ``prism.statechart``.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each kind of fault: ``fault`` (``guard_failed``: its transition was not enabled;
        ``action_failed``: its transition took place nevertheless; ``step_failed``: a step of a
        workflow failed, whatever its policy did about it; ``text_failed``: a model wrote no
        usable text; ``reply_unusable``: a thinking agent's model wrote no usable reply;
        ``action_refused``: a memory operation was refused; ``state_reset``: an agent was restored
        in a state that it no longer has; ``transition_refused``: a step named a transition that was
        refused, or its condition failed; ``answer_discarded``: an answer came after the agent
        had left the state, or its guard no longer passed;
        ``fallback``: a decision without a usable answer), ``chart``, ``from_state``,
        ``to_state``, ``trigger`` (or the step, or the type of an action), ``error`` (the
        exception, or the reason; exceptions with one name are one kind, whatever their message,
        and the first is shown), ``count``, ``agents`` (how many it concerned), and ``round``,
        ``tick`` and ``line`` of the first. The most serious kinds come first, and within each
        kind the most frequent faults. If there are several runs, ``run`` is the first column.
    """
    counts = FaultCounts()
    for frame in logs.blocks_where(is_fault(), columns=READ):
        counts.add(frame)

    return logs.labelled(counts.table())


class FaultCounts:
    """Counts faults block by block, grouping similar ones; see `faults`."""

    def __init__(self) -> None:
        self._counts = TableMerger(_added_up)
        self._agents = merge_by_first([*_KEYS, "agent_id"])

    def add(self, frame: pl.DataFrame) -> None:
        """Add the faults among some events.

        Args:
            frame: The events, with ``run``, ``line``, ``event`` and the keys of `READ`.
        """
        found = _described(frame.filter(is_fault()))
        ones = found.drop("agent_id").with_columns(count=pl.lit(1, pl.Int64))
        self._counts.add(_added_up(ones))
        self._agents.add(found.select(*_KEYS, "agent_id").unique())

    def table(self) -> pl.DataFrame:
        """Return the table of `faults`, with numbers of runs."""
        concerned = self._agents.table().group_by(_KEYS).agg(agents=pl.col("agent_id").count())
        table = self._counts.table().join(concerned, on=_KEYS, how="left", nulls_equal=True)
        places = {name: place for place, name in enumerate(_FAULTS.values())}
        seriousness = pl.col("fault").replace_strict(places, return_dtype=pl.Int8)
        ordered = table.sort("run", seriousness, -pl.col("count"), "line")
        agents = pl.col("agents").cast(pl.Int64)

        return ordered.select(*_KEYS[:-1], "error", "count", agents, "round", "tick", "line")


def is_fault() -> pl.Expr:
    """Return the condition that selects faults among events."""
    condition = pl.col("event").is_in(FAULTY)
    for event, is_one in _IS_ONE.items():
        condition &= (pl.col("event") != event) | is_one.fill_null(False)

    return condition


def _described(frame: pl.DataFrame) -> pl.DataFrame:
    """Give the events of all faults the same columns."""
    event = pl.col("event")
    is_decision, is_discarded = event == events.DECISION, event == events.ANSWER_DISCARDED
    is_of_step = event.is_in([events.WORKFLOW_STEP, events.WORKFLOW_REFUSED])
    is_of_cycle = event.is_in([events.COGNITION_CYCLE, events.COGNITION_REFUSED])
    chosen = pl.when(is_decision | is_discarded).then("chosen").when(is_of_step).then("target")
    has_state = is_decision | is_of_step | is_of_cycle
    before = pl.when(has_state).then("state").when(is_discarded).then("asked_in")
    why = (
        pl.when(is_discarded & (pl.col("reason") == "not_enabled"))
        .then(pl.lit("its guard no longer passed"))
        .when(is_discarded)
        .then(pl.format("the agent was already in {}", "now_in"))
        .when(event == events.WORKFLOW_RESET)
        .then(pl.lit("the workflow has no such state"))
        .when(event == events.COGNITION_RESET)
        .then(pl.lit("there is no such state"))
    )

    error = why.otherwise(pl.coalesce("error", "reason"))
    return frame.select(
        "run",
        "line",
        "round",
        "tick",
        "chart",
        "agent_id",
        trigger=pl.when(is_of_step)
        .then("step")
        .when(event == events.COGNITION_REFUSED)
        .then("type")
        .otherwise("trigger"),
        fault=pl.col("event").replace_strict(_FAULTS, return_dtype=pl.String),
        from_state=before.otherwise("from_state"),
        to_state=chosen.otherwise("to_state"),
        error=error,
        kind=pl.coalesce(error.str.extract(EXCEPTION_NAME), error),
    )


def _added_up(tables: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("line").arg_min()
    return tables.group_by(_KEYS).agg(
        pl.col("round", "tick", "error").get(first),
        pl.col("line").min(),
        count=pl.col("count").sum(),
    )
