"""A diagram of a chart as SVG, drawn without any other program.

The picture brings its own colours, for light and dark surroundings; a page may set others by the
CSS variables ``--chart-ink``, ``--chart-paper``, ``--chart-box``, ``--chart-line`` and
``--chart-accent``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import sqrt
from textwrap import wrap
from unicodedata import category, east_asian_width

from prism.drawing._diagram import Arrow, Diagram, showable
from prism.drawing._layout import Box, Layout, Link, Placed, Point, Route, lay_out
from prism.errors import DefinitionError

_SIZE, _SMALL = 13.0, 11.0
_LINE, _SMALL_LINE = 17.0, 14.0
_MARGIN = 14.0
_MOST_BOX_CHARACTERS, _MOST_BOX_LINES = 22, 4
_MOST_LABEL_CHARACTERS, _MOST_LABEL_LINES = 44, 6
_THINNEST, _THICKEST = 1.3, 7.0
_LOOP = 26.0
_MARK = 46.0

_LIGHT = {
    "ink": "#1f2328",
    "paper": "#ffffff",
    "box": "#f0f3f6",
    "line": "#6e7781",
    "accent": "#8250df",
}
_DARK = {
    "ink": "#e6edf3",
    "paper": "#0d1117",
    "box": "#1c232c",
    "line": "#8b949e",
    "accent": "#b58cff",
}

_STYLE = """
.prism-chart text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: INK; }
.prism-chart .paper { fill: PAPER; }
.prism-chart .box { fill: BOX; stroke: LINE; stroke-width: 1.3; }
.prism-chart .decision { stroke: ACCENT; stroke-width: 2.4; }
.prism-chart .mark { fill: ACCENT; }
.prism-chart .rest { stroke-dasharray: 4 3; fill: none; }
.prism-chart .line { fill: none; stroke: LINE; }
.prism-chart .head, .prism-chart .start { fill: LINE; }
.prism-chart .idle { opacity: 0.45; stroke-dasharray: 3 3; }
.prism-chart .small { font-size: 11px; }
.prism-chart .name { font-size: 13px; font-weight: 600; }
.prism-chart .count { font-size: 11px; font-weight: 700; }
"""


def draw_svg(outline: Diagram, traffic: Mapping[tuple[str, str], int] | None = None) -> str:
    """Draw a diagram of states and moves.

    Decision states have a thick border and a diamond, the initial state an arrow from a dot. With
    traffic, an arrow is the wider the more often its moves were made, and says how often; one that
    was never used is faint. Moves that were made but that the outline does not have get arrows
    without triggers.

    Args:
        outline: What to draw; ``chart.to_svg()`` draws a chart itself.
        traffic: How often each move (source, target) was made.

    Returns:
        One ``<svg>`` element, ready for a file or for a page.

    Raises:
        DefinitionError: (a ValueError) if the traffic names a state that the outline does not have.
    """
    counted = None if traffic is None else _Traffic(outline, traffic)
    return _Picture(outline, counted).svg()


class _Traffic:
    """How often each arrow was used; an arrow from every other state counts what no other arrow explains."""

    def __init__(self, outline: Diagram, traffic: Mapping[tuple[str, str], int]) -> None:
        unknown = sorted({end for ends in traffic for end in ends} - set(outline.states))
        if unknown:
            raise DefinitionError(
                f"the traffic names {', '.join(map(repr, unknown))}, not among the states: add them"
            )

        drawn = {(arrow.source, arrow.target) for arrow in outline.arrows}
        self._counts: dict[tuple[str | None, str], int] = {}
        self.unexplained: list[Arrow] = []

        for (source, target), count in traffic.items():
            explained = [end for end in (source, None) if (end, target) in drawn]
            key = ((explained or [source])[0], target)
            self._counts[key] = self._counts.get(key, 0) + count
            if not explained and count:
                self.unexplained.append(Arrow(source, target))

        self._most = max(self._counts.values(), default=0) or 1

    def of(self, arrow: Arrow) -> int:
        """Return how often an arrow was used."""
        return self._counts.get((arrow.source, arrow.target), 0)

    def width(self, arrow: Arrow) -> float:
        """Return the width of an arrow in pixels: its area, not its width, is what is seen, hence the root."""
        return _THINNEST + (_THICKEST - _THINNEST) * sqrt(self.of(arrow) / self._most)


@dataclass(frozen=True, slots=True)
class _Text:
    """Lines of text and the room they need."""

    lines: tuple[str, ...]
    classes: tuple[str, ...]
    full: str = ""
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        sizes = [_SIZE if name == "name" else _SMALL for name in self.classes]
        widths = [text_width(line) * size for line, size in zip(self.lines, sizes, strict=True)]
        object.__setattr__(self, "width", max(widths, default=0.0))
        object.__setattr__(self, "height", sum(map(_line_height, self.classes)))

    def at(self, x: float, y: float, anchor: str = "middle") -> str:
        """Write the lines with their middle at a height, about or beside a place."""
        parts = []
        top = y - self.height / 2
        for line, name in zip(self.lines, self.classes, strict=True):
            height = _line_height(name)
            parts.append(
                f'<text class="{name}" x="{x:.1f}" y="{top + height * 0.76:.1f}" text-anchor="{anchor}">'
                f"{escape(line, quote=False)}</text>"
            )
            top += height

        return "".join(parts)


def _line_height(name: str) -> float:
    return _LINE if name == "name" else _SMALL_LINE


def text_width(text: str) -> float:
    """Estimate the width of a line in ems, on the generous side: nobody knows the font it will be drawn in."""
    return sum(map(_character_width, text)) * 1.06


def _character_width(character: str) -> float:
    if character in "iljtfrI.,:;'|!()[] ":
        return 0.36
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05

    return 0.86 if character in "mwMW@%—" else 0.7 if character.isupper() else 0.6


class _Picture:
    """One picture in the making."""

    def __init__(self, outline: Diagram, traffic: _Traffic | None) -> None:
        self._outline = outline
        self._traffic = traffic
        self._numbers = {state: number for number, state in enumerate(outline.states)}
        self._loops: dict[str, tuple[Arrow, _Text]] = {}
        self._arrows: list[Arrow] = []

        for arrow in (*outline.arrows, *(traffic.unexplained if traffic else ())):
            if arrow.source == arrow.target:
                self._loops[arrow.target] = (arrow, self._label(arrow))
            else:
                self._arrows.append(arrow)

        self._labels = [self._label(arrow) for arrow in self._arrows]
        self._names = [_name_of(outline, state) for state in outline.states]
        self._has_rest = any(arrow.source is None for arrow in self._arrows)
        self._rest = _Text(("every other state",), ("small",))

    def svg(self) -> str:
        """Draw it."""
        layout, places = self._laid_out()
        legend = self._legend()
        width = max(layout.width, legend.width) + 2 * _MARGIN
        height = layout.height + 2 * _MARGIN + (legend.height + 10 if legend.lines else 0)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="prism-chart" role="img" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width: 100%; height: auto">',
            _title(self._outline.name),
            f"<style>{_styles()}</style>",
            f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="6"/>',
            f'<g transform="translate({(width - layout.width) / 2:.1f} {_MARGIN:.0f})">',
            *self._drawn_arrows(layout),
            *self._drawn_boxes(places),
            "</g>",
            legend.at(_MARGIN, height - _MARGIN - legend.height / 2, "start"),
            "</svg>",
        ]

        return "\n".join(filter(None, parts)) + "\n"

    def _laid_out(self) -> tuple[Layout, dict[str, Placed]]:
        """Place everything; the dot of the initial state and the box for all other states come first."""
        extra = [Box(10, 10)] * (self._outline.initial is not None)
        extra += [Box(self._rest.width + 22, 24)] * self._has_rest
        links = [
            Link(
                len(extra) - 1
                if arrow.source is None
                else len(extra) + self._numbers[arrow.source],
                len(extra) + self._numbers[arrow.target],
                label.width + 8 if label.lines else 0,
                label.height,
            )
            for arrow, label in zip(self._arrows, self._labels, strict=True)
        ]
        if self._outline.initial is not None:
            links.append(Link(0, len(extra) + self._numbers[self._outline.initial]))

        boxes = [
            self._box(state, name)
            for state, name in zip(self._outline.states, self._names, strict=True)
        ]
        layout = lay_out([*extra, *boxes], links)

        return layout, dict(zip(self._outline.states, layout.boxes[len(extra) :], strict=True))

    def _box(self, state: str, name: _Text) -> Box:
        loop = self._loops.get(state)
        beside = 0.0 if loop is None else _LOOP + 6 + loop[1].width
        height = max(name.height + 14, loop[1].height if loop else 0)
        width = name.width + (_MARK if state in self._outline.decision_states else 26)
        return Box(max(width, 64.0), height, beside)

    def _label(self, arrow: Arrow) -> _Text:
        lines = [_shortened(showable(label), _MOST_LABEL_CHARACTERS) for label in arrow.labels]
        if len(lines) > _MOST_LABEL_LINES:
            lines[_MOST_LABEL_LINES - 1 :] = [f"and {len(lines) - _MOST_LABEL_LINES + 1} more"]

        classes = ["small"] * len(lines)
        if self._traffic is not None:
            lines.append(f"{self._traffic.of(arrow):,}\N{MULTIPLICATION SIGN}")
            classes.append("count")

        source = "every other state" if arrow.source is None else arrow.source

        return _Text(
            tuple(lines), tuple(classes), f"{source} → {arrow.target}: {', '.join(arrow.labels)}"
        )

    def _legend(self) -> _Text:
        lines = ["◆ decision state: where several moves are open, a reasoner chooses"] * bool(
            self._outline.decision_states
        )
        lines += ["number and width of an arrow: how often its moves were made"] * (
            self._traffic is not None
        )
        return _Text(tuple(lines), ("small",) * len(lines))

    def _drawn_arrows(self, layout: Layout) -> Iterable[str]:
        """Draw all arrows, then the labels on top of them."""
        for arrow, route in zip(self._arrows, layout.routes, strict=False):
            yield self._drawn(
                arrow, _path(route.points, self._width(arrow)), route.points[-1], _heading(route)
            )

        for label, route in zip(self._labels, layout.routes, strict=False):
            x, y = route.label
            if label.lines:
                yield (
                    f'<g>{_title(label.full)}<rect class="paper" x="{x - label.width / 2 - 3:.1f}" '
                    f'y="{y - label.height / 2:.1f}" width="{label.width + 6:.1f}" height="{label.height:.1f}"/>'
                    f"{label.at(x, y)}</g>"
                )

        if self._outline.initial is not None:
            route, dot = layout.routes[-1], layout.boxes[0]
            yield f'<circle class="start" cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="5"/>'
            yield f'<path class="line" stroke-width="{_THINNEST}" d="{_path(route.points, _THINNEST)}"/>'
            yield _head(route.points[-1], (0, 1), _THINNEST)

        if self._has_rest:
            box = layout.boxes[1 if self._outline.initial is not None else 0]
            yield f'<rect class="box rest" {_rectangle(box)} rx="12"/>{self._rest.at(box.x, box.y)}'

    def _drawn_boxes(self, places: Mapping[str, Placed]) -> Iterable[str]:
        for state, name in zip(self._outline.states, self._names, strict=True):
            box = places[state]
            decides = state in self._outline.decision_states
            yield (
                f'<g>{_title(name.full)}<rect class="box{" decision" if decides else ""}" '
                f'{_rectangle(box)} rx="7"/>{name.at(box.x, box.y)}</g>'
            )
            if decides:
                yield f'<path class="mark" d="M{box.left + 12:.1f} {box.y - 4.5:.1f} l4.5 4.5 l-4.5 4.5 l-4.5 -4.5 z"/>'
            if state in self._loops:
                yield from self._drawn_loop(*self._loops[state], box.left + box.width, box.y)

    def _drawn_loop(self, arrow: Arrow, label: _Text, x: float, y: float) -> Iterable[str]:
        far = x + _LOOP
        path = f"M{x:.1f} {y - 8:.1f} C{far:.1f} {y - 16:.1f} {far:.1f} {y + 16:.1f} {x + 7:.1f} {y + 9:.1f}"
        yield self._drawn(arrow, path, (x, y + 7), (-1, -0.25))
        yield f"<g>{_title(label.full)}{label.at(far - 2, y, 'start')}</g>"

    def _width(self, arrow: Arrow) -> float:
        return _THINNEST if self._traffic is None else self._traffic.width(arrow)

    def _drawn(self, arrow: Arrow, path: str, tip: Point, heading: Point) -> str:
        width = self._width(arrow)
        unused = " idle" if self._traffic is not None and not self._traffic.of(arrow) else ""
        return f'<path class="line{unused}" stroke-width="{width:.1f}" d="{path}"/>{_head(tip, heading, width, unused)}'


def _title(text: str) -> str:
    """Write what is shown to a reader who points at something, and read to one who does not see."""
    return f"<title>{escape(showable(text), quote=False)}</title>"


def _rectangle(box: Placed) -> str:
    return f'x="{box.left:.1f}" y="{box.y - box.height / 2:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'


def _name_of(outline: Diagram, state: str) -> _Text:
    text = " ".join(showable(state).split()) or state
    lines = wrap(text, _MOST_BOX_CHARACTERS, break_on_hyphens=False) or [" "]
    if len(lines) > _MOST_BOX_LINES:
        lines[_MOST_BOX_LINES - 1 :] = [
            _shortened(lines[_MOST_BOX_LINES - 1] + " …", _MOST_BOX_CHARACTERS)
        ]

    limit = outline.timeouts.get(state)
    below = () if limit is None else (f"time-out after {limit} ticks",)

    return _Text((*lines, *below), ("name",) * len(lines) + ("small",) * len(below), state)


def _shortened(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _heading(route: Route) -> Point:
    (_, before), (_, tip) = route.points[-2:]
    return 0.0, 1.0 if tip > before else -1.0


def _head_length(width: float) -> float:
    return 6.0 + 1.1 * width


def _path(points: Sequence[Point], width: float) -> str:
    """Write a route that ends where the arrow's head begins."""
    (_, before), (x, y) = points[-2:]
    back = _head_length(width) - 1
    points = [*points[:-1], (x, y - back if y > before else y + back)]
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x1, y1), (x2, y2), following in zip(
        points[::2], points[1::2], [*points[2::2], None], strict=True
    ):
        middle = (y1 + y2) / 2
        parts.append(f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}")
        if following is not None:
            parts.append(f"L{following[0]:.1f} {following[1]:.1f}")

    return " ".join(parts)


