"""Counts as the facts that a report draws, so that the window draws what a report does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import polars as pl

from prism.analysis import read_log
from prism.analysis._tables.decisions import SOURCES, SUMMED, UNANSWERED, if_known, with_shares
from prism.analysis._tables.transitions import with_probabilities
from prism.analysis._tables.worlds import by_measure
from prism.drawing import Levels, showable
from prism.report._facts.run_facts import RunFacts, facts_of, with_charts, with_tables
from prism.report._page import familiar_charts
from prism.telemetry.events import DECISION
from prism.watch._looking import as_log
from prism.watch._tally import COUNTED, Tally
from prism.watch._watched import Watched

_END_BYTES = 1 << 20
_MOVES = ["chart", "from_state", "to_state", "trigger"]
_SUMS = pl.col(*COUNTED, *(f"{name}_known" for name in COUNTED)).sum()


def blank_facts(watched: Watched) -> RunFacts | None:
    """Return the facts of both ends of a log, which have tables of the right kinds.

    The beginning tells what the run is; the end, which charts it follows before all of it is read.

    Returns:
        None if the log contains no events of prism yet.
    """
    with watched.reading() as (_, tail):
        head = tail.read(0, _END_BYTES)
        last = tail.read(max(tail.size - _END_BYTES, len(head)), tail.size)
    last = last[last.find(b"\n") + 1 : last.rfind(b"\n") + 1]
    with as_log(head[: head.rfind(b"\n") + 1] + last) as part:
        runs, _ = facts_of(read_log(part))

    return runs[-1] if runs else None


def whole_facts(watched: Watched) -> RunFacts | None:
    """Return all facts of a run, as its report has them."""
    logs = read_log(watched.path)
    runs, _ = facts_of(logs, watched.charts, familiar_charts(logs.runs))
    return runs[-1] if runs else None


def drawn_facts(blank: RunFacts, watched: Watched) -> RunFacts:
    """Return the facts that charts are drawn from, as the counts of a run give them.

    Args:
        blank: The facts of its beginning, or of all of it some time ago.
        watched: The run.
    """
    with watched.reading() as (tally, _):
        run = tally.known_run or blank.run
        tables = {"states": _states(tally), "stays": _summed(_stays(tally), ["state"])}
        if tally.end:
            tables["traffic"] = _summed(tally.table("traffic"), _MOVES)

    facts = with_tables(replace(blank, run=run), tables)
    return with_charts(facts, watched.charts, familiar_charts([run]))


def counted_facts(blank: RunFacts, watched: Watched, *, decides: bool = True) -> RunFacts:
    """Return the facts that the counts of a run give, in place of those of earlier.

    Args:
        blank: As for `drawn_facts`.
        watched: The run.
        decides: Whether to replace those of decisions, too, of which counts tell less.
    """
    with watched.reading() as (tally, _):
        counts = _summed(tally.table("traffic").with_columns(run=pl.lit(0)), ["run", *_MOVES])
        ends = sorted(tally.ends.items())
        measured = ((0, number, object_in(event, "measures")) for number, event in ends)
        tables = {
            "transitions": with_probabilities(counts).drop("run"),
            "faults": tally.table("faults"),
            "measures": by_measure(measured).drop("run"),
            "treatments": _treatments(tally),
            "own_events": tally.table("own"),
            **(_decisions(tally) if decides else {}),
        }

    return with_tables(drawn_facts(blank, watched), tables)


def states_at(tally: Tally, number: int | None) -> dict[str, int]:
    """Return how many agents are in each state at the end of a round, or now if it goes on."""
    if number in tally.ends:
        return _counts(tally.ends[number])

    last = -1 if number is None else number
    before = max((ended for ended in tally.ends if ended < last), default=None)
    counts = tally.joined() if before is None else _counts(tally.ends[before])
    # what closes a round comes after its states were counted
    closing = pl.col("round").eq_missing(pl.lit(before)) & pl.col("closes")
    then = pl.col("round").fill_null(-1).is_between(-1 if before is None else before + 1, last)
    since = tally.table("traffic").filter(then | closing)
    for source, target, count in since.select("from_state", "to_state", "count").iter_rows():
        counts[source] = counts.get(source, 0) - count
        counts[target] = counts.get(target, 0) + count

    return {state: max(count, 0) for state, count in counts.items()}


def in_round(facts: RunFacts, tally: Tally, number: int | None) -> RunFacts:
    """Return the facts with the transitions and decisions to stay of one round alone."""
    is_here = pl.col("round").eq_missing(pl.lit(number))
    moves, stays = tally.table("traffic").filter(is_here), _stays(tally).filter(is_here)
    tables = {"traffic": _summed(moves, _MOVES), "stays": stays.select("state", "count")}
    return with_tables(facts, tables)


def _stays(tally: Tally) -> pl.DataFrame:
    """Count the decisions to stay by round and state, where agents decided."""
    stayed = pl.col("chosen") == pl.col("state")
    decided = tally.table("asked").filter(pl.col("event") == DECISION).drop_nulls("state")
    return decided.group_by("round", "state").agg(count=pl.col("asked").filter(stayed).sum())


def busiest(tally: Tally, chart: str | None, levels: Levels) -> dict[tuple[str, str], int]:
    """Return the most that each arrow of a chart was used in a round: one scale for all rounds.

    Args:
        tally: The counts.
        chart: The chart's name.
        levels: Which arrows it has; what names other states is left out.
    """
    own = tally.table("traffic").filter(pl.col("chart").eq_missing(pl.lit(chart)))
    ends = ["from_state", "to_state"]
    arrows = [
        (*moved, *arrow)
        for moved in own.select(ends).unique().iter_rows()
        for arrow in levels.used(*map(showable, moved))
        if set(levels.diagram.states).issuperset(arrow)
    ]
    schema = dict.fromkeys((*ends, "source", "target"), pl.String)
    used = own.join(pl.DataFrame(arrows, schema, orient="row"), on=ends)
    ends = ["source", "target"]
    most = used.group_by("round", *ends).agg(pl.col("count").sum())
    rows = most.group_by(ends).agg(pl.col("count").max())
    found = {(source, target): count for source, target, count in rows.sort(ends).iter_rows()}
    for state, count in _stays(tally).group_by("state").agg(pl.col("count").max()).iter_rows():
        if (loop := (showable(state),) * 2)[0] in levels.diagram.states:
            found[loop] = max(count, found.get(loop, 0))

    return found


def _counts(event: Mapping[str, Any]) -> dict[str, int]:
    states = object_in(event, "states")
    return {name: count for name, count in states.items() if type(count) is int}


def object_in(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object that an event has under a name; an empty one if it has none."""
    found = event.get(name)
    return found if isinstance(found, dict) else {}


