"""Files that no command may overwrite."""

from pathlib import Path

import pytest

from prism.errors import InputError
from prism.runs._folder import refuse_own_file

OWN = ["events.jsonl", "events.jsonl.gz", "run.json", "damaged_events.jsonl", "checkpoints/round_1"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a folder that holds a run."""
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(b"log")
    (folder / "run.json").write_bytes(b"{}")
    return folder


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("is_read", [True, False])
def test_files_of_a_run_are_refused(name: str, is_read: bool, run: Path, tmp_path: Path) -> None:
    """A run's files are refused by name, whether they exist and whether the run is read."""
    reads = [run] if is_read else []
    (tmp_path / "link").symlink_to(run / name)
    for out in (run / name, run / ".." / "run" / name, tmp_path / "link"):
        with pytest.raises(InputError, match="name another file"):
            refuse_own_file(out, reads)


def test_what_is_read_is_refused_by_every_name(run: Path, tmp_path: Path) -> None:
    """A file that is read is refused under its own name, behind links and as a hard link."""
    read = tmp_path / "chart.json"
    read.write_text("{}")
    (tmp_path / "soft").symlink_to(read)
    (tmp_path / "hard").hardlink_to(read)
    (tmp_path / "log").hardlink_to(run / "events.jsonl")
    for out, reads in (("chart.json", read), ("soft", read), ("hard", read), ("log", run)):
        with pytest.raises(InputError, match="is read by this command"):
            refuse_own_file(tmp_path / out, [reads])


def test_other_files_are_not_refused(run: Path, tmp_path: Path) -> None:
    """A table beside a run's files, and files of their names elsewhere, may be written."""
    for out in (run / "states.csv", run / "run.json.csv", tmp_path / "events.jsonl"):
        refuse_own_file(out, [run])
