"""Tables as they are drawn, and as CSV, JSON and Parquet."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from prism.cli._table_output import TableFormat, choose_format, write

TABLE = pl.DataFrame(
    {
        "name": ["ada", None],
        "small": [0.000001234, 1234.5],
        "count": [1_234_567, 0],
        "options": [["a", "b"], []],
        "when": [datetime(2026, 1, 2, tzinfo=UTC), None],
    }
)


@pytest.mark.parametrize(
    ("given", "name", "chosen"),
    [
        (None, None, TableFormat.TABLE),
        (None, "x.csv", TableFormat.CSV),
        (None, "x.parquet", TableFormat.PARQUET),
        (None, "x.txt", TableFormat.TABLE),
        (TableFormat.JSON, "x.csv", TableFormat.JSON),
    ],
)
def test_format_is_the_given_one_or_that_of_the_name(
    given: TableFormat | None, name: str | None, chosen: TableFormat
) -> None:
    """The given format comes first, then the suffix of the file, then a drawn table."""
    assert choose_format(given, None if name is None else Path(name)) is chosen


def test_cells_are_drawn_for_people(tmp_path: Path) -> None:
    """Numbers have separators and three digits, times no zone, and missing values a dash."""
    write(TABLE, TableFormat.TABLE, tmp_path / "table.txt", TABLE.columns)
    text = (tmp_path / "table.txt").read_text()
    assert "1.23e-06" in text
    assert "1,234" in text
    assert "1,234,567" in text
    assert "a, b" in text
    assert "2026-01-02 00:00:00" in text
    assert "+00:00" not in text
    assert " - " in " ".join(text.split())


def test_query_and_frame_are_written_the_same(tmp_path: Path) -> None:
    """A query is written batch by batch, to the same bytes as its frame."""
    for as_format in (TableFormat.CSV, TableFormat.JSON):
        for name, table in {"frame": TABLE, "query": TABLE.lazy()}.items():
            write(table, as_format, tmp_path / name, TABLE.columns)
        assert (tmp_path / "frame").read_bytes() == (tmp_path / "query").read_bytes()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_json_is_valid_for_any_number_of_rows(rows: int, tmp_path: Path) -> None:
    """JSON is an array of objects, also without rows."""
    path = tmp_path / "table.json"
    write(TABLE.head(rows).select("name", "count"), TableFormat.JSON, path, ())
    assert json.loads(path.read_text()) == TABLE.head(rows).select("name", "count").to_dicts()


def test_columns_without_room_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a narrow terminal the last columns are left out, and a line says so."""
    monkeypatch.setenv("COLUMNS", "30")
    write(TABLE, TableFormat.TABLE, None, TABLE.columns)
    out = capsys.readouterr().out
    assert "of 5 columns" in out
    assert "when" not in out
