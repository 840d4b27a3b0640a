"""A diagram as SVG, drawn without any other program.

In a diagram with nested states, each level is laid out by itself and becomes one box in the level
around it. An arrow to a deeper state ends at the box around it and names its target.

The picture has its own colours for light and dark backgrounds; a page can set others with the CSS
variables ``--chart-ink``, ``--chart-paper``, ``--chart-box``, ``--chart-line`` and
``--chart-accent``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from html import escape
from math import hypot, sqrt
from typing import Protocol

from prism.drawing._diagram import Arrow, Diagram
from prism.drawing._layout import Box, Layout, Link, Placed, Point, Route, lay_out
from prism.drawing._levels import Counts, Levels
from prism.drawing._text import Text, label_text, showable, state_text
from prism.errors import DefinitionError

LIGHT = {
    "ink": "#1f2328",
    "paper": "#ffffff",
    "box": "#f0f3f6",
    "line": "#6e7781",
    "accent": "#8250df",
}
DARK = {
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
.prism-chart .ring { fill: none; stroke: ACCENT; }
.prism-chart .rest { stroke-dasharray: 4 3; fill: none; }
.prism-chart .line { fill: none; stroke: LINE; }
.prism-chart .head, .prism-chart .start { fill: LINE; }
.prism-chart .idle { opacity: 0.45; stroke-dasharray: 3 3; }
.prism-chart .small { font-size: 11px; }
.prism-chart .name { font-size: 13px; font-weight: 600; }
.prism-chart .count { font-size: 11px; font-weight: 700; }
"""


def style_sheet() -> str:
    """Return the style sheet, with plain colours first for programs without CSS variables."""
    return (
        f"{_with_colours(LIGHT)}"
        f"@supports (fill: var(--chart-ink)) {{\n{_colour_rules(LIGHT)}\n}}\n"
        f"@media (prefers-color-scheme: dark) {{\n{_colour_rules(DARK)}\n}}\n"
    )


def _with_colours(colours: Mapping[str, str]) -> str:
    style = _STYLE
    for name, colour in colours.items():
        style = style.replace(f" {name.upper()};", f" {colour};")

    return style


def _colour_rules(colours: Mapping[str, str]) -> str:
    """Return the rules that set a colour, each as a variable with its default."""
    variables = {name: f"var(--chart-{name}, {colour})" for name, colour in colours.items()}
    rules = _with_colours(variables).splitlines()
    return "\n".join(rule for rule in rules if "var(" in rule or "none" in rule)


_MARGIN = 14.0
_MIN_BOX_WIDTH = 64.0
_BOX_PADDING, _MARKED_BOX_PADDING = 26.0, 46.0
_MARK_SHIFT = 4.0
"""How far a mark moves the name to the right."""
_LOOP_WIDTH = 26.0
_THINNEST, _THICKEST = 1.3, 7.0


_Ends = tuple[str | None, str]


class Traffic:
    """How often each arrow was used, in this picture and in those beside it.

    An arrow from every other state counts the traffic for which there is no separate arrow. What
    leads from a state to itself is known only where it is given, since not every log has it.

    Args:
        diagram: What is drawn.
        pictures: The traffic of each picture, this one's first.
        most: The most traffic of any arrow, if the diagram is only a part of the picture.
    """

    def __init__(
        self, diagram: Diagram, pictures: Sequence[Counts], most: int | None = None
    ) -> None:
        _refuse_unknown(diagram, pictures)
        drawn = {(arrow.source, arrow.target) for arrow in diagram.arrows}
        self._counts = [_by_arrow(counts, drawn) for counts in pictures]
        self.without_arrow = _without_arrow(self._counts, drawn)
        self._most = _most_of(self._counts) if most is None else most

    def of(self, arrow: Arrow) -> int | None:
        """Return how often an arrow was used; None if that is not known."""
        return self.of_all(arrow)[0]

    def of_all(self, arrow: Arrow) -> list[int | None]:
        """Return how often an arrow was used in each picture."""
        unknown = None if arrow.source == arrow.target else 0
        return [counts.get((arrow.source, arrow.target), unknown) for counts in self._counts]

    def width(self, arrow: Arrow) -> float:
        """Return the width of an arrow in pixels."""
        # The root, since twice the width looks like more than twice the traffic.
        return _THINNEST + (_THICKEST - _THINNEST) * sqrt((self.of(arrow) or 0) / (self._most or 1))


