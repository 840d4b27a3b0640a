"""Counts as the facts that a report draws, so that the window draws what a report does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import orjson
import polars as pl

from prism.analysis import read_log
from prism.drawing import showable
from prism.drawing._levels import Levels
from prism.report._facts.run_facts import RunFacts, facts_of, with_tables
from prism.report._page import familiar_charts
from prism.statechart.reasoner._questions import Source
from prism.telemetry.events import DECISION
from prism.watch._tally import Tally
from prism.watch._watched import Watched

_HEAD_BYTES = 1 << 20
_SOURCES = get_args(Source)
_SPENT = {"calls": "attempts", "input_tokens": "input_tokens", "output_tokens": "output_tokens"}


def blank_facts(watched: Watched) -> RunFacts | None:
    """Return the facts of the beginning of a log, which has tables of the right kinds.

    Returns:
        None if the log contains no events of prism yet.
    """
    head = watched.tail.read(0, _HEAD_BYTES)
    whole = head[: head.rfind(b"\n") + 1]
    with TemporaryDirectory(prefix="prism-") as folder:
        copy = Path(folder) / "events.jsonl"
        copy.write_bytes(whole)
        runs, _ = facts_of(read_log(copy))

    return runs[-1] if runs else None


def whole_facts(watched: Watched) -> RunFacts | None:
    """Return all facts of a run, as its report has them."""
    runs, _ = facts_of(read_log(watched.path), watched.charts, familiar_charts())
    return runs[-1] if runs else None


def counted_facts(blank: RunFacts, watched: Watched) -> RunFacts:
    """Return the facts that the counts of a run give, in place of those of its beginning."""
    with watched.reading() as (tally, _):
        traffic, run = tally.traffic(), tally.known_run
        tables = {
            "states": _states(tally),
            "traffic": _summed(traffic, ["chart", "from_state", "to_state", "trigger"]),
            "transitions": _transitions(traffic),
            "faults": tally.faults(),
            "measures": _measures(tally),
            "treatments": _treatments(tally),
            "own_events": tally.own_events(),
            **_decisions(tally),
        }

    facts = replace(blank, run=run or blank.run)
    return with_tables(facts, tables, watched.charts, familiar_charts())


def states_at(tally: Tally, number: int | None) -> dict[str, int]:
    """Return how many agents are in each state at the end of a round, or now if it goes on."""
    if number is None:
        return tally.joined()
    if number in tally.ends:
        return _counts(tally.ends[number])

    before = max((ended for ended in tally.ends if ended < number), default=None)
    counts = tally.joined() if before is None else _counts(tally.ends[before])
    # what closes a round comes after its states were counted
    closing = pl.col("round").eq_missing(pl.lit(before)) & pl.col("closes")
    since = tally.traffic().filter((pl.col("round") > (before or -1)) | closing)
    for source, target, count in since.select("from_state", "to_state", "count").iter_rows():
        counts[source] = counts.get(source, 0) - count
        counts[target] = counts.get(target, 0) + count

    return {state: max(count, 0) for state, count in counts.items()}


def in_round(facts: RunFacts, tally: Tally, number: int | None) -> RunFacts:
    """Return the facts with the transitions of one round alone."""
    traffic = tally.traffic()
    own = traffic.filter(pl.col("round").eq_missing(pl.lit(number)))
    tables = {
        "traffic": _summed(own, ["chart", "from_state", "to_state", "trigger"]),
        "transitions": _transitions(own),
    }
    return replace(with_tables(facts, tables), charts=facts.charts)


def busiest(tally: Tally, chart: str | None, levels: Levels) -> dict[tuple[str, str], int]:
    """Return the most that each arrow of a chart was used in a round: one scale for all rounds.

    Args:
        tally: The counts.
        chart: The chart's name.
        levels: Which arrows it has; what names other states is left out.
    """
    own = tally.traffic().filter(pl.col("chart").eq_missing(pl.lit(chart)))
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

    return {(source, target): count for source, target, count in rows.sort(ends).iter_rows()}


def _counts(event: Mapping[str, Any]) -> dict[str, int]:
    states = event.get("states")
    found = states if isinstance(states, dict) else {}
    return {name: count for name, count in found.items() if type(count) is int}


def _summed(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    return table.group_by(keys).agg(pl.col("count").sum()).sort(keys)


def _transitions(traffic: pl.DataFrame) -> pl.DataFrame:
    several = ["chart"] if traffic["chart"].n_unique() > 1 else []
    leaving = pl.col("count").sum().over(*several, "from_state")
    table = _summed(traffic, [*several, "from_state", "to_state", "trigger"])

    return table.with_columns(probability=pl.col("count") / leaving).sort(
        [*several, "from_state", pl.col("count").neg(), "to_state"]
    )


def _states(tally: Tally) -> pl.DataFrame:
    rows = [
        (number, state, count)
        for number, event in sorted(tally.ends.items())
        for state, count in _counts(event).items()
    ]
    schema = {"round": pl.Int64, "state": pl.String, "agents": pl.Int64}
    table = pl.DataFrame(rows, schema, orient="row")

    return table.with_columns(share=pl.col("agents") / pl.col("agents").sum().over("round"))


def _measures(tally: Tally) -> pl.DataFrame:
    schema = {"round": pl.Int64, "measure": pl.String, "value": pl.Float64}
    rows = pl.DataFrame(list(_measured(tally)), schema, orient="row")
    places = {name: at for at, name in enumerate(rows["measure"].unique(maintain_order=True))}
    place = pl.col("measure").replace_strict(places, default=0, return_dtype=pl.Int64)

    return rows.sort(place, "round", maintain_order=True)


def _measured(tally: Tally) -> Iterator[tuple[int, str, float | None]]:
    for number, event in sorted(tally.ends.items()):
        found = event.get("measures")
        for name, value in (found if isinstance(found, dict) else {}).items():
            is_number = isinstance(value, (int, float)) and isfinite(value)
            yield number, name, float(value) if is_number else None


def _treatments(tally: Tally) -> pl.DataFrame:
    rows = [
        (each.get("round"), each.get("treatment"), orjson.dumps(each.get("parameters")).decode())
        for each in tally.treated
    ]
    schema = {"round": pl.Int64, "treatment": pl.String, "parameters": pl.String}

    return pl.DataFrame(rows, schema, orient="row", strict=False)


def _decisions(tally: Tally) -> dict[str, pl.DataFrame]:
    """Return the tables of decisions; what needs every single one, such as latencies, is empty."""
    asked = tally.asked()
    made = asked.filter(pl.col("event") == DECISION)
    reasons = made.filter(pl.col("source") == "fallback")

    return {
        "decisions": _grouped(made, ["state", "model"]),
        "by_round": _grouped(made, ["round"]),
        "chosen": _grouped(made, ["round", "chosen"]),
        "reasons": _grouped(reasons, ["source", "reason"]),
        "costs": _costs(asked),
    }


def _grouped(made: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    asked, source = pl.col("asked"), pl.col("source")
    from_sources = {
        f"from_{name}": asked.filter(source == name).sum().cast(pl.Int64) for name in _SOURCES
    }
    known = [
        pl.when(pl.col(name).sum() > 0).then(pl.col(name).sum()).alias(name)
        for name in _SPENT.values()
    ]
    table = made.group_by(keys).agg(asked.sum(), **from_sources)
    spent = made.group_by(keys).agg(known)

    return (
        table.join(spent, on=keys, nulls_equal=True)
        .with_columns(
            answered=asked - pl.col("from_fallback"),
            fallback_share=pl.col("from_fallback") / asked,
            entropy=pl.lit(None, pl.Float64),
        )
        .sort(keys)
    )


def _costs(asked: pl.DataFrame) -> pl.DataFrame:
    answered = ~pl.col("source").is_in(["fallback", "failed"])
    by_model = asked.filter(pl.col("model").is_not_null()).group_by("model")
    sums = {name: pl.col(key).sum() for name, key in _SPENT.items()}

    return by_model.agg(
        answers=pl.col("asked").filter(answered).sum(),
        **sums,
        seconds=pl.col("request_seconds").sum(),
    ).sort("model")
