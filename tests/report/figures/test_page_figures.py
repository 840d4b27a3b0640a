"""What the figures of a page have in common."""

import altair as alt
import polars as pl

from prism.report._figures.page_figures import PageFigures


def chart() -> alt.Chart:
    """Make a small figure."""
    return alt.Chart(pl.DataFrame({"x": [1, 2]})).mark_point().encode(x="x:Q")


def test_a_state_has_one_colour() -> None:
    """A state's colour depends on its place among all states, not on what else is in the figure."""
    figures = PageFigures(("idle", "busy", "done"))
    alone, together = (
        figures.state_colours(["done"]),
        figures.state_colours(["done", "idle", "done"]),
    )
    assert alone["done"] == together["done"]
    assert list(together) == ["idle", "done"]


def test_thirty_states_have_thirty_colours() -> None:
    """The first thirty states have distinct colours; then the colours repeat."""
    names = [f"state {number}" for number in range(31)]
    colours = list(PageFigures(tuple(names)).state_colours(names).values())
    assert len(set(colours[:30])) == 30
    assert colours[30] == colours[0]
    assert all(len(colour) == 7 and int(colour[1:], 16) >= 0 for colour in colours)


def test_a_legend_is_not_wider_than_its_figure() -> None:
    """The longer the names, the fewer columns a legend has; fewer with runs side by side."""
    names = {f"a rather long name of a state {number}": "#000000" for number in range(20)}
    wide, narrow = (
        PageFigures(tuple(names), narrow=narrow).colour("state", names).to_dict()
        for narrow in (False, True)
    )
    assert wide["legend"]["columns"] == 2 or wide["legend"]["columns"] == 3
    assert narrow["legend"]["columns"] < wide["legend"]["columns"]
    few = PageFigures(("a", "b")).colour("state", {"a": "#000000", "b": "#ffffff"}).to_dict()
    assert few["legend"]["columns"] == 2


def test_a_figure_takes_the_width_of_its_place() -> None:
    """A figure stretches on the page and has a width in a file, unless it does not stretch."""
    figures = PageFigures(())
    markup = figures.add_chart("x-1", chart(), "Some points")
    assert markup == '<div class="figure" id="figure-x-1"></div>'
    figure = figures.charts["figure-x-1"]
    assert figure.on_page()["width"] == "container"
    assert figure.alone()["width"] > 100
    assert figure.on_page()["description"] == "Some points"
    figures.add_chart("y", chart(), "Some points", stretches=False)
    assert "width" not in figures.charts["figure-y"].on_page()
