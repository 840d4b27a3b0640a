"""What lies beside a memory: its lock, and its backups."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.programs.thinking import Memory
from tests.kit import processes
from tests.programs.thinking.memory.living import live

ROOT = Path(__file__).parents[4]


def start(path: Path) -> subprocess.Popen[str]:
    """Start a process that lives on a memory, and wait until it has begun."""
    line = [sys.executable, "-m", "tests.programs.thinking.memory.living", str(path)]
    process = processes.start(line, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    return process


def test_two_processes(tmp_path: Path) -> None:
    """The second is refused with the number of the first, until that ends, however it does."""
    path = tmp_path / "memory"
    with start(path) as process:
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


@pytest.mark.slow
def test_reading_while_another_process_writes(tmp_path: Path) -> None:
    """Readers see complete states, each later than the one before."""
    path = tmp_path / "memory"
    expected = Memory.in_memory()
    with start(path) as process:
        try:
            assert process.stdout is not None
            for _ in range(12):
                process.stdout.readline()
                memory = Memory.read(path)
                while expected.cycle < memory.cycle:
                    live(expected)
                assert memory.to_dict() == expected.to_dict()
                memory.close()
        finally:
            process.kill()
    assert expected.cycle > 12


def test_in_one_process(tmp_path: Path) -> None:
    """Also within a process a memory can be open once, and again when it was closed."""
    path = tmp_path / "memory"
    with (
        Memory.open(path),
        pytest.raises(InputError, match="is already open in this process: close it first"),
    ):
        Memory.open(path)
    Memory.open(path).close()


def test_a_closed_memory_writes_nothing(tmp_path: Path) -> None:
    """Whoever goes on with a memory that was closed is told, and undoes nothing of the next one."""
    path = tmp_path / "memory"
    with Memory.open(path) as closed:
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
