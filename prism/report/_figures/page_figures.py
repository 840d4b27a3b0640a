"""The figures of one page, and their common colours, legends, sizes and scales."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import altair as alt
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.rendering import clean_figure

INK, PAPER, GRID, AXIS = "#1f2328", "white", "#e8ebee", "#888888"
BLUE, GREY = "#332288", "#8a93a0"

# Paul Tol's scheme "muted", which colour-blind readers can distinguish (SRON/EPS/TN/09-002, 2021).
_MUTED = (
    *("#bbbbbb", "#88ccee", "#332288", "#ddcc77", "#cc6677", "#117733", "#aa4499", "#44aa99"),
    *("#882255", "#999933"),
)

DARK_PAPER = "#0d1117"
_DARK = {INK: "#e6edf3", PAPER: DARK_PAPER, GRID: "#2b323b", AXIS: "#8b949e"}

# This much white lifts the darkest colour of a state to a contrast of 3:1 with dark paper (WCAG
# 2.2, 1.4.11). All colours are lifted alike, or two shades of a colour could become the same.
_WHITE = 0.3


def colour_of(place: int) -> str:
    """Return the colour of a state. After ten, the colours repeat, first darker, then lighter.

    Args:
        place: The index of the state among all states.
    """
    colour, turn = _MUTED[place % len(_MUTED)], place // len(_MUTED) % 3
    return _mixed(colour, *((0, 0.0), (0, 0.35), (255, 0.5))[turn])


def in_dark(colour: str) -> str:
    """Return a colour as it appears on a dark page.

    Args:
        colour: ``#rrggbb``, or one of those above.
    """
    return _DARK.get(colour) or _mixed(colour, 255, _WHITE)


def dark_rules(colours: Iterable[str]) -> str:
    """Return the style sheet that draws figures in dark colours.

    Figures have their colours as attributes, which any rule of a style sheet overrides. Nothing is
    redrawn when the preference changes, and saved or printed figures keep their colours.

    Args:
        colours: The colours that figures use.
    """
    return "\n".join(
        f'.picture [{name}="{colour}"] {{ {name}: {in_dark(colour)}; }}'
        for colour in dict.fromkeys((*_DARK, *colours))
        for name in ("fill", "stroke")
    )


def _mixed(colour: str, towards: int, part: float) -> str:
    parts = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(value + (towards - value) * part):02x}" for value in parts)


def tips(*shown: str | tuple[str, ...]) -> list[alt.Tooltip]:
    """Return the tooltip that a reader sees when pointing at a mark.

    Args:
        shown: Columns, with their format and title if needed.
    """
    # altair would derive the class from a bare name, but takes 15 ms for each
    return [_tip(*((each,) if isinstance(each, str) else each)) for each in shown]


def _tip(column: str, *about: str) -> alt.Tooltip:
    options: dict[str, Any] = dict(zip(("format", "title"), about, strict=False))
    return alt.Tooltip(column, **options)


HEIGHT = 260
"""Height of a figure without its axes, in pixels."""

_WIDTH = 760
_LEGEND_ROOM = 600
_SYMBOL, _LETTER = 34, 6.2
_MOST_LABEL = 170
_AXIS_ROOM = 34

_CONFIG: dict[str, Any] = {
    "font": "sans-serif",
    "axis": {
        "labelFontSize": 11,
        "labelSeparation": 4,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": AXIS,
        "tickColor": AXIS,
    },
    "axisY": {"titlePadding": 8},
    "header": {"labelFontSize": 12, "title": None, "labelColor": INK},
    "title": {"color": INK, "subtitleColor": INK},
    "view": {"stroke": None},
}


def styled(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a separate figure with the fonts and colours of a report."""
    # it names its few colours in full, where the states of a report may be many
    config = {**spec.get("config", {}), **_CONFIG, "legend": {**_LEGEND, "labelLimit": 0}}
    return {**spec, "config": config, "background": PAPER}