def _most_of(pictures: Sequence[Counts] | Sequence[Mapping[_Ends, int]]) -> int:
    """Return the most traffic of any arrow in any picture."""
    return max((count for counts in pictures for count in counts.values()), default=0)


def _refuse_unknown(diagram: Diagram, pictures: Sequence[Counts]) -> None:
    named = {end for counts in pictures for ends in counts for end in ends}
    if unknown := sorted(named.difference(diagram.states)):
        raise DefinitionError(
            f"the traffic names {', '.join(map(repr, unknown))}, not among the states: add them"
        )


def _without_arrow(pictures: Sequence[Mapping[_Ends, int]], drawn: Set[_Ends]) -> list[Arrow]:
    """Return an arrow for all traffic that has none."""
    used = (ends for counts in pictures for ends, count in counts.items() if count)
    extra = [Arrow(*ends) for ends in dict.fromkeys(used) if ends not in drawn]
    if len(pictures) == 1:
        return extra

    # each of several pictures is to draw them in the same order
    return sorted(extra, key=lambda arrow: (arrow.source or "", arrow.target))


def _by_arrow(counts: Counts, drawn: Set[_Ends]) -> dict[_Ends, int]:
    """Add up traffic by the ends of its arrow, a separate one or one from all states."""
    found = Counter[_Ends]()
    for (source, target), count in counts.items():
        has_own = (source, target) in drawn or (None, target) not in drawn
        found[source if has_own else None, target] += count

    return found


_laid_out = lru_cache(maxsize=16)(lay_out)
"""A page that follows a run draws the same boxes and arrows again and again."""


