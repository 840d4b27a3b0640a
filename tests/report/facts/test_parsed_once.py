"""Logs held for a report: the same tables, parsed once."""

from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from prism.analysis import RunLogs, activity, cascades, read_log, state_counts, transition_counts
from prism.report._facts.parsed_once import parsed_once


@pytest.mark.parametrize("most_bytes", [1 << 30, 60_000, 0])
def test_tables_are_the_same(logs: RunLogs, most_bytes: int) -> None:
    """Every table is that of the log itself, whether the events wait in memory, in files, or in both."""
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


def test_what_waits_in_files_is_deleted(
    logs: RunLogs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bytes that memory may hold events go to the temporary folder, and nothing of them stays there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with parsed_once(logs, 0) as parsed:
        state_counts(parsed)
        assert list(tmp_path.rglob("*.arrow"))
    assert not list(tmp_path.iterdir())
