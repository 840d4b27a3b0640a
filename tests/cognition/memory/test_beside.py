"""What lies beside a memory: its lock, and its backups."""

from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.cognition import Memory
from prism.cognition._memory import _sqlite_storage
from prism.errors import InputError
from tests.cognition.memory.living import live
from tests.kit import processes

ROOT = Path(__file__).parents[3]
KINDS: list[Any] = ["json", "sqlite"]


def start(path: Path, kind: str) -> subprocess.Popen[str]:
    """Start a process that lives on a memory, and wait until it has begun."""
    line = [sys.executable, "-m", "tests.cognition.memory.living", str(path), kind]
    process = processes.start(line, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    return process


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(2)
def test_two_processes(kind: Any, tmp_path: Path) -> None:
    """The second is refused with the number of the first, until that ends, however it does."""
    path = tmp_path / "memory"
    with start(path, kind) as process:
        try:
            with pytest.raises(InputError, match=f"is in use by process {process.pid}: wait"):
                Memory.open(path)
        finally:
            process.send_signal(signal.SIGKILL)
    # the file is still there, but it locks nothing
    assert (tmp_path / "memory.lock").exists()
    with Memory.open(path) as memory:
        assert memory.cycle > 0
        assert (tmp_path / "memory.lock").read_text() == f"{os.getpid()}\n"
    assert not (tmp_path / "memory.lock").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_reading_while_another_process_writes(kind: Any, tmp_path: Path) -> None:
    """Readers see complete states, each later than the one before."""
    path = tmp_path / "memory"
    expected = Memory.in_memory()
    with start(path, kind) as process:
        try:
            assert process.stdout is not None
            for _ in range(30):
                process.stdout.readline()
                memory = Memory.read(path)
                while expected.cycle < memory.cycle:
                    live(expected)
                assert memory.to_dict() == expected.to_dict()
                memory.close()
        finally:
            process.kill()
    assert expected.cycle > 30


def test_a_reader_who_stays(tmp_path: Path) -> None:
    """Who goes on reading a database sees what it was, and keeps nobody from writing."""
    path = tmp_path / "memory"
    Memory.create(path, {"storage": {"a": 1}}, storage="sqlite").close()
    with Memory.open(path) as memory:
        reader = Memory.read(path)
        live(memory)
        memory.commit()
        assert reader.to_dict()["storage"] == {"a": 1}
        reader.close()


def test_in_one_process(tmp_path: Path) -> None:
    """Also within a process a memory can be open once, and again when it was closed."""
    path = tmp_path / "memory"
    with (
        Memory.open(path),
        pytest.raises(InputError, match="is already open in this process: close it first"),
    ):
        Memory.open(path)
    Memory.open(path).close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_memory_writes_nothing(kind: Any, tmp_path: Path) -> None:
    """Whoever goes on with a memory that was closed is told, and undoes nothing of the next one."""
    path = tmp_path / "memory"
    with Memory.open(path, storage=kind) as closed:
        closed.add("mine", "1")
        closed.commit()
    with Memory.open(path) as other:
        other.add("theirs", "2")
        other.commit()
        closed.commit()  # nothing is left to write
        closed.add("late", "3")
        with pytest.raises(InputError, match="is closed: open it again"):
            closed.commit()

    with Memory.open(path) as again:
        assert again.working == {"mine": "1", "theirs": "2"}


def test_looking_at_a_closed_database(tmp_path: Path) -> None:
    """It is closed, not damaged."""
    with Memory.open(tmp_path / "memory", storage="sqlite") as closed:
        closed.commit()
    with pytest.raises(InputError, match="is closed: open it again"):
        closed.search("a", 1)


def test_an_error_leaves_no_lock(tmp_path: Path) -> None:
    """A memory that cannot be opened is not locked."""
    path = tmp_path / "memory"
    path.write_text("{")
    for _ in range(2):
        with pytest.raises(InputError, match="no valid backup"):
            Memory.open(path)
    assert [each.name for each in tmp_path.iterdir()] == ["memory"]


def backups(folder: Path) -> list[str]:
    """Return the names of all backups."""
    return sorted(path.name for path in folder.glob("*.bak"))


@pytest.mark.parametrize("most", [0, 1, 2, 3, 5])
def test_backups_in_json(most: int, tmp_path: Path) -> None:
    """Each commit keeps the state before it, and no more states than are wanted."""
    path = tmp_path / "memory.json"
    states: list[Any] = []
    with Memory.open(path, backups=most) as memory:
        for _ in range(8):
            live(memory)
            memory.commit()
            states.append(memory.to_dict())
    names = [f"memory.json.{number}.bak" for number in range(1, most + 1)]
    assert backups(tmp_path) == names
    for number, name in enumerate(names, start=1):
        assert json.loads((tmp_path / name).read_bytes()) == states[-1 - number]


def test_backups_in_sqlite(tmp_path: Path) -> None:
    """A database is copied when it is closed, unless nothing was committed."""
    path = tmp_path / "memory.db"
    states: list[Any] = []
    for number in range(5):
        with Memory.open(path, storage="sqlite", backups=3) as memory:
            if number:
                live(memory)
                memory.commit()
            states.append(memory.to_dict())
        Memory.open(path).close()
    assert backups(tmp_path) == [f"memory.db.{number}.bak" for number in (1, 2, 3)]
    for number in (1, 2, 3):
        memory = Memory.read(tmp_path / f"memory.db.{number}.bak")
        assert memory.to_dict() == states[-number]
        memory.close()
    assert {path.suffix for path in tmp_path.iterdir()} == {".db", ".bak"}


def test_a_database_is_copied_after_many_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long life makes a backup each time that so many commits were made."""
    monkeypatch.setattr(_sqlite_storage, "COMMITS_BETWEEN_BACKUPS", 20)
    with Memory.open(tmp_path / "memory.db", storage="sqlite") as memory:
        for _ in range(39):
            memory.end_cycle()
            memory.commit()
        copy = Memory.read(tmp_path / "memory.db.1.bak")
        assert copy.cycle == 20
        copy.close()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no hard links, backups are copies."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "memory.json"
    with Memory.open(path) as memory:
        for _ in range(5):
            live(memory)
            memory.commit()
    assert backups(tmp_path) == [f"memory.json.{number}.bak" for number in (1, 2, 3)]
    path.write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="restored"):
        memory = Memory.open(path)
    with memory:
        assert memory.cycle == 4
    assert (tmp_path / "memory.json.damaged").read_bytes() == b""


def test_a_commit_without_changes(tmp_path: Path) -> None:
    """Nothing is written, and no backup pushed out, if nothing has changed."""
    path = tmp_path / "memory.json"
    with Memory.open(path) as memory:
        live(memory)
        memory.commit()
        before = path.stat().st_ino
        memory.commit()
        assert (path.stat().st_ino, backups(tmp_path)) == (before, [])


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_last_backup_that_fails_is_a_warning(kind: Any, tmp_path: Path) -> None:
    """The memory is whole, and the next process can open it."""
    path = tmp_path / "memory"
    memory = Memory.open(path, storage=kind)
    memory.add("a", "1")
    memory.commit()
    # where the backup is made, there is a folder that cannot be replaced
    (tmp_path / ".memory.bak.part").mkdir()
    with pytest.warns(RuntimeWarning, match="its last backup failed"):
        memory.close()
    (tmp_path / ".memory.bak.part").rmdir()
    with Memory.open(path) as again:
        assert dict(again.working) == {"a": "1"}


def test_a_database_that_may_only_be_read_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    """Nothing is thought that could not be kept."""
    path = tmp_path / "memory"
    Memory.create(path, {}, storage="sqlite").close()
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *_, **__: database)
        with pytest.raises(OSError, match="readonly"):
            Memory.open(path)
    Memory.open(path).close()
