"""A batch in its folder: its runs, and its tables by run and by round."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from prism.science._batch_folder import Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from prism.science._plan import Configuration, Plan

_ALSO_IN_RESULTS = ("agents", "agent_ticks", "transitions", "timeouts", "decisions", "fallbacks")
"""Measures of a log that ``run.json`` has as well."""

_STATES = "states."

BatchStatus = Literal["complete", "failed", "open"]
"""How far a run of a batch is."""


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One run of a batch.

    Args:
        name: Its name and folder: the configuration and the seed.
        configuration: Its configuration.
        seed: The seed of all its random numbers.
        status: ``complete``, ``failed``, or ``open`` if it has not ended.
        error: Why it failed, if it did.
        row: Its row in ``runs.jsonl``, once it has ended.
    """

    name: str
    configuration: Configuration
    seed: int
    status: BatchStatus = "open"
    error: str | None = None
    row: Row = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch in its folder.

    Args:
        folder: Its folder.
        plan: Its plan.
        runs: Its runs, in the order of the plan.
    """

    folder: Path
    plan: Plan
    runs: tuple[BatchRun, ...]

    def __repr__(self) -> str:
        """Show the number of runs and the folder."""
        return f"<Batch of {len(self.runs)} runs in {self.folder}, {len(self.failed)} failed>"

    @property
    def failed(self) -> tuple[BatchRun, ...]:
        """The runs that failed."""
        return tuple(each for each in self.runs if each.status == "failed")

    @property
    def is_complete(self) -> bool:
        """Whether every run is complete."""
        return all(each.status == "complete" for each in self.runs)

    @property
    def spent(self) -> Mapping[str, int]:
        """What its models used: ``calls`` and ``tokens``. Empty if no model was asked."""
        spent = [run.row["spent"] for run in self.runs if "spent" in run.row]
        names = ("calls", "tokens") if spent else ()
        return {name: sum(each[name] for each in spent) for name in names}

    def results(self) -> DuckDBPyRelation:
        """Return one row per run: parameters, status, totals, and final measures.

        Measures are those of the world in the last round, and for the feed also those of
        the table ``run_measures``.
        """
        rows = []
        for run in self.runs:
            head = {**_head(run), "status": run.status, "error": run.error}
            rows.append(run_row(head, _parameters(run), run.row.get("results", {})))
        return table_of(rows)

    def rounds(self) -> DuckDBPyRelation:
        """Return one row per run and round: parameters, states, counts and measures."""
        rows: list[Mapping[str, Any]] = []
        for run in self.runs:
            rows += round_rows(_head(run), _parameters(run), run.row.get("results", {}))
        return table_of(rows)

    def outcomes(self) -> list[str]:
        """Return the columns of ``results`` that are measures; without any, the totals."""
        every = [run.row.get("results", {}) for run in self.runs]
        measures = dict.fromkeys(name for each in every for name in final_measures(each))
        totals = dict.fromkeys(name for each in every for name in flat(each.get("totals", {})))
        return [*(measures or totals)]

    def write(self) -> None:
        """Write both tables into the folder, as CSV and as Parquet.

        Raises:
            OSError: If it cannot be written.
        """
        write_tables(self.folder, {"results": self.results(), "rounds": self.rounds()})


def _head(run: BatchRun) -> dict[str, Any]:
    """Return the first columns of a run in both tables."""
    config = run.row.get("config", {})
    sizes = {name: config[name] for name in ("agents", "rounds", "ticks_per_round") if config}
    configuration = run.configuration
    names = {"configuration": configuration.name, "arm": configuration.arm, "seed": run.seed}
    return {"run": run.name, **names, **sizes}


def _parameters(run: BatchRun) -> dict[str, Any]:
    return {**run.configuration.parameters, **run.row.get("config", {}).get("parameters", {})}


def is_of_a_feed(results: Mapping[str, Any]) -> bool:
    """Return whether results are those of a social feed, whose totals count posts."""
    return "posts" in results.get("totals", {})


def run_row(
    head: Mapping[str, Any], parameters: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the row of one run: its parameters, its totals, and its final measures.

    Args:
        head: The first columns.
        parameters: Its parameters.
        results: Its results, as in ``run.json``; empty if there are none.
    """
    # a world need not make as many as it is asked for, and some may join or leave
    at_end = {"agents_at_end": results["agents"]} if "agents" in results else {}
    return _joined(
        {**head, **at_end},
        ("parameter", flat(parameters)),
        ("total", flat(results.get("totals", {}))),
        ("measure", final_measures(results)),
    )


