"""Everything that a report shows of each run, as tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.notes import Note
from prism.analysis._reading.runs import Run
from prism.analysis._tables.cascades import cascades
from prism.analysis._tables.decisions import decisions
from prism.analysis._tables.engagement import engagement
from prism.analysis._tables.states import state_counts
from prism.analysis._tables.transitions import dwell_times, timeouts, transition_counts
from prism.report._facts.counts import agent_table, latency_counts, posts_below, visit_counts
from prism.report._facts.parsed_once import parsed_once
from prism.report._facts.trees import TreePost, grow

MOST_CHARACTERS = 200
"""Characters of a text, be it a post or a name, that are shown."""

_MOST_TREES = 6
_FIRST_STATES = ("idle", "scrolling", "evaluating", "composing")
_RANKS = {name: rank for rank, name in enumerate(_FIRST_STATES)}
_NUMBER = re.compile(r"([0-9]{1,9})")

# Characters that HTML, XML or Vega's expressions (U+2028, U+2029) cannot represent.
_UNSHOWABLE = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x{2028}\x{2029}\x{fffe}\x{ffff}]"


@dataclass(frozen=True)
class RunFacts:
    """The tables of one run. Texts are cut to what can be shown; numbers are exact.

    Args:
        run: The run as a whole.
        states: From `state_counts`.
        transitions: From `transition_counts`.
        dwelling: From `dwell_times`.
        visits: From `visit_counts`.
        timeouts: From `timeouts`.
        decisions: From `decisions`, by state and model.
        by_round: The same by round.
        chosen: The same by round and chosen state.
        reasons: The same by reason, of fallbacks alone.
        latencies: From `latency_counts`.
        engagement: From `engagement`.
        cascades: From `cascades`.
        agents: From `agent_table`.
        trees: The largest cascades of more than one post.
    """

    run: Run
    states: pl.DataFrame
    transitions: pl.DataFrame
    dwelling: pl.DataFrame
    visits: pl.DataFrame
    timeouts: pl.DataFrame
    decisions: pl.DataFrame
    by_round: pl.DataFrame
    chosen: pl.DataFrame
    reasons: pl.DataFrame
    latencies: pl.DataFrame
    engagement: pl.DataFrame
    cascades: pl.DataFrame
    agents: pl.DataFrame
    trees: tuple[tuple[TreePost, ...], ...]

    @property
    def state_names(self) -> list[str]:
        """All states of the run, with those that agents enter first in front."""
        columns = (
            self.transitions["from_state"],
            self.transitions["to_state"],
            self.states["state"],
            self.chosen["chosen"],
        )
        names = pl.concat(columns).drop_nulls().unique().to_list()
        return sorted(names, key=lambda name: (_RANKS.get(name, len(_RANKS)), _natural(name)))


def facts_of(logs: RunLogs) -> tuple[tuple[RunFacts, ...], tuple[Note, ...]]:
    """Make every table of a report, with the logs parsed only once.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        The facts of each run, and the notes on the logs.
    """
    with parsed_once(logs) as parsed:
        tables = _tables(parsed)
        runs, notes = parsed.runs, parsed.notes
        most = max(1, _MOST_TREES // max(1, len(runs)))
        roots = {run.label: _largest(_of(tables["cascades"], run.label), most) for run in runs}
        posts = posts_below(parsed, [root for found in roots.values() for root in found])

    facts = []
    for run in runs:
        own = {name: _showable(_of(table, run.label)) for name, table in tables.items()}
        trees = tuple(grow(root, _of(posts, run.label)) for root in roots[run.label])
        facts.append(RunFacts(run, **own, trees=trees))

    return tuple(facts), notes


def _tables(logs: RunLogs) -> dict[str, pl.DataFrame]:
    return {
        "states": state_counts(logs),
        "transitions": transition_counts(logs),
        "dwelling": dwell_times(logs),
        "visits": visit_counts(logs),
        "timeouts": timeouts(logs),
        "decisions": decisions(logs, by=["state", "model"]),
        "by_round": decisions(logs, by=["round"]),
        "chosen": decisions(logs, by=["round", "chosen"]),
        "reasons": decisions(logs, by=["source", "reason"]).filter(pl.col("source") == "fallback"),
        "latencies": latency_counts(logs),
        "engagement": engagement(logs),
        "cascades": cascades(logs),
        "agents": agent_table(logs),
    }


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort ``state 10`` behind ``state 9``."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in _NUMBER.split(name)]


def _largest(found: pl.DataFrame, most: int) -> list[str]:
    roots: list[str] = found.filter(pl.col("size") > 1).head(most)["root_id"].to_list()
    return roots


def _of(table: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return the rows of one run."""
    return table.filter(pl.col("run") == label).drop("run") if "run" in table.columns else table


def _showable(table: pl.DataFrame) -> pl.DataFrame:
    """Shorten texts, and replace characters that cannot be shown."""
    text = pl.col(pl.String)
    is_long = text.str.len_chars() > MOST_CHARACTERS
    shortened = pl.when(is_long).then(text.str.slice(0, MOST_CHARACTERS) + "…").otherwise(text)
    return table.with_columns(shortened.str.replace_all(_UNSHOWABLE, "\ufffd").name.keep())
