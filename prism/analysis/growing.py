"""The log of a run that is still being written, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

import duckdb

from prism.analysis._log import Log, Note
from prism.analysis.loading import CONFIG, Damage, last_run, load_lines

_GROWN = "grown.own"
_OF_PATHS = ("broken_chain", "out_of_order")
_STARTED = b'"run.started"'


class GrowingLog(Log):
    """The tables of a run to which lines are still being added.

    The database is in memory as long as it fits, and its queries can read no file, since they come
    from a page.

    Args:
        path: The log; it is not read here.
        label: The name of the run.

    Attributes:
        lines: Number of the lines so far.
    """

    def __init__(self, path: Path, label: str) -> None:
        self._folder = TemporaryDirectory(prefix="prism-")
        self._label = label
        self.lines: int = 0
        self._path_notes: list[Note] = []
        self._columns = {"line", "event", "moment"}
        super().__init__([(path, label)])

    def append(self, lines: bytes) -> None:
        """Add whole lines; the next query makes the tables again."""
        execute = self.connection.execute
        damage: list[Damage] = []
        with NamedTemporaryFile(dir=self._folder.name, suffix=".jsonl") as file:
            file.write(lines)
            file.flush()
            execute("create schema memory.added")
            count, schema = lines.count(b"\n"), "memory.added"
            load_lines(self.connection, Path(file.name), count, schema, self._folder.name)
        new = {name: kind for name, kind, *_ in execute("describe memory.added.lines").fetchall()}
        for name in (others := new.keys() - self._columns):
            execute(f'alter table {_GROWN}.lines add column "{name}" {new[name]}')
        for table in ("lines", "damage"):
            execute(
                f"insert into {_GROWN}.{table} by name "
                f"select * replace (line + ? as line) from memory.added.{table}",
                [self.lines],
            )
        execute("drop schema memory.added cascade")
        if others:
            self._columns |= others
            execute(f"create or replace view events as {self._columns_of(_GROWN, self._label)}")
        self.lines += count
        if _STARTED in lines and (begin := last_run(self.connection, f"{_GROWN}.lines", damage)):
            execute(f"delete from {_GROWN}.lines where line < ?", [begin])
            execute(f"delete from {_GROWN}.damage where line < ? or kind = 'earlier_runs'", [begin])
            for each in damage:
                execute(f"insert into {_GROWN}.damage values (?, ?, ?)", [*each])
        self._forget()

    def skip(self, fault: str) -> None:
        """Note a line that is left out."""
        self.lines += 1
        row = ["corrupt", self.lines, fault]
        self.connection.execute(f"insert into {_GROWN}.damage values (?, ?, ?)", row)
        self._forget()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on problems of the log; those on steps are of the last time they were followed."""
        notes = super().notes
        if self._tables.is_made("steps"):
            self._path_notes = [each for each in notes if each.kind in _OF_PATHS]
            return notes
        return (*notes, *self._path_notes)

    def close(self) -> None:
        """Delete the database."""
        super().close()
        self._folder.cleanup()

    def _forget(self) -> None:
        """Have what was computed be computed again."""
        self._tables.forget()
        self.__dict__.pop("runs", None)

    def _connect(self) -> duckdb.DuckDBPyConnection:
        folder = self._folder.name
        # a checkpoint for every few thousand lines would cost more than to read them
        config = {**CONFIG, "threads": 1, "temp_directory": folder, "checkpoint_threshold": "1GB"}
        connection = duckdb.connect(config=config)
        connection.execute("attach ':memory:' as grown (compress)")
        connection.execute("use grown")
        connection.execute(f"set allowed_directories = ['{folder}']")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        return connection

    def _load(self, paths: Sequence[tuple[Path, str]]) -> Sequence[tuple[str, str]]:
        self._paths = {label: path for path, label in paths}
        execute = self.connection.execute
        execute(f"create schema {_GROWN}")
        execute(f"create table {_GROWN}.lines (line bigint, event text, moment timestamp)")
        execute(f"create table {_GROWN}.damage (kind text, line bigint, message text)")
        return [(_GROWN, self._label)]
