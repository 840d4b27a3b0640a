"""``prism chart export`` as pictures for papers and slides, which take an extra."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.commands import Prism

pytest.importorskip("prism.report")

BEGINS = {"pdf": b"%PDF-", "png": b"\x89PNG"}


@pytest.fixture
def charts(prism: Prism, charts_folder: Path) -> Prism:
    """Return ``prism chart export`` of a chart in its folder."""
    return replace(prism, group=("chart", "export", "doors.json"))


@pytest.mark.parametrize("picture", BEGINS)
def test_export_draws_a_picture(picture: str, charts: Prism) -> None:
    """A picture goes to a file or to standard output; a PDF brings the fonts of its text."""
    to_file = charts("--format", picture, "-o", f"doors.{picture}")
    assert (to_file.status, to_file.stdout, to_file.err) == (0, b"", "")
    written = (charts.folder / f"doors.{picture}").read_bytes()
    for found in (written, charts("--format", picture).stdout):
        assert found.startswith(BEGINS[picture])
        assert (b"/FontFile" in found) is (picture == "pdf")


def test_a_picture_does_not_replace_the_chart(charts: Prism) -> None:
    """The file that the chart is read from is refused, and stays as it was."""
    before = (charts.folder / "doors.json").read_bytes()
    ran = charts("--format", "pdf", "-o", "doors.json")
    assert ran.status == 2
    assert "doors.json" in ran.err
    assert (charts.folder / "doors.json").read_bytes() == before