def _head(tip: Point, heading: Point, width: float, extra: str = "") -> str:
    """Draw the head of an arrow."""
    length, half = _head_length(width), 2.6 + 0.8 * width
    size = sqrt(heading[0] ** 2 + heading[1] ** 2)
    dx, dy = heading[0] / size, heading[1] / size
    x, y = tip[0] - dx * length, tip[1] - dy * length
    corners = [tip, (x - dy * half, y + dx * half), (x + dy * half, y - dx * half)]

    return f'<polygon class="head{extra}" points="{" ".join(f"{one:.1f},{two:.1f}" for one, two in corners)}"/>'


def _styles() -> str:
    """Return the style sheet: plain colours for programs that know no variables, and variables for those that do."""

    def coloured(colours: Mapping[str, str], *, variable: bool) -> str:
        style = _STYLE
        for name, colour in colours.items():
            style = style.replace(
                f" {name.upper()};",
                f" var(--chart-{name}, {colour});" if variable else f" {colour};",
            )

        return style

    def only_colours(colours: Mapping[str, str]) -> str:
        return "\n".join(
            line
            for line in coloured(colours, variable=True).splitlines()
            if "var(" in line or "none" in line
        )

    return (
        f"{coloured(_LIGHT, variable=False)}@supports (fill: var(--chart-ink)) {{\n{only_colours(_LIGHT)}\n}}\n"
        f"@media (prefers-color-scheme: dark) {{\n{only_colours(_DARK)}\n}}\n"
    )