class Drawing:
    """One picture in the making."""

    _ground = 'class="paper"'
    """The background behind labels, so that no line crosses them."""

    _layout: Layout
    _places: dict[object, Placed]

    def __init__(
        self,
        diagram: Diagram,
        traffic: Traffic | None,
        agents: Mapping[str, int] | None,
    ) -> None:
        self._diagram = diagram
        self._traffic = traffic
        self._agents = agents
        self._names = {state: self._name(state) for state in diagram.states}

        arrows = [*diagram.arrows, *(traffic.without_arrow if traffic else ())]
        self._loops = {
            arrow.target: (arrow, self._label(arrow))
            for arrow in arrows
            if arrow.source == arrow.target
        }
        self._arrows = [arrow for arrow in arrows if arrow.source != arrow.target]
        self._labels = [self._label(arrow) for arrow in self._arrows]
        self._rest = Text(("every other state",), ("small",))
        self._beginning = self._named_beginning()
        self._lay_out()

    def _named_beginning(self) -> Text:
        """Return the label of the arrow that leads to the initial state."""
        return Text((), ())

    def _name(self, state: str) -> Text:
        agents = None if self._agents is None else self._agents.get(state, 0)
        return state_text(state, self._diagram.timeouts.get(state), agents)

    def _label(self, arrow: Arrow) -> Text:
        source = "every other state" if arrow.source is None else arrow.source
        full = f"{source} → {arrow.target}: {', '.join(arrow.labels)}"
        counts = None if self._traffic is None else self._traffic.of_all(arrow)
        return label_text(arrow.labels, counts, full)

    def _lay_out(self) -> None:
        """Place everything; the dot and the box for all other states come first, to be on top."""
        boxes: dict[object, Box] = {}
        if self._diagram.initial is not None:
            boxes[_DOT] = Box(10, 10)
        if any(arrow.source is None for arrow in self._arrows):
            boxes[None] = Box(self._rest.width + 22, 24)
        for state in self._diagram.states:
            boxes[state] = self._box(state)

        numbers = {key: number for number, key in enumerate(boxes)}
        links = [
            Link(
                numbers[arrow.source],
                numbers[arrow.target],
                label.width + 8 if label.lines else 0,
                label.height,
            )
            for arrow, label in zip(self._arrows, self._labels, strict=True)
        ]
        if self._diagram.initial is not None:
            label = self._beginning
            width = label.width + 8 if label.lines else 0
            links.append(Link(numbers[_DOT], numbers[self._diagram.initial], width, label.height))

        self._layout = _laid_out(tuple(boxes.values()), tuple(links))
        self._places = dict(zip(boxes, self._layout.boxes, strict=True))

    def _box(self, state: str) -> Box:
        name = self._names[state]
        width = name.width + (_MARKED_BOX_PADDING if self._is_marked(state) else _BOX_PADDING)
        height = name.height + 14
        right_margin = 0.0
        if state in self._loops:
            _, label = self._loops[state]
            height = max(height, label.height)
            right_margin = _LOOP_WIDTH + 6 + label.width

        return Box(max(width, _MIN_BOX_WIDTH), height, right_margin)

    def _is_marked(self, state: str) -> bool:
        return state in self._diagram.decision_states | self._diagram.final_states

    def svg(self, caption: str = "") -> str:
        """Return the picture as text, with a caption as the last line of its legend."""
        layout = self._layout
        lines = [*self._legend(), *filter(None, [caption])]
        legend = Text(tuple(lines), ("small",) * len(lines))
        width = max(layout.width, legend.width) + 2 * _MARGIN
        height = layout.height + 2 * _MARGIN + (legend.height + 10 if legend.lines else 0)
        size = f'width="{width:.0f}" height="{height:.0f}"'

        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="prism-chart" role="img" {size} '
            f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width: 100%; height: auto">',
            title(self._diagram.name),
            f"<style>{style_sheet()}</style>",
            f'<rect class="paper" {size} rx="6"/>',
            f'<g transform="translate({(width - layout.width) / 2:.1f} {_MARGIN:.0f})">',
            *self.parts(),
            "</g>",
            legend.at(_MARGIN, height - _MARGIN - legend.height / 2, "start"),
            "</svg>",
        ]

        return "\n".join(filter(None, parts)) + "\n"

    def parts(self) -> Iterator[str]:
        """Yield everything but the frame."""
        yield from self._drawn_arrows()
        yield from self._drawn_labels()
        yield from self._drawn_extras()
        yield from self._drawn_states()

    def _legend(self) -> list[str]:
        lines = []
        if self._diagram.decision_states:
            lines.append(_DECIDED)
        if self._diagram.final_states:
            lines.append("◉ final state: an agent that reaches it is done")
        if self._traffic is not None:
            lines.append(_WIDTHS)

        return lines

    def _drawn_arrows(self) -> Iterator[str]:
        # With an initial state there is one more route than arrows; it comes last.
        for arrow, route in zip(self._arrows, self._layout.routes, strict=False):
            path = _path(route, self._width(arrow))
            yield self._drawn(arrow, path, route.points[-1], _direction(route))

    def _drawn_labels(self) -> Iterator[str]:
        for arrow, label, route in zip(
            self._arrows, self._labels, self._layout.routes, strict=False
        ):
            if label.lines:
                drawn = self._drawn_label(label, *route.label)
                yield f"<g{self._found_by(arrow)}>{title(label.full)}{drawn}</g>"

    def _drawn_label(self, label: Text, x: float, y: float) -> str:
        return (
            f'<rect {self._ground} x="{x - label.width / 2 - 3:.1f}" '
            f'y="{y - label.height / 2:.1f}" width="{label.width + 6:.1f}" '
            f'height="{label.height:.1f}"/>{label.at(x, y)}'
        )

    def _drawn_extras(self) -> Iterator[str]:
        """Draw the dot with its arrow, and the box for all other states."""
        if dot := self._places.get(_DOT):
            route = self._layout.routes[-1]
            path = _path(route, _THINNEST)
            yield f'<circle class="start" cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="5"/>'
            yield f'<path class="line" stroke-width="{_THINNEST}" d="{path}"/>'
            yield _head(route.points[-1], (0, 1), _THINNEST)
            if self._beginning.lines:
                yield self._drawn_label(self._beginning, *route.label)

        if box := self._places.get(None):
            text = self._rest.at(box.x, box.y)
            yield f'<rect class="box rest" {rectangle(box)} rx="12"/>{text}'

    def _drawn_states(self) -> Iterator[str]:
        for state, name in self._names.items():
            box = self._places[state]
            yield from self._drawn_state(state, name, box)
            if state in self._loops:
                yield from self._drawn_loop(*self._loops[state], box.left + box.width, box.y)

    def _drawn_state(self, state: str, name: Text, box: Placed) -> Iterator[str]:
        is_decision = state in self._diagram.decision_states
        yield (
            f"<g{_found_as(state, self._agents)}>{title(name.full)}"
            f'<rect class="box{" decision" if is_decision else ""}" {rectangle(box)} rx="7"/>'
            f"{name.at(box.x + (_MARK_SHIFT if self._is_marked(state) else 0), box.y)}</g>"
        )
        if is_decision:
            diamond = f"M{box.left + 12:.1f} {box.y - 4.5:.1f} l4.5 4.5 l-4.5 4.5 l-4.5 -4.5 z"
            yield f'<path class="mark" d="{diamond}"/>'

        if state in self._diagram.final_states:
            x, y = box.left + 13, box.y
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
            yield f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'

    def _drawn_loop(self, arrow: Arrow, label: Text, x: float, y: float) -> Iterator[str]:
        far = x + _LOOP_WIDTH
        path = (
            f"M{x:.1f} {y - 8:.1f} "
            f"C{far:.1f} {y - 16:.1f} {far:.1f} {y + 16:.1f} {x + 7:.1f} {y + 9:.1f}"
        )
        yield self._drawn(arrow, path, (x, y + 7), (-1, -0.25))
        yield f"<g{self._found_by(arrow)}>{title(label.full)}{label.at(far - 2, y, 'start')}</g>"

    def _drawn(self, arrow: Arrow, path: str, tip: Point, direction: Point) -> str:
        width = self._width(arrow)
        idle = " idle" if self._traffic is not None and self._traffic.of(arrow) == 0 else ""
        line = f'<path class="line{idle}" stroke-width="{width:.1f}" d="{path}"/>'
        return line + _head(tip, direction, width, idle)

    def _found_by(self, arrow: Arrow) -> str:
        if self._agents is None or arrow.source is None:
            return ""
        ends = {"source": arrow.source, "target": arrow.target}
        return "".join(f' data-{end}="{escape(showable(name))}"' for end, name in ends.items())

    def _width(self, arrow: Arrow) -> float:
        return _THINNEST if self._traffic is None else self._traffic.width(arrow)


