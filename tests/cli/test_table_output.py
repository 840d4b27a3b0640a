"""Tables as they are drawn, and as CSV, JSON and Parquet."""

from datetime import UTC, datetime
from math import inf
from pathlib import Path

import polars as pl
import pytest

from prism.cli._table_output import TableFormat, choose_format, interval_text, write

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


def test_columns_without_room_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a narrow terminal the last columns are left out, and a line says so."""
    monkeypatch.setenv("COLUMNS", "30")
    write(TABLE, TableFormat.TABLE, None, TABLE.columns)
    out = capsys.readouterr().out
    assert "of 5 columns" in out
    assert "when" not in out


def test_columns_without_room_stand_below_beside_what_rows_are_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With columns to repeat, none is left out, however narrow the terminal."""
    for width in ("30", "8"):
        monkeypatch.setenv("COLUMNS", width)
        write(TABLE, TableFormat.TABLE, None, TABLE.columns, repeated=["name"])
        out = capsys.readouterr().out
        heads = [line.split() for line in out.splitlines() if line.startswith(" name")]
        assert len(heads) > 1
        assert "left out" not in out
        assert "of 5 columns" not in out
    monkeypatch.setenv("COLUMNS", "30")


@pytest.mark.parametrize(
    ("low", "high", "difference", "drawn"),
    [
        (470.21, 512.83, 495.0, "470.2 to 512.8"),
        (494.96, 495.04, 495.0, "494.9600 to 495.0400"),
        (0.2, 1.4, 0.8, "0.200 to 1.400"),
        (-1e-4, 1.2, 0.61, "0.000 to 1.200"),
        (1_234_000.0, 1_301_000.0, 1_260_000.0, "1,234,000 to 1,301,000"),
        (1.23e-9, 4.56e-9, 3e-9, "1.23e-09 to 4.56e-09"),
        (0.3, 0.1 + 0.2, 0.3, "0.300 to 0.300"),
        (-8.0, 0.0, -2.67, "-8.00 to 0.00"),
        (0.0, 4.56e-9, 3e-9, "0 to 4.56e-09"),
        (0.0, 0.0, 0.0, "0 to 0"),
        (1.0, inf, None, "1.00 to inf"),
    ],
)
def test_an_interval_is_as_fine_as_what_lies_in_it(
    low: float, high: float, difference: float | None, drawn: str
) -> None:
    """Its ends have three digits of its width, and no fewer places than the difference."""
    assert interval_text(low, high, difference) == drawn
