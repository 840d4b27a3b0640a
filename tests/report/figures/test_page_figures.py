"""The figures of a page, their legends, and the scales that they share."""

from typing import Any

import altair as alt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.report._figures.page_figures import Figure, PageFigures, share_scales


def chart() -> alt.Chart:
    """Make a small figure."""
    return alt.Chart(pl.DataFrame({"x": [1, 2]})).mark_point().encode(x="x:Q")


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


Spec = dict[str, Any]


def bars(rows: list[tuple[float, float]], **scale: Any) -> Spec:
    """Make a figure of bars from one number to another."""
    y = {"field": "low", "type": "quantitative", "title": "agents", "scale": scale}
    data = [{"low": low, "high": high} for low, high in rows]
    return {"encoding": {"y": y, "y2": {"field": "high"}}, "datasets": {"data": data}}


def domain(spec: Spec, channel: str = "y") -> Any:
    return spec["encoding"][channel].get("scale", {}).get("domain")


@given(
    st.lists(
        st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)), min_size=1),
        min_size=2,
        max_size=4,
    )
)
def test_an_axis_reaches_the_ends_of_all_figures(tables: list[list[tuple[float, float]]]) -> None:
    """The axis of every figure reaches from the least number of any to the greatest."""
    specs = [bars(rows) for rows in tables]
    share_scales(specs, ())
    numbers = [number for rows in tables for row in rows for number in row]
    assert [domain(spec) for spec in specs] == [[min(numbers), max(numbers)]] * len(specs)


@pytest.mark.parametrize(
    "change",
    [
        {"title": "another axis"},
        {"type": "temporal"},
    ],
)
def test_axes_of_different_meaning_stay_apart(change: Spec) -> None:
    """Axes of different titles, and those of real time, keep their own scales."""
    specs = [bars([(0, 1)]), bars([(0, 2)])]
    specs[1]["encoding"]["y"].update(change)
    share_scales(specs, ())
    assert [domain(spec) for spec in specs] == [None, None]


def test_labels_of_the_longest_axis_are_taken() -> None:
    """Numbers written on an axis are those of the axis that reaches furthest."""
    specs = [bars([(1, 3)]), bars([(1, 9)])]
    for spec, values in zip(specs, ([1, 2, 3], [2, 4, 6, 8]), strict=True):
        spec["encoding"]["y"]["axis"] = {"values": values, "format": ",d"}
    share_scales(specs, ())
    assert specs[0]["encoding"]["y"]["axis"] == {"values": [2, 4, 6, 8], "format": ",d"}


def test_rows_and_legends_have_the_names_of_all_figures() -> None:
    """Rows and colours are those of all figures together, in the order of the states."""
    specs: list[Spec] = []
    for names in (["a", "c"], ["b", "c"]):
        colours = {"domain": names, "range": [f"#{name}" for name in names]}
        encoding = {
            "y": {"field": "state", "type": "nominal", "sort": names},
            "color": {"field": "state", "type": "nominal", "scale": colours},
        }
        specs.append({"encoding": encoding})
    share_scales(specs, ("a", "b", "c", "d"))
    for spec in specs:
        assert domain(spec) == ["a", "b", "c"]
        assert domain(spec, "color") == ["a", "b", "c"]
        assert spec["encoding"]["color"]["scale"]["range"] == ["#a", "#b", "#c"]