# short enough for the width of a phone
_DECIDED = "◆ decision state: a reasoner chooses if several are enabled"
_WIDTHS = "number and width of an arrow: how often it was taken"

_DOT = object()
"""Key of the initial state's dot, beside those of the boxes: no text of a state equals it."""


def title(text: str) -> str:
    """Return the title of an element."""
    # Shown as a tooltip, and read aloud by screen readers.
    return f"<title>{escape(showable(text), quote=False)}</title>"


def rectangle(box: Placed) -> str:
    """Return the attributes of a placed box."""
    return (
        f'x="{box.left:.1f}" y="{box.y - box.height / 2:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}"'
    )


def _found_as(state: str, agents: Mapping[str, int] | None) -> str:
    """Return the attribute by which a page finds a state; empty if agents are not shown."""
    return "" if agents is None else f' data-state="{escape(showable(state))}"'


def _path(route: Route, width: float) -> str:
    """Return the path of an arrow that ends where its head begins."""
    x, y = route.points[-1]
    _, is_down = _direction(route)
    points = [*route.points[:-1], (x, y - is_down * (_head_length(width) - 1))]

    (x0, y0), *_ = points
    parts = [f"M{x0:.1f} {y0:.1f}"]
    for number, ((x1, y1), (x2, y2)) in enumerate(zip(points[::2], points[1::2], strict=True)):
        if number:
            parts.append(f"L{x1:.1f} {y1:.1f}")
        middle = (y1 + y2) / 2
        parts.append(f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}")

    return " ".join(parts)


def _direction(route: Route) -> Point:
    (_, before), (_, tip) = route.points[-2:]
    return 0.0, 1.0 if tip > before else -1.0


def _head_length(width: float) -> float:
    return 6.0 + 1.1 * width


def _head(tip: Point, direction: Point, width: float, idle: str = "") -> str:
    length, half = _head_length(width), 2.6 + 0.8 * width
    size = hypot(*direction)
    dx, dy = direction[0] / size, direction[1] / size

    x, y = tip[0] - dx * length, tip[1] - dy * length
    corners = [tip, (x - dy * half, y + dx * half), (x + dy * half, y - dx * half)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)

    return f'<polygon class="head{idle}" points="{points}"/>'


# states in states

_PADDING = 12.0
_RADIUS = 13.0
_BESIDE = 2 * _RADIUS + _PADDING
"""The space of a history beside its name."""
_GAP = 20.0


class _Inside(Protocol):
    """The drawing inside a box."""

    width: float
    height: float

    def parts(self) -> Iterator[str]:
        """Yield it."""


