"""The folder that a run leaves behind."""

import json
from pathlib import Path

import pytest

from prism.errors import InputError
from prism.runlog import SimulatedClock
from prism.simulation.run_folder import LOG_NAME, SUMMARY_NAME, RunFolder


def tree(path: Path) -> dict[str, bytes | None]:
    """Give everything below a folder, files with their bytes."""
    return {str(found): found.read_bytes() if found.is_file() else None for found in path.rglob("*")}


@pytest.mark.parametrize("place", [".", "new", "a/b/c"])
def test_run_is_written_into_its_folder(place: str, tmp_path: Path) -> None:
    """A folder that is empty or not there yet, however deep, receives the log and the summary and nothing else."""
    folder = RunFolder(tmp_path / place)
    with folder.open_log(SimulatedClock()) as log:
        log.logger.info("hello")
    folder.write_summary({"number": 1, "text": "é"})
    assert sorted(path.name for path in (tmp_path / place).iterdir()) == [LOG_NAME, SUMMARY_NAME]
    assert json.loads((tmp_path / place / LOG_NAME).read_bytes())["event"] == "hello"
    assert json.loads((tmp_path / place / SUMMARY_NAME).read_bytes()) == {"number": 1, "text": "é"}


def test_nothing_is_made_before_the_log_is_opened(tmp_path: Path) -> None:
    """Looking at a folder makes nothing."""
    RunFolder(tmp_path / "a" / "b")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("held", [[LOG_NAME], [SUMMARY_NAME], [LOG_NAME, SUMMARY_NAME]])
def test_folder_with_a_run_is_refused(held: list[str], tmp_path: Path) -> None:
    """A folder that holds any part of a run is refused by name and stays as it was, byte for byte."""
    for name in held:
        (tmp_path / name).write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=rf"holds a run \({', '.join(held)}\)") as refused:
        RunFolder(tmp_path)
    assert refused.value.path == str(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("file", "is a file, not a folder"),
        ("file/run", "cannot be made: .*file is a file"),
        ("file/a/b", "cannot be made: .*file is a file"),
        ("x" * 300, "cannot be written to: .*too long"),
    ],
)
def test_impossible_folder_is_refused(place: str, problem: str, tmp_path: Path) -> None:
    """A file, a place below a file, and a name that no folder can have are refused, and nothing is changed."""
    (tmp_path / "file").write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=problem):
        RunFolder(tmp_path / place)
    assert tree(tmp_path) == before


def test_folder_that_cannot_be_made_is_refused() -> None:
    """A place where the system lets nobody make a folder is refused when the log is opened, if not before."""
    with pytest.raises(InputError, match="/proc/nope/run: cannot be written to"):
        RunFolder(Path("/proc/nope/run")).open_log(SimulatedClock())


def test_run_that_came_in_between_is_not_overwritten(tmp_path: Path) -> None:
    """A log that another run began after the folder was looked at stays as it is."""
    first, second = RunFolder(tmp_path), RunFolder(tmp_path)
    with first.open_log(SimulatedClock()) as log:
        log.logger.info("first")
    with pytest.raises(InputError, match="cannot be written to: File exists"):
        second.open_log(SimulatedClock())
    assert b"first" in (tmp_path / LOG_NAME).read_bytes()