_LEGEND: dict[str, Any] = {
    "orient": "top",
    "title": None,
    "labelColor": INK,
    "labelFontSize": 12,
    "labelLimit": _MOST_LABEL,
    "symbolType": "square",
    # a band is drawn faintly, which its colour must not be here
    "symbolOpacity": 1,
    "columnPadding": 24,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure on a page.

    Args:
        spec: The figure as Vega-Lite.
        stretches: Whether it is as wide as the page.
        axis: Minimum width of the labels of its vertical axis, in pixels, which aligns figures side
            by side.
    """

    spec: dict[str, Any]
    stretches: bool
    axis: int = 0

    @property
    def legend(self) -> Mapping[str, str]:
        """The colours that the figure explains, by their meanings."""
        parts = (self.spec, *self.spec.get("layer", ()))
        colours = [part.get("encoding", {}).get("color", {}) for part in parts]
        told = [colour for colour in colours if colour.get("legend", True) is not None]
        scale: dict[str, Any] = next((colour["scale"] for colour in told if "scale" in colour), {})
        return dict(zip(scale.get("domain", ()), scale.get("range", ()), strict=True))

    def on_page(self) -> dict[str, Any]:
        """Return the figure as Vega-Lite, as wide as its place on the page.

        The page writes the legend itself, which can then wrap and scroll. Changes for saving the
        figure from the page are under ``usermeta``, which Vega-Lite ignores.
        """
        width: dict[str, Any] = {}
        if self.stretches:
            width = {
                "width": "container",
                "autosize": {"type": "fit-x", "contains": "padding"},
            }

        alone: dict[str, Any] = {
            "config": self._alone_config(),
            "background": "white",
            "autosize": "pad",
        }
        if self.stretches:
            alone["width"] = _WIDTH

        config = {**self._config(), "legend": {"disable": True}}
        usermeta = {"alone": alone, "legend": list(self.legend.items())}

        return {
            **clean_figure(self.spec),
            **width,
            "background": None,
            "config": config,
            "usermeta": usermeta,
        }

    def alone(self) -> dict[str, Any]:
        """Return the figure as Vega-Lite with its own width and legend, for a file."""
        width = {"width": _WIDTH} if self.stretches else {}
        return {
            **clean_figure(self.spec),
            **width,
            "config": self._alone_config(),
            "background": "white",
        }

    def _config(self) -> dict[str, Any]:
        return {**_CONFIG, "axisY": {**_CONFIG["axisY"], "minExtent": self.axis}}

    def _alone_config(self) -> dict[str, Any]:
        return {**self._config(), "legend": {**_LEGEND, "columns": _columns(self.legend)}}


@dataclass(frozen=True)
class PageFigures:
    """The figures of a page, in the order in which its sections add them.

    Args:
        states: All states of all runs. Each has the same colour in every figure.
        narrow: Whether runs are side by side, with less room for each.
        by_round: Whether to draw runs by round, because one of them has too many ticks.
        runs: The facts of the runs that are side by side.
        charts: Figures for the page to draw, by the ids of their elements.
        drawings: Figures that have already been drawn, by name.
        data: Other data for the page's script, by name.
        used: The colours that were used.
    """

    states: Sequence[str]
    narrow: bool = False
    by_round: bool = False
    runs: Sequence[RunFacts] = ()
    charts: dict[str, Figure] = field(default_factory=dict)
    drawings: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @property
    def unit(self) -> str:
        """The name of a round, if it is the same in all runs."""
        units = {run.unit for run in self.runs}
        return units.pop() if len(units) == 1 else "round"

    def add_chart(
        self, name: str, chart: alt.TopLevelMixin, about: str, *, stretches: bool = True
    ) -> Markup:
        """Add a figure, and return the element for it on the page.

        Args:
            name: Its name, on the page and as a file.
            chart: The figure.
            about: Its description, for readers who cannot see it.
            stretches: Whether it is as wide as the page.
        """
        with alt.data_transformers.enable("default", max_rows=None):
            # a test validates the figures against their schema, so pages need not
            spec = chart.properties(description=about).to_dict(validate=False)

        axis_room = _AXIS_ROOM if self.narrow else 0
        self.charts[f"figure-{name}"] = Figure(spec, stretches, axis_room)

        return Markup(
            '<div class="picture"><div class="figure" id="figure-{}"></div></div>'
        ).format(name)

    def add_drawing(self, name: str, svg: str) -> Markup:
        """Add a figure that has already been drawn, and return it for the page.

        Args:
            name: Its name as a file.
            svg: The figure.
        """
        self.drawings[name] = svg
        return Markup(svg)

    def share_scales(self) -> None:
        """Give figures that are side by side the same scales and legends."""
        kinds: dict[str, list[dict[str, Any]]] = {}
        for name, figure in self.charts.items():
            # The number of the run follows the first hyphen after the kind of figure.
            _, kind, _run, *part = name.split("-")
            kinds.setdefault("-".join([kind, *part]), []).append(figure.spec)

        for specs in kinds.values():
            share_scales(specs, self.states)

    def state_colours(self, shown: Iterable[str]) -> dict[str, str]:
        """Return the colours of some states, in the order of all states."""
        wanted = set(shown)
        return {name: colour_of(place) for place, name in enumerate(self.states) if name in wanted}

    def colour(self, column: str, colours: Mapping[str, str], *, legend: bool = True) -> alt.Color:
        """Return colours for marks.

        Args:
            column: Column that determines the colour.
            colours: The colour of each of its values.
            legend: Whether to explain the colours.
        """
        self.used.update(colours.values())
        scale = alt.Scale(domain=list(colours), range=list(colours.values()))
        if not legend:
            return alt.Color(f"{column}:N", scale=scale, sort=list(colours), legend=None)

        return alt.Color(f"{column}:N", scale=scale, sort=list(colours), title=None)

    def dark_rules(self) -> str:
        """Return the style sheet for readers who prefer dark pages."""
        return dark_rules([BLUE, GREY, *sorted(self.used)])


def _columns(legend: Mapping[str, str]) -> int:
    """Return the columns of a legend that is no wider than its figure."""
    widest = _SYMBOL + min(_MOST_LABEL, _LETTER * max(map(len, legend), default=0))
    return max(1, min(len(legend), int(_LEGEND_ROOM / widest)))


Spec = dict[str, Any]

_POSITIONS = ("x", "y")
_SIZES = ("size",)


def share_scales(specs: Sequence[Spec], states: Sequence[str]) -> None:
    """Give figures the same axes, sizes and colours, so that they can be compared by eye.

    Figures whose axes mean different things (rounds and ticks, say), axes of real time, and the
    small figures of a facet keep their own.

    Args:
        specs: Figures of one kind as Vega-Lite, one for each run; changed in place.
        states: All states, in the order of their legends and rows.
    """
    if len(specs) < 2:
        return

    for channel in (*_POSITIONS, *_SIZES):
        for alike in _by_title(specs, channel):
            _share_axis(alike, channel, states)

    _share_colours(list(_colours(specs)), states)


def _by_title(specs: Sequence[Spec], channel: str) -> Iterator[list[Spec]]:
    """Yield the figures whose axes have one title, and so one meaning."""
    groups: dict[Any, list[Spec]] = {}
    for spec in specs:
        titles = (encoding.get("title") for encoding in _encodings(spec, channel))
        groups.setdefault(next((title for title in titles if title), None), []).append(spec)

    yield from (group for group in groups.values() if len(group) > 1)


def _share_axis(specs: Sequence[Spec], channel: str, states: Sequence[str]) -> None:
    parts = [(spec, encoding) for spec in specs for encoding in _encodings(spec, channel)]
    kinds = {encoding.get("type") for _, encoding in parts}
    if kinds == {"quantitative"}:
        _share_numbers(parts, channel)
    elif kinds == {"nominal"}:
        _share_names([encoding for _, encoding in parts], states)


def _encodings(spec: Spec, channel: str) -> Iterator[Spec]:
    for part in (spec, *spec.get("layer", ())):
        found = part.get("encoding", {}).get(channel, {})
        # positions in a world need not be compared
        if "field" in found and found.get("axis", {}) is not None:
            yield found


def _colours(specs: Sequence[Spec]) -> Iterator[Spec]:
    for spec in specs:
        yield from _encodings(spec, "color")


def _share_numbers(parts: Sequence[tuple[Spec, Spec]], channel: str) -> None:
    ends = [end for spec, encoding in parts for end in _ends(spec, encoding, channel)]
    if not ends:
        return

    labels = max((encoding.get("axis", {}).get("values", []) for _, encoding in parts), key=_last)
    for _, encoding in parts:
        encoding["scale"] = {**(encoding.get("scale") or {}), "domain": [min(ends), max(ends)]}
        if labels:
            encoding["axis"] = {**encoding.get("axis", {}), "values": labels}


def _last(labels: Sequence[float]) -> float:
    return labels[-1] if labels else float("-inf")


def _ends(spec: Spec, encoding: Spec, channel: str) -> Iterator[float]:
    """Return the numbers that an axis must reach."""
    scale = encoding.get("scale") or {}
    if "domain" in scale:
        yield from scale["domain"]
        return

    if scale.get("zero"):
        yield 0

    others = (other["field"] for other in _encodings(spec, f"{channel}2"))
    yield from _values(spec, {encoding["field"], *others})


def _values(spec: Spec, fields: Set[str]) -> Iterator[float]:
    rows = (row for rows in spec.get("datasets", {}).values() for row in rows)
    yield from (row[field] for row in rows for field in fields if row.get(field) is not None)


def _share_names(encodings: Sequence[Spec], states: Sequence[str]) -> None:
    named = {name for encoding in encodings for name in encoding.get("sort") or ()}
    domain = [state for state in states if state in named]
    for encoding in encodings:
        encoding["scale"] = {**(encoding.get("scale") or {}), "domain": domain}


def _share_colours(encodings: Sequence[Spec], states: Sequence[str]) -> None:
    colours: dict[str, str] = {}
    for encoding in encodings:
        scale = encoding.get("scale", {})
        colours |= dict(zip(scale.get("domain", ()), scale.get("range", ()), strict=True))

    places = {state: place for place, state in enumerate(states)}
    order = sorted(colours, key=lambda name: places.get(name, len(places)))
    for encoding in encodings:
        encoding["sort"] = order
        encoding["scale"] = {"domain": order, "range": [colours[name] for name in order]}
