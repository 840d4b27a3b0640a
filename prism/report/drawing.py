"""Figures: one theme in light and dark, and files as SVG, PNG and PDF with safe texts.

All drawing in prism goes through `figure_spec` and `in_format`, which clean every text first:
vl-convert ends the whole process, without an exception, at a character that XML cannot represent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import altair as alt
import vl_convert

from prism.drawing import showable

FigureFormat = Literal["svg", "png", "pdf"]
"""Format in which a figure can be saved."""

# The version of Vega-Lite that altair writes, or the newest one that vl-convert has.
_VERSIONS = vl_convert.get_vegalite_versions()
_WANTED = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
VEGA_LITE = _WANTED if _WANTED in _VERSIONS else _VERSIONS[-1]
"""Version of Vega-Lite that draws figures, both on the page and in files."""

# Paul Tol's scheme "muted", which colour-blind readers can distinguish (SRON/EPS/TN/09-002, 2021).
_MUTED = (
    "#bbbbbb", "#88ccee", "#332288", "#ddcc77", "#cc6677", "#117733", "#aa4499", "#44aa99",
    "#882255", "#999933",
)  # fmt: skip
# This much white lifts the darkest colour to a contrast of 3:1 with dark paper (WCAG 2.2, 1.4.11).
_WHITE = 0.3

# of a figure in a file: about a column of text, so that it is readable on paper and on a phone
_WIDTH = 420
_PIXELS = 2.0

_MOST_CHARACTERS = 1000


def _mixed(colour: str, towards: int, part: float) -> str:
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(value + (towards - value) * part):02x}" for value in parts)


# After ten, the colours repeat, first darker, then lighter.
CATEGORIES = [
    _mixed(each, *mixing) for mixing in ((0, 0.0), (0, 0.35), (255, 0.5)) for each in _MUTED
]
"""The colours of states and groups on light paper, in their order."""


def _theme(
    ink: str, paper: str, grid: str, line: str, blue: str, colours: list[str]
) -> dict[str, Any]:
    return {
        "font": "sans-serif",
        "numberFormat": ",.4~g",
        "background": paper,
        "mark": {"color": blue},
        "rule": {"color": line},
        "text": {"color": ink},
        "range": {"category": colours},
        "axis": {
            **{"labelColor": ink, "titleColor": ink, "titleFontWeight": "normal"},
            **{"gridColor": grid, "domainColor": line, "tickColor": line, "labelLimit": 170},
        },
        "axisX": {"grid": False},
        "legend": {
            **{"orient": "top", "title": None, "labelColor": ink, "labelLimit": 120},
            **{"symbolOpacity": 1, "symbolType": "square", "symbolLimit": 0, "columns": 5},
        },
        "header": {"title": None, "labelColor": ink, "labelFontSize": 12, "labelLimit": 300},
        "title": {"color": ink, "subtitleColor": ink, "anchor": "start"},
        "view": {"stroke": None},
    }


_PALE = [_mixed(each, 255, _WHITE) for each in CATEGORIES]

THEMES: Mapping[str, dict[str, Any]] = {
    "light": _theme("#1f2328", "#ffffff", "#e8ebee", "#888888", "#332288", CATEGORIES),
    "dark": _theme("#e6edf3", "#0d1117", "#2b323b", "#8b949e", _mixed("#332288", 255, 0.45), _PALE),
}
"""The theme of all figures, as configurations of Vega-Lite."""


def figure_spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """Return a figure as Vega-Lite without colours, as wide as its place unless it has a width."""
    with alt.data_transformers.enable("default", max_rows=None):
        # a test validates the figures against their schema, so pages need not
        spec: dict[str, Any] = clean_figure(chart.to_dict(validate=False))
    spec.pop("config", None)
    if not {"width", "facet", "concat", "hconcat", "vconcat"} & spec.keys():
        spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}

    return spec


def clean_figure(spec: Any) -> Any:
    """Return a figure, as Vega-Lite, with texts that Vega can draw.

    Characters that cannot be shown are replaced, and texts of more than 1,000 characters are cut.
    Names that differ only in these respects become the same.

    Args:
        spec: The figure, or a part of it.
    """
    if isinstance(spec, dict):
        return {showable(key): clean_figure(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [clean_figure(value) for value in spec]
    if not isinstance(spec, str):
        return spec
    text = showable(spec)

    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def draw(chart: alt.TopLevelMixin) -> str:
    """Draw a figure as SVG in the light theme, as for a file.

    Raises:
        ValueError: If it cannot be drawn.
    """
    spec = figure_spec(chart)
    if spec.get("width") == "container":
        spec |= {"width": _WIDTH, "autosize": "pad"}
    spec["config"] = THEMES["light"]
    try:
        return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    except ValueError as error:
        raise ValueError(str(error).partition("\n    at ")[0]) from error


def in_format(svg: str, format: FigureFormat) -> bytes:  # noqa: A002
    """Return the contents of a figure's file.

    Args:
        svg: The figure.
        format: ``svg``, ``png`` with two dots per pixel, or ``pdf`` with vectors and embedded
            fonts.
    """
    drawn = showable(svg)
    if format == "png":
        return vl_convert.svg_to_png(drawn, scale=_PIXELS)
    return vl_convert.svg_to_pdf(drawn) if format == "pdf" else drawn.encode()
