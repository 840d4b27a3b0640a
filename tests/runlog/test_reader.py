"""Finding the log of a run."""

from pathlib import Path

import pytest

from prism.errors import InputError
from prism.runlog.reader import locate_log


def test_log_of_a_folder_is_found(tmp_path: Path) -> None:
    """In a folder the plain log is found before the compressed one; a file is itself the log."""
    (tmp_path / "events.jsonl.gz").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl.gz"
    (tmp_path / "events.jsonl").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl"
    assert locate_log(str(tmp_path / "events.jsonl.gz")) == tmp_path / "events.jsonl.gz"


def test_a_missing_or_unreadable_log_is_refused(tmp_path: Path) -> None:
    """A missing file, or a folder without a log, is refused by name."""
    with pytest.raises(InputError, match=r"nowhere: there is no such file"):
        locate_log(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds no events\.jsonl, plain or \.gz: give the folder"):
        locate_log(tmp_path)