class _Nested(Levels):
    """A diagram with nested states, and what to show on each level.

    Args:
        diagram: The diagram.
        pictures: The traffic of each picture, this one's first; None shows none.
        agents: The agents in each state or set of states; None shows none.

    Attributes:
        counts: The agents in each state.
    """

    def __init__(
        self,
        diagram: Diagram,
        pictures: Sequence[Counts] | None,
        agents: Mapping[str, int] | None,
    ) -> None:
        super().__init__(diagram)
        self.counts: Mapping[str, int] | None = None if agents is None else self.agents(agents)
        self._pictures = None if pictures is None else [*map(self.traffic, pictures)]

    def traffic_at(self, state: str | None, level: Diagram) -> Traffic | None:
        """Return the traffic on a level."""
        if self._pictures is None:
            return None

        own = [
            {ends: count for ends, count in counts.items() if self.level_of(ends[0]) == state}
            for counts in self._pictures
        ]
        return Traffic(level, own, _most_of(self._pictures))

    def named(self, state: str) -> Text:
        """Return a state's name with its agents and the notes below it."""
        diagram = self.diagram
        if state in diagram.marks:
            return Text((diagram.marks[state],), ("name",), state)
        agents = None if self.counts is None else self.counts.get(state, 0)
        name = state_text(state, diagram.timeouts.get(state), agents)
        notes: Sequence[str] = diagram.notes.get(state, ())
        classes = (*name.classes, *("small",) * len(notes))
        return Text((*name.lines, *notes), classes, name.full, name.room)

    def inside(self, state: str) -> _Inside:
        """Return the content of a state."""
        if self.diagram.boxes[state].is_parallel:
            return _Regions(self, state)
        return _Level(state, self)


class _Level(Drawing):
    """One level of a picture: what is inside a state, or the outermost (None)."""

    def __init__(self, state: str | None, levels: _Nested) -> None:
        if state is not None:
            self._ground = 'class="box" style="stroke: none"'

        diagram = levels.at(state)
        self._begins_in = levels.begins_in() if state is None else None
        boxes = levels.diagram.boxes
        self._whole = levels.diagram
        self._named = levels.named
        self._insides = {name: levels.inside(name) for name in diagram.states if name in boxes}
        self._histories = {name: levels.histories_of(name) for name in self._insides}
        super().__init__(diagram, levels.traffic_at(state, diagram), levels.counts)
        self.width: float = self._layout.width
        self.height: float = self._layout.height

    def _name(self, state: str) -> Text:
        return self._named(state)

    def _named_beginning(self) -> Text:
        if self._begins_in is None:
            return super()._named_beginning()
        return label_text((f"→ {self._begins_in}",), None, "")

    def _box(self, state: str) -> Box:
        box = super()._box(state)
        inside = self._insides.get(state)
        if state in self._diagram.marks:
            return Box(2 * _RADIUS, 2 * _RADIUS, box.right_margin)
        if inside is None:
            return box
        name, beside = self._names[state], len(self._histories[state]) * _BESIDE
        return Box(
            max(box.width + 2 * beside, inside.width + 2 * _PADDING),
            name.height + inside.height + 3 * _PADDING,
            box.right_margin,
        )

    def _drawn_state(self, state: str, name: Text, box: Placed) -> Iterator[str]:
        if state in self._diagram.marks:
            yield _history(state, name, box.x, box.y)
            return
        inside = self._insides.get(state)
        if inside is None:
            yield from super()._drawn_state(state, name, box)
            return

        top = box.y - box.height / 2
        is_decision = state in self._diagram.decision_states
        yield (
            f"<g{_found_as(state, self._agents)}>{title(name.full)}"
            f'<rect class="box inner{" decision" if is_decision else ""}" '
            f'{rectangle(box)} rx="9"/>{name.at(box.x, top + _PADDING + name.height / 2)}</g>'
        )
        right = box.x + box.width / 2 - _PADDING
        yield from _histories(self._named, self._histories[state], right, top + _PADDING)
        x, y = box.x - inside.width / 2, top + name.height + 2 * _PADDING
        yield f'<g transform="translate({x:.1f} {y:.1f})">'
        yield from inside.parts()
        yield "</g>"

    def _legend(self) -> list[str]:
        """Explain the signs used on any level."""
        lines = []
        if self._whole.decision_states:
            lines.append(_DECIDED)
        if self._whole.final_states:
            lines.append("◉ final state: an agent, or the state around it, is done")
        if self._whole.marks:
            lines.append("H, H*: the state, or the leaves, in which it was left last")
        if self._traffic is not None:
            lines.append(_WIDTHS)

        return lines


