"""Logs opened as a database: tables, queries, and notes on what is wrong with them."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb
import orjson

from prism.analysis._tables import Tables, statements, table_names
from prism.analysis.loading import CONFIG, column_types, load, quoted
from prism.errors import InputError
from prism.files.records import distinct_ends
from prism.runlog.reader import locate_log
from prism.telemetry import events


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a log that affects its tables.

    Args:
        kind: Its kind, for programs.
        path: The log.
        line: The line that it refers to, counted from 1, or None for the whole log.
        message: Its text, for people.
    """

    kind: str
    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """Return the note as ``file, line 3: message``."""
        where = self.path if self.line is None else f"{self.path}, line {self.line:,}"
        return f"{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a log, as described by its first line.

    Args:
        label: Its name in the column ``run`` of tables: its folder or file.
        path: The log.
        started: Whether it begins with ``run.started``, as the runs of a simulation do.
        ended: Whether the log contains its end.
        schema: Version of its events.
        chart: The name of the agents' chart, or several names separated by commas.
        agents: Number of its agents.
        logged_agents: How many of them the log covers; None for all.
        rounds: Number of rounds planned.
        ticks_per_round: Ticks of each round.
        seconds_per_round: Seconds of the log in a round, if events happen at rates.
        seed: Its seed.
        world: The class of its world; None for a social feed, or if the log does not contain it.
        parameters: The world's parameters at the beginning, by name.
        charts: The states inside each composite state, by chart.
    """

    label: str
    path: Path
    started: bool = False
    ended: bool = False
    schema: int | None = None
    chart: str | None = None
    agents: int | None = None
    logged_agents: int | None = None
    rounds: int | None = None
    ticks_per_round: int | None = None
    seconds_per_round: float | None = None
    seed: int | None = None
    world: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    charts: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Log:
    """The opened logs of one run or several; made by `read_log`.

    Args:
        paths: The logs, with the label of each.
        unreadable: Notes on the logs that could not be opened.
        all_runs: As for `read_log`.

    Attributes:
        paths: The files that are read.
        connection: The database.
    """

    def __init__(
        self,
        paths: Sequence[tuple[Path, str]],
        unreadable: Sequence[Note] = (),
        all_runs: bool = False,
    ) -> None:
        self._all_runs = all_runs
        self._unreadable = list(unreadable)
        self.paths: tuple[Path, ...] = tuple(path for path, _ in paths)
        self.connection: duckdb.DuckDBPyConnection = self._connect()
        self._tables = Tables(self.connection, len(paths) + len(unreadable) > 1)
        self._paths: dict[str, Path] = {}
        self._make_events(self._load(paths))

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """Return a database of its own."""
        # a second thread costs each query on one small log a tenth more
        return duckdb.connect(config={**CONFIG, "threads": 1})

    def _load(self, paths: Sequence[tuple[Path, str]]) -> Sequence[tuple[str, str]]:
        """Load the logs; return the schema of each, with its label."""
        parts = []
        for number, (path, label) in enumerate(paths):
            try:
                parts.append((load(self.connection, path, f"log_{number}", self._all_runs), label))
                self._paths[label] = path
            except InputError as error:
                self._unreadable.append(Note("unreadable", str(path), None, error.problem))
        if len(parts) > 1 or any("." in schema for schema, _ in parts):
            self.connection.execute(f"set threads = {CONFIG['threads']}")
        return parts

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs, in the order of the logs; a log without events has none."""
        names = [name for name in Run.__dataclass_fields__ if name not in ("label", "path")]
        columns = ", ".join(f'"{name}"' for name in names)
        rows = self._tables.rows(f"select run, {columns} from runs", "runs")
        return tuple(self._run(label, dict(zip(names, row, strict=True))) for label, *row in rows)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on problems of the logs. Tables use everything else.

        A table that follows agents, such as ``states``, adds notes on steps that do not follow from
        one another; one on a level, such as ``states_at``, on logs that have no levels.
        """
        rows = self._tables.rows("select run, kind, line, message from notes", "notes")
        for made, name in (("steps", "path_notes"), ("paths_at", "level_notes")):
            if self._tables.is_made(made):
                rows += self._tables.rows(f"select run, kind, null, message from {name}", name)
        noted = [Note(kind, str(self._paths[run]), line, text) for run, kind, line, text in rows]
        return (*self._unreadable, *noted)

    def table(self, name: str, *arguments: object) -> duckdb.DuckDBPyRelation:
        """Return a table: a DuckDB relation, which becomes polars, pandas or Arrow by one call.

        If there are several logs, the first columns are ``run`` and the parameters of worlds that
        differ. Columns that say nothing about these logs are left out, such as ``chart`` where
        every agent follows one.

        Args:
            name: The table, such as ``states``, or one that takes arguments, as ``states_at``.
            arguments: Its arguments, such as the depth.

        Raises:
            InputError: If there is no such table.
        """
        return self._tables.relation(name.replace("-", "_"), arguments)

    def rows(self, name: str, *arguments: object) -> list[dict[str, Any]]:
        """Return the rows of a table as plain data."""
        return rows_of(self.table(name, *arguments))

    def sql(self, query: str, **values: object) -> duckdb.DuckDBPyRelation:
        """Return the rows of a query on the tables and on ``events``.

        Args:
            query: A query in DuckDB's SQL.
            values: The values of its parameters (``$name``), by name.

        Raises:
            InputError: If DuckDB cannot read it; the message names what there is.
        """
        try:
            kinds = [each.type for each in duckdb.extract_statements(query)]
            if kinds == [duckdb.StatementType.SELECT]:
                for name, text in statements().items():
                    # a macro is not meant where a column has its name
                    begins = r"\s*\(" if "create macro" in text else r"\b"
                    if re.search(rf"\b{name}{begins}", query):
                        self._tables.make(name)
                return self.connection.sql(query, params=values or None)
        except (duckdb.Error, ValueError) as error:
            message = str(error).partition("\n")[0]
            columns = self._columns_in(query) if isinstance(error, duckdb.BinderException) else ""
            names = columns or f"the tables are {', '.join(table_names())}"
            raise InputError(f"{message}; {names}") from None
        raise InputError("must be one query: begin with select, from or with", field="query")

    def _columns_in(self, query: str) -> str:
        """Return the columns of the tables that a query names, for a message."""
        listing = (
            "select 'the columns of ' || table_name || ' are ' || string_agg(column_name, ', ' "
            "order by column_index) from duckdb_columns() where table_name in $words "
            "group by table_name order by table_name"
        )
        words = {"words": re.findall(r"\w+", query)}
        return "; ".join(text for (text,) in self.connection.sql(listing, params=words).fetchall())

    def lock(self) -> None:
        """Keep queries from reading or writing anything else, for those from a page."""
        self.connection.execute("set enable_external_access = false; set lock_configuration = true")

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def _make_events(self, parts: Sequence[tuple[str, str]]) -> None:
        """Make the logs one view ``events``, with all columns."""
        execute = self.connection.execute
        labels = ", ".join(f"'{quoted(label)}'" for label in self._paths) or "''"
        execute(f"create type label as enum ({labels})")
        execute("create table logs (run label, path varchar)")
        # a name of a file need not be UTF-8, a text of DuckDB must
        for label, path in self._paths.items():
            name = os.fsencode(path).decode("utf-8", "replace")
            execute("insert into logs values (?, ?)", [label, name])
        names = [
            each for name, each in vars(events).items() if name.isupper() and isinstance(each, str)
        ]
        execute("create table known_events as select unnest(?) as event", [names])
        execute(f"create table known_version as select {events.SCHEMA_VERSION} as version")
        selects = [self._columns_of(schema, label) for schema, label in parts]
        damages = [
            f"select '{quoted(label)}'::label as run, kind, line, message from {schema}.damage"
            for schema, label in parts
        ]
        if not parts:
            columns = ", ".join(_column(*each, False) for each in column_types().items())
            selects = [f"select null::label as run, null::bigint as line, {columns} limit 0"]
            damages = ["select null::label as run, '' as kind, 0 as line, '' as message limit 0"]
        # a view of many columns costs each query on a small log more than its rows
        kind = "view" if any("." in schema for schema, _ in parts) else "table"
        execute(f"create {kind} events as {' union all '.join(selects)}")
        execute(f"create view damage as {' union all '.join(damages)}")

    def _columns_of(self, schema: str, label: str) -> str:
        """Return the query for the lines of a log with all columns that an event may have."""
        present = {"timestamp", *self.connection.sql(f"from {schema}.lines").columns}
        columns = ", ".join(
            _column(name, kind, name in present) for name, kind in column_types().items()
        )
        return f"select '{quoted(label)}'::label as run, line, {columns} from {schema}.lines"

    def _run(self, label: str, facts: dict[str, Any]) -> Run:
        for name in ("parameters", "charts"):
            values = orjson.loads(facts[name] or "{}")
            facts[name] = values if isinstance(values, dict) else {}
        if facts["charts"]:
            inside: dict[str, dict[str, list[str]]] = {}
            query = "select chart, around, state from inside where run = ?"
            self._tables.make("inside")
            for chart, around, state in self.connection.execute(query, [label]).fetchall():
                inside.setdefault(chart, {}).setdefault(around, []).append(state)
            facts["charts"] = {k: chart for k, chart in facts["charts"].items() if k in inside}
        return Run(label, self._paths[label], **facts)


def rows_of(relation: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """Return the rows of a query as plain data."""
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def read_log(*paths: PathLike[str] | str, all_runs: bool = False) -> Log:
    """Open the logs of one run or several.

    Args:
        paths: Logs, plain or compressed with gzip, folders of runs, or patterns of these. A log
            that cannot be opened is reported in `Log.notes`.
        all_runs: Whether runs that follow each other in a file count as one, such as those of a
            service that was restarted; by default the last alone is read.

    Raises:
        InputError: If no path is given, if the same log is given twice, or if none can be opened.
    """
    if not paths:
        raise InputError("no log given: give at least one run's folder or log")

    logs: list[Path] = []
    unreadable: list[Note] = []
    problem: InputError | None = None
    for path in (each for pattern in paths for each in _matching(pattern)):
        try:
            logs.append(locate_log(path))
        except InputError as error:
            problem = problem or error
            unreadable.append(Note("unreadable", str(error.path), error.line, error.problem))
    if problem is not None and not logs:
        raise problem

    _require_different(logs)
    return Log(list(zip(logs, _labels(logs), strict=True)), unreadable, all_runs)


def _matching(pattern: PathLike[str] | str) -> list[Path]:
    path = Path(pattern)
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    matches = [Path(each) for each in glob.glob(str(path), recursive=True)]  # noqa: PTH207
    if not matches:
        raise InputError("matches no file", path=path)
    return sorted(matches)


def _require_different(logs: Sequence[Path]) -> None:
    path, count = Counter(path.resolve() for path in logs).most_common(1)[0]
    if count > 1:
        raise InputError("is given more than once", path=path)


def _labels(logs: Sequence[Path]) -> list[str]:
    """Label each log by its folder or name, with enough of its path to be unique."""
    names = [_without_suffixes(log.absolute()) for log in logs]
    return distinct_ends(names if len(set(names)) == len(names) else logs)


def _without_suffixes(log: Path) -> Path:
    name = log.name.removesuffix(".gz")
    return log.parent if name == "events.jsonl" else log.with_name(name.removesuffix(".jsonl"))


def _column(name: str, kind: str, is_present: bool) -> str:
    """Return a column of ``events``: of a log, or null where the log has no such key."""
    if name == "timestamp":
        return "moment as timestamp" if is_present else "null::timestamp as timestamp"
    if kind == "DOUBLE" and is_present:
        # DuckDB reads NaN and Infinity, which would spoil every mean
        return f'if(isfinite("{name}"), "{name}", null) as "{name}"'
    return f'"{name}"' if is_present else f'null::{kind} as "{name}"'
