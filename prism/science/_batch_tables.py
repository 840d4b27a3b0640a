"""The tables of a batch, by run and by round, and the measures from the logs of a feed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from prism.files import make_folder, write_durably
from prism.files._durable import replacing
from prism.science._libraries import library

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]
_STATES = "states."


def run_row(
    head: Mapping[str, Any], parameters: Mapping[str, Any], results: Mapping[str, Any]
) -> Row:
    """Return the row of one run: its parameters, its totals, and its final measures.

    Args:
        head: The first columns: run, configuration, arm, seed.
        parameters: Its parameters.
        results: The results in ``run.json``; empty if there are none.
    """
    rounds = results.get("rounds", ())
    last = rounds[-1].get("measures", {}) if rounds else {}
    measures = {**last, **results.get("measures", {})}

    return _joined(
        head,
        ("parameter", _flat(parameters)),
        ("total", _flat(results.get("totals", {}))),
        ("measure", measures),
    )


def round_rows(
    head: Mapping[str, Any], parameters: Mapping[str, Any], results: Mapping[str, Any]
) -> Iterator[Row]:
    """Yield a row for each round of one run; see `run_row`."""
    # the same in every row except for the round
    first = _joined({**head, "round": None}, ("parameter", _flat(parameters)))
    for each in results.get("rounds", ()):
        counts = {name: value for name, value in each.items() if name not in ("round", "measures")}
        yield _joined(
            {**first, "round": each["round"]},
            ("total", _flat(counts)),
            ("measure", each.get("measures", {})),
        )


def table_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows as a table with all their columns, in the order of their first appearance.

    The numbers of agents by state are next to each other. They are 0 in rounds without the state,
    as a chart with regions can have different states in each round.
    """
    import polars as pl

    named = [*dict.fromkeys(name for row in rows for name in row)]
    states = [name for name in named if name.startswith(_STATES)]
    first = min(map(named.index, states), default=0)
    others = [name for name in named if name not in states]
    columns = [*others[:first], *states, *others[first:]]
    table = pl.DataFrame(rows, infer_schema_length=None, strict=False)

    return table.select(columns).with_columns(pl.col(states).fill_null(0))


def write_tables(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write each table as CSV and as Parquet.

    Raises:
        OSError: If it cannot be written.
    """
    for name, table in tables.items():
        with replacing(folder / f"{name}.csv") as file:
            table.write_csv(file)
        with replacing(folder / f"{name}.parquet") as file:
            table.write_parquet(file)


def _joined(head: Mapping[str, Any], *parts: tuple[str, Mapping[str, Any]]) -> Row:
    """Join groups of columns; a name that already exists gets the name of its group."""
    row = dict(head)
    for kind, columns in parts:
        for name, value in columns.items():
            row[f"{kind}.{name}" if name in row else name] = value

    return row


def _flat(values: Mapping[str, Any], before: str = "") -> Row:
    """Return only numbers and texts; nested ones get the name of their group as a prefix."""
    found: Row = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{name}.")
        elif isinstance(value, list):
            found[f"{before}{name}"] = json.dumps(value)
        else:
            found[f"{before}{name}"] = value

    return found


FOLDER_NAME = "measures"
_ALSO_IN_RESULTS = ("agents", "agent_ticks", "transitions", "timeouts", "decisions", "fallbacks")
"""Measures that are also in ``run.json``."""


def measure_run(batch: Path, run: str) -> list[Mapping[str, Any]]:
    """Return the table ``run_measures`` of a run, by round and, in the last row, overall.

    The process that carried out the run computes it once, and keeps it beside the runs.

    Args:
        batch: The folder of the batch.
        run: The name of the run, which is complete.

    Raises:
        MissingExtraError: If polars is not installed.
        OSError: If it cannot be written.
    """
    kept = batch / FOLDER_NAME / f"{run}.json"
    if kept.exists():
        found: list[Mapping[str, Any]] = orjson.loads(kept.read_bytes())
        return found

    rows = measure_log(batch / run)
    make_folder(kept.parent)
    write_durably(kept, orjson.dumps(rows))

    return rows


def measure_log(run: Path) -> list[Mapping[str, Any]]:
    """Return the table ``run_measures`` of a run, by round and, in the last row, overall.

    Args:
        run: Its folder.

    Raises:
        MissingExtraError: If polars is not installed.
    """
    analysis = library("prism.analysis")
    rows = analysis.read_log(run).rows("measured_in", 1, None)

    # in the form in which it is read from a file
    again: list[Mapping[str, Any]] = orjson.loads(orjson.dumps(rows))
    return again


def all_results(batch: Path, run: str, results: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the results of a run of a batch; for the feed, with the measures of its log."""
    if not is_of_feed(results) or "measures" in results:
        return results

    return with_measures(results, measure_run(batch, run))


def is_of_feed(results: Mapping[str, Any]) -> bool:
    """Return whether the results of a run are those of a social feed."""
    return "cascades" in results


def with_measures(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the results of a run with its measures, by round and in total.

    Args:
        results: The results in ``run.json``.
        rows: The rows of `measure_run`.
    """
    told = (*results["totals"], *_ALSO_IN_RESULTS, "run", "round")
    by_round = {
        row["round"]: {name: value for name, value in row.items() if name not in told}
        for row in rows
    }
    rounds = [
        {**each, "measures": {**by_round.get(each["round"], {}), **each.get("measures", {})}}
        for each in results["rounds"]
    ]

    return {**results, "rounds": rounds, "measures": by_round.get(None, {})}
