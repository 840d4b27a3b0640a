"""Finding the log of a run."""

from pathlib import Path

from prism.runlog.reader import locate_log


def test_log_of_a_folder_is_found(tmp_path: Path) -> None:
    """In a folder the plain log is found before the compressed one; a file is itself the log."""
    (tmp_path / "events.jsonl.gz").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl.gz"
    (tmp_path / "events.jsonl").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl"
    assert locate_log(str(tmp_path / "events.jsonl.gz")) == tmp_path / "events.jsonl.gz"