class _Regions:
    """Regions side by side, with a dashed line between them."""

    def __init__(self, levels: _Nested, state: str) -> None:
        self._regions = [
            (region, levels.named(region), _inside(levels, region))
            for region in levels.diagram.boxes[state].inside
            if region not in levels.diagram.marks
        ]
        self._levels = levels
        self._widths = [
            max(
                name.width + 2 * _PADDING + 2 * _BESIDE * len(levels.histories_of(region)),
                0.0 if inside is None else inside.width,
            )
            for region, name, inside in self._regions
        ]
        self.width: float = sum(self._widths) + _GAP * (len(self._widths) - 1)
        self.height: float = max(
            name.height + _PADDING + (0.0 if inside is None else inside.height)
            for _, name, inside in self._regions
        )

    def parts(self) -> Iterator[str]:
        """Yield the regions."""
        left = 0.0
        for number, ((region, name, inside), width) in enumerate(
            zip(self._regions, self._widths, strict=True)
        ):
            if number:
                x = left - _GAP / 2
                line = f"M{x:.1f} -6 V{self.height + 6:.1f}"
                yield f'<path class="line rest" stroke-width="1.3" d="{line}"/>'
            shown = name.at(left + width / 2, name.height / 2)
            yield f"<g{_found_as(region, self._levels.counts)}>{title(name.full)}{shown}</g>"
            found = self._levels.histories_of(region)
            yield from _histories(self._levels.named, found, left + width - _PADDING, 0.0)
            if inside is not None:
                x, y = left + (width - inside.width) / 2, name.height + _PADDING
                yield f'<g transform="translate({x:.1f} {y:.1f})">'
                yield from inside.parts()
                yield "</g>"
            left += width + _GAP


def _history(state: str, sign: Text, x: float, y: float) -> str:
    circle = f'<circle class="box" cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:.0f}"/>'
    return f"<g>{title(state)}{circle}{sign.at(x, y)}</g>"


def _histories(
    named: Callable[[str], Text], states: Sequence[str], right: float, top: float
) -> Iterator[str]:
    """Yield histories beside a name, from the right to the left."""
    for number, state in enumerate(states):
        x = right - _RADIUS - number * _BESIDE
        yield _history(state, named(state), x, top + _RADIUS / 2)


def _inside(levels: _Nested, state: str) -> _Inside | None:
    return levels.inside(state) if state in levels.diagram.boxes else None


def draw_svg(
    diagram: Diagram,
    traffic: Counts | None = None,
    *,
    beside: Sequence[Counts] = (),
    agents: Mapping[str, int] | None = None,
    caption: str = "",
) -> str:
    """Draw a diagram of states and transitions.

    Decision states have a thick border and a diamond, final states a dot in a circle, and an arrow
    from a dot leads to the initial state. With traffic, an arrow's number and width show how often
    its transitions happened; an arrow that was never used is faint. An arrow from a state to itself
    has no number where the traffic does not name it. Traffic without an arrow in the diagram gets
    an arrow without triggers.

    In a diagram with boxes, name several regions together, as in ``work+pocket``. A box counts all
    agents inside, and an agent in several regions counts in each. An arrow that leaves a box is
    drawn at the box.

    Args:
        diagram: What to draw; ``chart.to_svg()`` draws a chart itself.
        traffic: How often an agent went from one state to another, by (source, target).
        beside: The traffic of the same diagram in pictures beside this one. All of them then have
            one layout and one scale of widths.
        agents: The agents in each state, to write below its name; None leaves them out. With
            agents, states and arrows have the attributes ``data-state``, ``data-source`` and
            ``data-target`` for scripts.
        caption: A line below the picture, such as what the traffic counts.

    Returns:
        One ``<svg>`` element, ready for a file or for a page.

    Raises:
        DefinitionError: (a ValueError) if the traffic names a state that the diagram does not have.
    """
    pictures = None if traffic is None else [traffic, *beside]
    if diagram.boxes:
        return _Level(None, _Nested(diagram, pictures, agents)).svg(caption)

    counted = None if pictures is None else Traffic(diagram, pictures)
    return Drawing(diagram, counted, agents).svg(caption)
