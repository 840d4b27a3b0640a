"""What the figures of a page have in common."""

import altair as alt
import polars as pl

from prism.report._figures.page_figures import Figure, PageFigures


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


def legend_of(names: dict[str, str]) -> Figure:
    """Make a figure with a legend of these names."""
    figures = PageFigures(tuple(names))
    coloured = chart().encode(color=figures.colour("state", names))
    figures.add_chart("x-1", coloured, "Some points")
    return figures.charts["figure-x-1"]


def test_a_saved_legend_is_not_wider_than_its_figure() -> None:
    """The longer the names, the fewer columns the legend of a saved figure has."""
    names = {f"a rather long name of a state {number}": "#000000" for number in range(20)}
    assert legend_of(names).alone()["config"]["legend"]["columns"] in (2, 3)
    assert legend_of({"a": "#000000", "b": "#ffffff"}).alone()["config"]["legend"]["columns"] == 2


def test_the_page_writes_the_legend_itself() -> None:
    """On the page a figure draws no legend but says what its colours mean; a file has it."""
    figure = legend_of({"a": "#000000", "b": "#ffffff"})
    shown = figure.on_page()
    assert shown["config"]["legend"] == {"disable": True}
    assert shown["usermeta"]["legend"] == [("a", "#000000"), ("b", "#ffffff")]
    assert shown["usermeta"]["alone"]["config"] == figure.alone()["config"]
    assert figure.alone()["config"]["legend"]["orient"] == "top"
    assert not legend_of({}).legend


def test_a_figure_takes_the_width_of_its_place() -> None:
    """A figure stretches on the page and has a width in a file, unless it does not stretch."""
    figures = PageFigures(())
    markup = figures.add_chart("x-1", chart(), "Some points")
    assert '<div class="figure" id="figure-x-1"></div>' in markup
    figure = figures.charts["figure-x-1"]
    assert figure.on_page()["width"] == "container"
    assert figure.alone()["width"] == figure.on_page()["usermeta"]["alone"]["width"] > 100
    assert figure.on_page()["description"] == "Some points"
    figures.add_chart("y-1", chart(), "Some points", stretches=False)
    assert "width" not in figures.charts["figure-y-1"].on_page()


def test_figures_of_one_kind_share_their_scales() -> None:
    """Figures that differ only in the number of their run get one scale; others keep theirs."""
    figures = PageFigures((), narrow=True)
    for name, most in (("x-1", 2), ("x-2", 9), ("x-2-1", 30), ("y-1", 50)):
        drawn = alt.Chart(pl.DataFrame({"x": [1, most]})).mark_point().encode(x="x:Q")
        figures.add_chart(name, drawn, "Some points")
    figures.share_scales()
    scales = {
        name: figure.spec["encoding"]["x"].get("scale") for name, figure in figures.charts.items()
    }
    assert scales == {
        "figure-x-1": {"domain": [1, 9]},
        "figure-x-2": {"domain": [1, 9]},
        "figure-x-2-1": None,
        "figure-y-1": None,
    }