def final_measures(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measures of the last round, and those of the whole run."""
    rounds = results.get("rounds", ())
    last = rounds[-1].get("measures", {}) if rounds else {}
    return {**last, **results.get("measures", {})}


def round_rows(
    head: Mapping[str, Any], parameters: Mapping[str, Any], results: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each round of one run; see `run_row`."""
    # the same in every row except for the round
    first = _joined({**head, "round": None}, ("parameter", flat(parameters)))
    for each in results.get("rounds", ()):
        counts = {name: value for name, value in each.items() if name not in ("round", "measures")}
        yield _joined(
            {**first, "round": each["round"]},
            ("total", flat(counts)),
            ("measure", each.get("measures", {})),
        )


def table_of(rows: Sequence[Mapping[str, Any]]) -> DuckDBPyRelation:
    """Return rows as a table with all their columns, in the order of their first appearance.

    The number of agents in a state is 0 in rounds without the state, as a chart with regions can
    have different states in each round.
    """
    import duckdb
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    states = dict.fromkeys((name for name in names if name.startswith(_STATES)), 0)
    filled = [{**states, **row} for row in rows]
    # before any run has ended there is nothing to tell of but runs
    columns = [*names] or ["run"]
    series = {name: _column([row.get(name) for row in filled]) for name in columns}
    return duckdb.connect().from_df(pd.DataFrame(series, columns=columns))


def _column(values: Sequence[Any]) -> Any:
    """Return values as a column; whole numbers stay whole beside missing ones."""
    import pandas as pd

    kinds = {type(value) for value in values if value is not None}
    if not kinds or not kinds <= {bool, int, float} or (bool in kinds and len(kinds) > 1):
        return pd.array([None if each is None else str(each) for each in values], dtype="string")
    kind = "boolean" if bool in kinds else "Float64" if float in kinds else "Int64"
    return pd.array(values, dtype=kind)


def write_tables(folder: Path, tables: Mapping[str, DuckDBPyRelation]) -> None:
    """Write each table as CSV and as Parquet.

    Raises:
        OSError: If it cannot be written.
    """
    for name, table in tables.items():
        for kind, write in (("csv", table.write_csv), ("parquet", table.write_parquet)):
            part = folder / f".{name}.{kind}"
            write(str(part))
            part.replace(folder / f"{name}.{kind}")


def with_log_measures(
    results: Mapping[str, Any], log: Path, first: int = 1, last: int | None = None
) -> dict[str, Any]:
    """Return the results of a feed with the measures ``run_measures`` of its log.

    Args:
        results: The results in its ``run.json``.
        log: The folder of the run.
        first: First round that the measures cover.
        last: Last round; None for all.
    """
    from prism.analysis import read_log

    others = {*results["totals"], *_ALSO_IN_RESULTS, "run", "round"}
    # in the form in which it is read from a file
    rows = orjson.loads(orjson.dumps(read_log(log).rows("measured_in", first, last)))
    measures = {
        row["round"]: {name: value for name, value in row.items() if name not in others}
        for row in rows
    }
    rounds = [{**measures.get(each["round"], {}), **each} for each in results["rounds"]]
    return {**results, "rounds": rounds, "measures": measures.get(None, {})}


def _joined(head: Mapping[str, Any], *parts: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Join groups of columns; a name that already exists gets the name of its group."""
    row = dict(head)
    for kind, columns in parts:
        for name, value in columns.items():
            row[f"{kind}.{name}" if name in row else name] = value

    return row


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return only numbers and texts; nested ones get the name of their group as a prefix."""
    row: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            row |= flat(value, f"{before}{name}.")
        elif isinstance(value, list):
            row[f"{before}{name}"] = json.dumps(value)
        else:
            row[f"{before}{name}"] = value

    return row
