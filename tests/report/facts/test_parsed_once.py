"""Logs held for a report: the same tables, parsed once."""

from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from prism.analysis import RunLogs, activity, cascades, read_log, state_counts, transition_counts
from prism.report._facts.parsed_once import parsed_once


@pytest.mark.parametrize("most_bytes", [1 << 30, 60_000, 0])
def test_parsed_logs_give_the_same_tables(logs: RunLogs, most_bytes: int) -> None:
    """Every table equals that of the log, with events in memory, in files, or in both."""
    with parsed_once(logs, most_bytes) as parsed:
        for make in (state_counts, transition_counts, activity, cascades):
            assert_frame_equal(make(parsed), make(logs), check_row_order=True)
        assert (parsed.runs, parsed.notes) == (logs.runs, logs.notes)


@pytest.mark.parametrize("most_bytes", [1 << 30, 0])
def test_the_log_is_read_once(folder: Path, tmp_path: Path, most_bytes: int) -> None:
    """After the first table the log itself is not needed any more."""
    copy = tmp_path / "events.jsonl"
    copy.write_bytes((folder / "events.jsonl").read_bytes())
    with parsed_once(read_log(copy), most_bytes) as parsed:
        first = transition_counts(parsed)
        copy.unlink()
        assert_frame_equal(transition_counts(parsed), first)
        assert len(parsed.runs) == 1


def test_temporary_files_are_deleted(
    logs: RunLogs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events beyond the bytes of memory go to temporary files, which are deleted."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with parsed_once(logs, 0) as parsed:
        state_counts(parsed)
        assert list(tmp_path.rglob("*.arrow"))
    assert not list(tmp_path.iterdir())
