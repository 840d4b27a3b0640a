"""Pages of sections: a heading, figures and a table, for reports and comparisons."""

from pathlib import Path

import altair as alt
import pytest

from prism.errors import InputError
from prism.report import FigureFormat, Page, Section

ROWS = [
    {"name": "<b>", "share": 0.25, "count": 1234},
    {"name": "toString", "share": None, "count": 2},
]


def lines() -> alt.Chart:
    """Return a figure without colours and width, which the page sets."""
    data = alt.InlineData(values=ROWS)
    return alt.Chart(data).mark_bar().encode(alt.X("count:Q"), alt.Y("name:N"))


@pytest.fixture
def made() -> Page:
    """Return a page of a figure, a drawing and a table."""
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><text>drawn</text></svg>'
    parts = [
        Section("What we saw", "Read it so.", {"lines": lines(), "drawing": drawing}, ROWS, most=1),
        Section("Nothing"),
    ]
    return Page("A & B", parts, subtitle="2 runs", notes=["a note"], sources=["here"])


def test_a_page_has_its_sections_and_the_rows_of_their_tables(made: Page) -> None:
    """Texts are escaped, numbers exact in an attribute, and empty sections left out."""
    html = made.html()
    assert "<h1>A &amp; B</h1>" in html
    assert html.count("<h2 ") == 1
    assert '<a href="#what-we-saw">What we saw</a>' in html
    assert '<td class="">&lt;b&gt;</td><td class="number" data-value="0.25">25.0%</td>' in html
    assert '<td class="number" data-value="1234">1,234</td>' in html
    assert "1 of 2 are shown." in html
    assert "<li>a note</li>" in html


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figures_are_files(made: Page, tmp_path: Path, kind: FigureFormat) -> None:
    """Each figure is a file of its name, also with names that Vega would take for its own."""
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[kind]
    paths = made.save_figures(tmp_path / "figures", kind)
    assert [path.name for path in paths] == [f"lines.{kind}", f"drawing.{kind}"]
    assert all(path.read_bytes().startswith(begins) for path in paths)


def test_a_figure_that_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    """The message has the name of the figure."""
    broken = lines().transform_calculate(wrong="datum.(")
    with pytest.raises(InputError, match="the figure broken cannot be drawn"):
        Page("A", [Section("B", figures={"broken": broken})]).save_figures(tmp_path)
