"""Loading a log into DuckDB: a large one into a file, which is kept for the next time."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import duckdb
import orjson

from prism.errors import InputError
from prism.files.durable import cache_folder

MOST_BYTES = 8 << 20
"""Longest line that is read, and largest log that is loaded into memory instead of a file."""

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    **{"threads": 2, "memory_limit": "1GB"},
    # nothing is fetched from the network
    **{"autoinstall_known_extensions": False, "autoload_known_extensions": False},
}
"""Threads and memory that a log may use; what does not fit goes to a temporary file."""

_FORMAT = "2"
"""Changes with what is kept of a log."""

_MOST_NAMED = 10
_MOST_KEYS = 1_000
_KEPT_FILES = 12
_GZIP = b"\x1f\x8b"
_MOMENT = """
coalesce(case when timestamp not like '%Z' and regexp_matches(timestamp, ':.*[-+/]')
              then try_cast(timestamp as timestamptz) at time zone 'UTC'
              else try_cast(timestamp as timestamp) end,
         case when try_cast(timestamp as double) between 0 and 253402300799999
              then make_timestamp((try_cast(timestamp as double)
                   * if(try_cast(timestamp as double) < 253402300800, 1000000, 1000))::bigint)
              end) as moment,
if(moment is null, timestamp, null) as unread_time
"""
"""The time of a line in UTC, as a text with or without a zone, in seconds or in milliseconds."""

_UNREAD = """
insert into {0}.damage select 'unread_time', min(line),
    format('has a time that cannot be read: {{}} (lines like this: {{:,}})',
           min_by(unread_time, line), count(*))
from {0}.lines where unread_time is not null having count(*) > 0
"""

_LINES = "read_ndjson_objects('{}', ignore_errors = true)"


class Damage(NamedTuple):
    """A line that cannot be read, or what is wrong with a whole log.

    Args:
        kind: ``corrupt``, ``truncated``, ``earlier_runs`` or ``unread_time``.
        line: Its number; None for the whole log.
        message: What is wrong.
    """

    kind: str
    line: int | None
    message: str


@cache
def script(name: str) -> str:
    """Return a SQL script of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def column_types() -> Mapping[str, str]:
    """Return the type of each column of ``events``, as ``events.sql`` declares it."""
    with duckdb.connect() as connection:
        connection.execute(script("events.sql"))
        return {name: kind for name, kind, *_ in connection.execute("describe columns").fetchall()}


def load(connection: duckdb.DuckDBPyConnection, path: Path, name: str, all_runs: bool) -> str:
    """Load a log, or attach the file that it was loaded into before.

    Args:
        connection: The database in memory.
        path: The log, plain or compressed by gzip.
        name: A name for the schema of its tables ``lines`` and ``damage``.
        all_runs: Whether to keep the runs before the last one in the file.

    Returns:
        The name that their names begin with.

    Raises:
        InputError: If it cannot be read.
    """
    try:
        digest, lines, size = _digest(path)
        kept = _kept_file(f"{'all-' * all_runs}{digest}") if size > MOST_BYTES else None
        if kept is not None:
            with suppress(duckdb.Error, OSError):
                if not kept.exists():
                    _load_file(kept, path, lines, all_runs)
                connection.execute(f"attach '{quoted(kept)}' as {name} (read_only)")
                os.utime(kept)
                return f"{name}.main"

        connection.execute(f"create schema {name}")
        load_lines(connection, path, lines, name, all_runs=all_runs)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    return name


def _kept_file(digest: str) -> Path | None:
    """Return the file in the user's cache for a log; None where there can be none."""
    try:
        folder = cache_folder() / "logs"
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    version = hashlib.sha256(
        (duckdb.__version__ + _FORMAT + script("events.sql")).encode()
    ).hexdigest()
    return folder / f"{digest[:32]}-{version[:8]}.duckdb"


def _load_file(kept: Path, path: Path, lines: int, all_runs: bool) -> None:
    """Load a log into a file, and delete the ones that were not used for longest."""
    with NamedTemporaryFile(dir=kept.parent, suffix=".part", delete=False) as beside:
        part = Path(beside.name)
    part.unlink()
    try:
        with duckdb.connect(str(part), config=CONFIG) as connection:
            load_lines(connection, path, lines, "main", all_runs=all_runs)
        part.replace(kept)
    finally:
        part.unlink(missing_ok=True)
    others = sorted(kept.parent.glob("*.duckdb"), key=lambda each: each.stat().st_mtime)
    for old in others[:-_KEPT_FILES]:
        old.unlink(missing_ok=True)


def _digest(path: Path) -> tuple[str, int, int]:
    """Return the digest of a log, the number of its lines, and its bytes."""
    digest, lines, size, end = hashlib.sha256(), 0, 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(MOST_BYTES):
            if not size and block.startswith(_GZIP):
                lines = -1 << 62
            digest.update(block)
            lines += block.count(b"\n")
            size, end = size + len(block), block[-1:]
    return digest.hexdigest(), lines + (end != b"\n"), size


