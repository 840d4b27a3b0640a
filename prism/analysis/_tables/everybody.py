"""The counts of everybody in ``round.ended``, for logs that cover only a sample of the agents."""

from __future__ import annotations

from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.scanning import read_object
from prism.telemetry.events import ROUND_ENDED

_COUNTED = ("transitions", "timeouts", "decisions_asked", "fallbacks")
_STATES: dict[str, pl.DataType] = {
    "run": pl.UInt32(),
    "round": pl.Int64(),
    "tick": pl.Int64(),
    "chart": pl.String(),
    "state": pl.String(),
    "agents": pl.Int64(),
}
_TOTALS: dict[str, pl.DataType] = {
    "run": pl.UInt32(),
    "round": pl.Int64(),
    **dict.fromkeys(("agents", "transitions", "timeouts", "decisions", "fallbacks"), pl.Int64()),
}


def with_everybody(logs: RunLogs, table: pl.DataFrame) -> pl.DataFrame:
    """Put the states of everybody in place of those of samples, at the end of each round.

    Args:
        logs: The logs.
        table: From `states_by_number`.
    """
    sampled = _sampled(logs)
    rows = [
        (ended["run"], ended["round"], ended["tick"], logs.runs[ended["run"]].chart, *count)
        for ended in _ended(logs, sampled, "tick", "states")
        for count in _counts(ended["states"]).items()
    ]
    if not rows:
        return table.filter(~pl.col("run").is_in(sampled))

    counts = pl.DataFrame(rows, _STATES, orient="row")
    moment, state = ["run", "round", "tick"], ["run", "chart", "state"]
    every = counts.select(moment).unique().join(counts.select(state).unique(), on="run")
    found = every.join(counts.drop("chart"), on=[*moment, "state"], how="left")
    agents = pl.col("agents").fill_null(0)
    told = agents.sum().over(moment)
    own = found.with_columns(agents, share=pl.when(told > 0).then(agents / told))
    others = table.filter(~pl.col("run").is_in(sampled))
    both = pl.concat([others, own.sort(*moment, "state")], how="diagonal")

    return both.sort("run", maintain_order=True)


def totals_of_everybody(logs: RunLogs) -> pl.DataFrame:
    """Return the totals of each round of the runs whose logs cover only a sample."""
    rows = [
        (
            *(ended["run"], ended["round"], logs.runs[ended["run"]].agents, ended["transitions"]),
            sum(_counts(ended["timeouts"]).values()),
            ended["decisions_asked"],
            sum(_counts(ended["fallbacks"]).values()),
        )
        for ended in _ended(logs, _sampled(logs), *_COUNTED)
    ]
    return pl.DataFrame(rows, _TOTALS, orient="row")


def _sampled(logs: RunLogs) -> list[int]:
    return [number for number, run in enumerate(logs.runs) if run.logged_agents is not None]


def _ended(logs: RunLogs, sampled: list[int], *columns: str) -> list[dict[str, Any]]:
    """Return what ``round.ended`` says of each round of some runs."""
    if not sampled:
        return []

    own = pl.col("run").is_in(sampled)
    blocks = logs.blocks(ROUND_ENDED, columns=("round", *columns))
    frames = [frame.filter(own) for frame in blocks]

    return pl.concat(frames).unique(["run", "round"], keep="last", maintain_order=True).to_dicts()


def _counts(text: str | None) -> dict[str, int]:
    return {name: count for name, count in read_object(text).items() if type(count) is int}
