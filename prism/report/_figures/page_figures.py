"""The figures of one page, and what they have in common: colours and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
from markupsafe import Markup

Tooltips = list[str | alt.Tooltip]

HEIGHT = 260
"""Height of a figure without its axes, in pixels."""

BLUE, GREY = "#332288", "#8a93a0"

_WIDTH = 760
_LEGEND_ROOM, _LEGEND_ROOM_NARROW = 600, 400
_SYMBOL, _LETTER = 34, 6.2
_MOST_LABEL = 170

# Paul Tol's scheme "muted", which colour-blind readers can tell apart (SRON/EPS/TN/09-002, 2021).
_MUTED = (
    "#bbbbbb",
    "#88ccee",
    "#332288",
    "#ddcc77",
    "#cc6677",
    "#117733",
    "#aa4499",
    "#44aa99",
    "#882255",
    "#999933",
)

_CONFIG: dict[str, Any] = {
    "font": "sans-serif",
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#e8ebee",
    },
    "axisY": {"titlePadding": 8},
    "header": {"labelFontSize": 12, "title": None},
    "legend": {"labelFontSize": 12, "symbolType": "square", "labelLimit": _MOST_LABEL},
    "view": {"stroke": None},
}


# The properties of Object.prototype (ECMA-262, 20.1.3 and B.2.2). Vega looks values up in plain
# objects, which have these without being asked.
_OF_EVERY_OBJECT = frozenset(
    (
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
    )
)
_INVISIBLE = "\N{WORD JOINER}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure on a page.

    Args:
        chart: The figure.
        stretches: Whether it is as wide as the page.
    """

    chart: alt.TopLevelMixin
    stretches: bool

    def on_page(self) -> dict[str, Any]:
        """Return the figure as Vega-Lite, as wide as its place on the page."""
        if not self.stretches:
            return self._spec()

        autosize = {"type": "fit-x", "contains": "padding"}
        return {**self._spec(), "width": "container", "autosize": autosize}

    def alone(self) -> dict[str, Any]:
        """Return the figure as Vega-Lite with a width of its own, for a file."""
        width = {"width": _WIDTH} if self.stretches else {}
        return {**self._spec(), **width, "background": "white"}

    def _spec(self) -> dict[str, Any]:
        with alt.data_transformers.enable("default", max_rows=None):
            return {**_with_safe_texts(self.chart.to_dict()), "config": _CONFIG}


@dataclass(frozen=True)
class PageFigures:
    """The figures of a page, in the order in which its sections add them.

    Args:
        states: All states of all runs; each has one colour, wherever it is drawn.
        narrow: Whether runs stand side by side, with less room for each.
        by_round: Whether runs are drawn by round, since one of them has too many ticks.
        charts: Figures for the page to draw, by the ids of their places.
        drawings: Figures that are drawn already, by name.
        data: Other data for the page's script, by name.
    """

    states: Sequence[str]
    narrow: bool = False
    by_round: bool = False
    charts: dict[str, Figure] = field(default_factory=dict)
    drawings: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    def add_chart(
        self, name: str, chart: alt.TopLevelMixin, about: str, *, stretches: bool = True
    ) -> Markup:
        """Add a figure, and return the place for it on the page.

        Args:
            name: Its name, on the page and as a file.
            chart: The figure.
            about: Its description, for readers who do not see it.
            stretches: Whether it is as wide as the page.
        """
        described = chart.properties(description=about)
        self.charts[f"figure-{name}"] = Figure(described, stretches)
        return Markup('<div class="figure" id="figure-{}"></div>').format(name)

    def add_drawing(self, name: str, svg: str) -> Markup:
        """Add a figure that is drawn already, and return it for the page.

        Args:
            name: Its name as a file.
            svg: The figure.
        """
        self.drawings[name] = svg
        return Markup(svg)

    def state_colours(self, shown: Iterable[str]) -> dict[str, str]:
        """Return the colours of some states, in the order of all."""
        wanted = set(shown)
        return {name: _colour(place) for place, name in enumerate(self.states) if name in wanted}

    def colour(self, column: str, colours: Mapping[str, str], *, legend: bool = True) -> alt.Color:
        """Return colours for marks, with a legend above the figure that is no wider than it.

        Args:
            column: Column that decides on the colour.
            colours: The colour of each of its values.
            legend: Whether to explain the colours.
        """
        room = _LEGEND_ROOM_NARROW if self.narrow else _LEGEND_ROOM
        widest = _SYMBOL + min(_MOST_LABEL, _LETTER * max(map(len, colours), default=0))
        columns = max(1, min(len(colours), int(room / widest)))
        shown = alt.Legend(title=None, orient="top", columns=columns) if legend else None
        scale = alt.Scale(domain=list(colours), range=list(colours.values()))

        return alt.Color(f"{column}:N", scale=scale, sort=list(colours), legend=shown)


def _with_safe_texts(spec: Any) -> Any:
    """Mark all texts that Vega would take for what every object of JavaScript has."""
    if isinstance(spec, dict):
        return {key: _with_safe_texts(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_with_safe_texts(value) for value in spec]

    return f"{spec}{_INVISIBLE}" if isinstance(spec, str) and spec in _OF_EVERY_OBJECT else spec


def _colour(place: int) -> str:
    """Return the colour of a state: after ten they come again, darker, then lighter."""
    colour, turn = _MUTED[place % len(_MUTED)], place // len(_MUTED) % 3
    towards, part = ((0, 0.0), (0, 0.35), (255, 0.5))[turn]
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(value + (towards - value) * part):02x}" for value in parts)