def _summed(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    return table.group_by(keys).agg(pl.col("count").sum()).sort(keys)


def _states(tally: Tally) -> pl.DataFrame:
    rows = [
        (number, state, count)
        for number, event in sorted(tally.ends.items())
        for state, count in _counts(event).items()
    ]
    schema = {"round": pl.Int64, "state": pl.String, "agents": pl.Int64}
    table = pl.DataFrame(rows, schema, orient="row")

    return table.with_columns(share=pl.col("agents") / pl.col("agents").sum().over("round"))


def _treatments(tally: Tally) -> pl.DataFrame:
    rows = [
        (each.get("round"), each.get("treatment"), orjson.dumps(each.get("parameters")).decode())
        for each in tally.treated
    ]
    schema = {"round": pl.Int64, "treatment": pl.String, "parameters": pl.String}

    return pl.DataFrame(rows, schema, orient="row", strict=False)


def _decisions(tally: Tally) -> dict[str, pl.DataFrame]:
    """Return the tables of decisions; what needs every single one, such as latencies, is empty."""
    asked = tally.table("asked")
    made = asked.filter(pl.col("event") == DECISION)

    return {
        "decisions": _grouped(made, ["state", "model"]),
        "by_round": _grouped(made, ["round"]),
        "chosen": _grouped(made, ["round", "chosen"]),
        "reasons": _grouped(made.filter(source="fallback"), ["source", "reason"]),
        "costs": _costs(asked),
    }


def _grouped(made: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    asked, source = pl.col("asked"), pl.col("source")
    from_sources = {
        f"from_{name}": asked.filter(source == name).sum().cast(pl.Int64) for name in SOURCES
    }
    counts = made.group_by(keys).agg(asked.sum(), _SUMS, **from_sources)

    return with_shares(counts).with_columns(entropy=pl.lit(None, pl.Float64)).sort(keys)


def _costs(asked: pl.DataFrame) -> pl.DataFrame:
    answered = ~pl.col("source").is_in(UNANSWERED)
    by_model = asked.filter(pl.col("model").is_not_null()).group_by("model")
    counts = by_model.agg(_SUMS, answers=pl.col("asked").filter(answered).sum())
    known = {name: if_known(key, pl.col(key)) for name, key in SUMMED.items()}

    return counts.select("model", "answers", **known).sort("model")