def load_lines(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    lines: int,
    schema: str,
    folder: str | None = None,
    all_runs: bool = False,
) -> None:
    """Make the tables of a log; a copy without its faults is read where it has any.

    Args:
        connection: The database.
        path: The log.
        lines: The number of its lines.
        schema: The schema of the tables.
        folder: Where to write the copy; by default where temporary files are.
        all_runs: As for `load`.
    """
    damage: list[Damage] = []
    sound = lines >= 0
    if sound:
        try:
            _make_lines(connection, path, schema)
            counts = f"select count(*), count(event) from {schema}.lines"
            sound = connection.execute(counts).fetchall() == [(lines, lines)]
        except duckdb.Error:
            sound = False
    if not sound:
        with NamedTemporaryFile(dir=folder, suffix=".jsonl") as copy:
            for line in _sound_lines(path, damage):
                copy.write(line)
            copy.flush()
            _make_lines(connection, Path(copy.name), schema)
        connection.execute(f"delete from {schema}.lines where event is null")
    begin = 0 if all_runs else last_run(connection, f"{schema}.lines", damage)
    damage = [each for each in damage if each.line is None or each.line >= begin]
    if begin:
        connection.execute(f"delete from {schema}.lines where line < ?", [begin])
    connection.execute(f"create table {schema}.damage (kind varchar, line bigint, message varchar)")
    if damage:
        connection.executemany(f"insert into {schema}.damage values (?, ?, ?)", damage)
    connection.execute(_UNREAD.format(schema))


def _make_lines(connection: duckdb.DuckDBPyConnection, path: Path, schema: str) -> None:
    source = _LINES.format(quoted(path))
    names = f"select distinct unnest(json_keys(json)) from {source} limit {10 * _MOST_KEYS}"
    keys = {name for (name,) in connection.execute(names).fetchall()}
    types = {name: kind for name, kind in column_types().items() if name in keys} | {
        "event": "VARCHAR",
        "timestamp": "VARCHAR",
    }
    typed = {name: kind for name, kind in types.items() if name != "keys"}
    others = sorted(keys - types.keys() | keys & {"keys"})
    make = (
        f"create or replace table {schema}.lines as select * exclude (timestamp), {_MOMENT} from "
    )
    if not others:
        # much faster, but for lines that are as they should be alone
        with suppress(duckdb.Error):
            connection.execute(
                f"{make} (select row_number() over () as line, *, null::json as keys "
                f"from read_json('{quoted(path)}', format = 'nd', columns = {typed}))"
            )
            return
    structure = {name: [kind[:-2]] if kind.endswith("[]") else kind for name, kind in typed.items()}
    listed = ", ".join(f"'{quoted(name)}'" for name in others[:_MOST_KEYS])
    has_others = f"list_has_any(json_keys(json), [{listed}])" if others else "false"
    connection.execute(
        f"{make} (select line, unnest(fields), keys "
        "from (select row_number() over () as line, "
        f"json_transform(json, '{quoted(json.dumps(structure))}') as fields, "
        f"case when {has_others} then json end as keys from {source}))"
    )


def last_run(connection: duckdb.DuckDBPyConnection, table: str, damage: list[Damage]) -> int:
    """Return the first line of the last of the runs that follow each other in a log."""
    starts = f"select line from {table} where event = 'run.started' order by line"
    begun = [line for (line,) in connection.execute(starts).fetchall()]
    if len(begun) < 2:
        return 0

    others = (
        f"select count(*) from {table} where line < ? and event <> 'run.started' "
        "and (event not like 'reasoner.%' or event = 'reasoner.decision')"
    )
    ((number,),) = connection.execute(others, [begun[-1]]).fetchall()
    if number:
        runs = "an earlier run" if len(begun) == 2 else f"{len(begun) - 1:,} runs"
        text = f"the last run begins here: {runs} before it in this file, left out (--all-runs)"
        damage.append(Damage("earlier_runs", begun[-1], text))
    return int(begun[-1])


def _sound_lines(path: Path, damage: list[Damage]) -> Iterator[bytes]:
    """Yield the lines of a log, with an empty object for each that cannot be read."""
    bad = 0
    number = 0
    for number, line in enumerate(_lines_of(path, damage), start=1):
        sound = _repaired(line)
        if sound is not None:
            yield sound + b"\n"
            continue
        yield b"{}\n"
        if not line.strip():
            continue
        if not line.endswith(b"\n"):
            damage.append(Damage("truncated", number, "is cut off and is left out"))
            continue
        bad += 1
        if len(line) > MOST_BYTES:
            text = f"is longer than {MOST_BYTES:,} bytes and is left out"
            damage.append(Damage("corrupt", number, text))
        elif bad <= _MOST_NAMED:
            damage.append(Damage("corrupt", number, "is not valid JSON and is left out"))
    if bad > _MOST_NAMED:
        text = f"{bad - _MOST_NAMED:,} more lines are not valid JSON and are left out"
        damage.append(Damage("corrupt", None, text))


def _lines_of(path: Path, damage: list[Damage]) -> Iterator[bytes]:
    """Yield the lines of a log, as far as its compressed data can be read."""
    with path.open("rb") as start:
        packed = start.read(len(_GZIP)) == _GZIP
    number = 0
    with gzip.open(path) if packed else path.open("rb") as file:
        try:
            while line := file.readline(MOST_BYTES + 1):
                number += 1
                yield line
                while len(line) > MOST_BYTES and not line.endswith(b"\n"):
                    line = file.readline(MOST_BYTES)
        except EOFError:
            text = "is where the compressed data is cut off"
            damage.append(Damage("truncated", number + 1, text))
        except (zlib.error, gzip.BadGzipFile):
            text = "contains damaged compressed data; nothing after it can be read"
            damage.append(Damage("corrupt", number + 1, text))


def _repaired(line: bytes) -> bytes | None:
    """Return a line as it can be read, with null for a number that is none; or None."""
    if len(line) > MOST_BYTES:
        return None
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            event = json.loads(line)
            line = orjson.dumps(event)
        except (ValueError, TypeError, RecursionError):
            return None
    return line.strip() if isinstance(event, dict) else None


def quoted(text: object) -> str:
    """Return a text as it stands between quotes in SQL."""
    return str(text).replace("'", "''")
