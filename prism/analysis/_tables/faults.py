"""What went wrong in a run: what raised, what was refused, and answers that were not used."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_first
from prism.telemetry.events import (
    ACTION_FAILED,
    ANSWER_DISCARDED,
    CACHE_FAILED,
    COGNITION_CYCLE,
    COGNITION_MEMORY_CHANGED,
    COGNITION_REFUSED,
    COGNITION_RESET,
    DECISION,
    GUARD_FAILED,
    MODE_UNKNOWN,
    TEXT_WRITTEN,
    WORKFLOW_REFUSED,
    WORKFLOW_RESET,
    WORKFLOW_STEP,
)

# The most serious first: a fault in the user's code, then what prism has dealt with.
_FAULTS = {
    GUARD_FAILED: "guard_failed",
    ACTION_FAILED: "action_failed",
    WORKFLOW_STEP: "step_failed",
    TEXT_WRITTEN: "text_failed",
    COGNITION_CYCLE: "reply_unusable",
    COGNITION_REFUSED: "action_refused",
    COGNITION_MEMORY_CHANGED: "memory_changed",
    WORKFLOW_RESET: "state_reset",
    COGNITION_RESET: "state_reset",
    WORKFLOW_REFUSED: "transition_refused",
    ANSWER_DISCARDED: "answer_discarded",
    CACHE_FAILED: "cache_failed",
    MODE_UNKNOWN: "mode_unknown",
    DECISION: "fallback",
}
READ = (
    *("round", "tick", "chart", "agent_id", "from_state", "to_state", "trigger", "error"),
    *("source", "reason", "state", "chosen", "asked_in", "now_in"),
    *("outcome", "step", "target", "type"),
)
"""Keys of events that the table is made from."""

_IS_ONE = {
    DECISION: pl.col("source") == "fallback",
    TEXT_WRITTEN: pl.col("source").is_in(["failed", "fallback"]),
    WORKFLOW_STEP: pl.col("outcome") != "done",
    COGNITION_CYCLE: pl.col("outcome") == "unusable",
}
"""Which events of a kind are faults, where not all are."""

_KEYS = ["run", "fault", "chart", "from_state", "to_state", "trigger", "error"]


def faults(logs: RunLogs) -> pl.DataFrame:
    """Count what went wrong, alike faults together.

    A trigger that no transition of the chart has is no fault of the run: nothing happens, so no log
    has it. The chart warns of it once, on the standard library's logger ``prism.statechart``.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each kind of fault: ``fault`` (``guard_failed``: its transition was not enabled;
        ``action_failed``: its transition took place nevertheless; ``step_failed``: a step of a
        workflow, whatever became of it by its policy; ``text_failed``: a model wrote nothing of
        use; ``reply_unusable``: a thinking agent's model wrote nothing of use;
        ``action_refused``: a memory operation that it asked for; ``memory_changed``: by somebody
        else, while a run was stopped; ``state_reset``: an agent was restored in a state that it
        does not have; ``transition_refused``: the one that a step named, or a step's condition that
        failed; ``answer_discarded``: it came after the agent had left the state, or its guard did
        not pass any more; ``cache_failed``; ``mode_unknown``; ``fallback``: a decision without a
        usable answer), ``chart``, ``from_state``, ``to_state``, ``trigger`` (the step where it is
        a step's, the type of an action), ``error`` (the exception, or the reason), ``count``,
        ``agents`` (how many it concerned), and ``round``, ``tick`` and ``line`` of the first. The
        most serious kind first, and of each kind the most frequent. With ``run`` first if there are
        several.
    """
    counts, agents = TableMerger(_added_up), merge_by_first([*_KEYS, "agent_id"])
    is_fault = pl.col("event").is_in(list(_FAULTS))
    for event, is_one in _IS_ONE.items():
        is_fault &= (pl.col("event") != event) | is_one.fill_null(False)

    for frame in logs.blocks_where(is_fault, columns=READ):
        found = _described(frame)
        counts.add(_added_up(found.drop("agent_id").with_columns(count=pl.lit(1, pl.Int64))))
        agents.add(found.select(*_KEYS, "agent_id").unique())

    concerned = agents.table().group_by(_KEYS).agg(agents=pl.col("agent_id").count())
    table = counts.table().join(concerned, on=_KEYS, how="left", nulls_equal=True)
    seriousness = pl.col("fault").replace_strict(
        {name: place for place, name in enumerate(_FAULTS.values())}, return_dtype=pl.Int8
    )
    table = table.sort("run", seriousness, -pl.col("count"), "line")

    return logs.labelled(
        table.select(*_KEYS, "count", pl.col("agents").cast(pl.Int64), "round", "tick", "line")
    )


def _described(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring the events of all faults to the same columns."""
    event = pl.col("event")
    is_decision, is_discarded = event == DECISION, event == ANSWER_DISCARDED
    is_of_step = event.is_in([WORKFLOW_STEP, WORKFLOW_REFUSED])
    is_of_cycle = event.is_in([COGNITION_CYCLE, COGNITION_REFUSED])
    chosen = pl.when(is_decision | is_discarded).then("chosen").when(is_of_step).then("target")
    has_state = is_decision | is_of_step | is_of_cycle
    before = pl.when(has_state).then("state").when(is_discarded).then("asked_in")
    why = (
        pl.when(is_discarded & (pl.col("reason") == "not_enabled"))
        .then(pl.lit("its guard did not pass any more"))
        .when(is_discarded)
        .then(pl.format("the agent was in {} by then", "now_in"))
        .when(event == WORKFLOW_RESET)
        .then(pl.lit("the workflow has no such state"))
        .when(event == COGNITION_RESET)
        .then(pl.lit("there is no such state"))
        .when(event == COGNITION_MEMORY_CHANGED)
        .then(pl.lit("somebody else changed the memory"))
    )

    return frame.select(
        "run",
        "line",
        "round",
        "tick",
        "chart",
        "agent_id",
        trigger=pl.when(is_of_step)
        .then("step")
        .when(event == COGNITION_REFUSED)
        .then("type")
        .otherwise("trigger"),
        fault=pl.col("event").replace_strict(_FAULTS, return_dtype=pl.String),
        from_state=before.otherwise("from_state"),
        to_state=chosen.otherwise("to_state"),
        error=why.otherwise(pl.coalesce("error", "reason")),
    )


def _added_up(tables: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("line").arg_min()
    return tables.group_by(_KEYS).agg(
        pl.col("round", "tick").get(first), pl.col("line").min(), count=pl.col("count").sum()
    )
