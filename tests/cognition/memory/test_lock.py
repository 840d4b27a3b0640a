"""One process at a time may change a memory."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.cognition._memory._memory import Memory
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
@pytest.mark.sampled(2)
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
        pytest.raises(InputError, match="is open in this process already: close it first"),
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
        with pytest.raises(InputError, match="no backup"):
            Memory.open(path)
    assert [each.name for each in tmp_path.iterdir()] == ["memory"]
