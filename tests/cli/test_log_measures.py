"""``prism log participation``, ``run-measures`` and others."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.kit.commands import Prism

COMMANDS = [
    ["participation"],
    ["agents"],
    ["dwell"],
    ["measured_in(1, None)"],
    ["measured_in(2, None)"],
]


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


@pytest.mark.parametrize("arguments", COMMANDS)
@pytest.mark.sampled(5)
def test_tables_are_readable_and_whole(arguments: list[str], folder: Path, log: Prism) -> None:
    """Every table fits a terminal, and Parquet has all of its columns."""
    said = log(*arguments, folder)
    assert (said.status, said.err) == (0, "")
    assert max(len(line.rstrip()) for line in said.out.splitlines()) <= 80
    assert log(*arguments, folder, "-o", "table.parquet").status == 0
    assert pl.read_parquet(log.folder / "table.parquet").height > 0


@pytest.mark.slow
def test_a_run_is_read_from_top_to_bottom(folder: Path, log: Prism) -> None:
    """A table to read has a row for each measure; other formats have one for each run."""
    said = log("run-measures", folder)
    (row,) = log("run-measures", folder, "--format", "json").rows
    lines = {line.split()[0]: line.split()[1] for line in said.out.splitlines() if line.split()[1:]}
    assert lines["posts"] == str(row["posts"])
    assert lines["browsing"] == f"{row['browsing']:.4g}"
