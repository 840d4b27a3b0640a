"""A diagram as SVG, drawn without any other program.

Each level of a diagram is laid out by itself and becomes one box in the level around it; a diagram
without nested states has one level. An arrow to a deeper state ends at the box around it and names
its target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from math import sqrt

from prism.drawing._diagram import Arrow, Counts, Diagram, Ends, Levels
from prism.drawing._layout import SPACING, Box, Layout, Link, Node, Point, Route, lay_out
from prism.drawing._text import Text, framed, label_text, showable, state_text, title

_MARGIN, _PADDING = 14.0, 12.0
_MIN_BOX_WIDTH = 64.0
_BOX_PADDING = 26.0
_RADIUS = 13.0
_LOOP_WIDTH = 26.0
_THINNEST, _THICKEST = 1.3, 7.0

_DOT = object()
"""Key of the initial state's dot, beside those of the boxes: no text of a state equals it."""
_REST = Text((("small", "every other state"),))

_laid_out = lru_cache(maxsize=64)(lay_out)
"""A page that follows a run draws the same boxes and arrows again and again."""


@dataclass(frozen=True, slots=True)
class _Line:
    """An arrow as it is drawn.

    Args:
        source: The key of its source among the boxes.
        target: Its target.
        label: Its label.
        width: Its width in pixels.
        idle: The style class of an arrow that was never used.
        attributes: The attributes by which a script finds it.
    """

    source: object
    target: str
    label: Text
    width: float = _THINNEST
    idle: str = ""
    attributes: str = ""

    def along(self, route: Route) -> str:
        """Draw it along a route; the line ends where the head begins."""
        (_, before), tip = route.points[-2:]
        down = 1.0 if tip[1] > route.points[0][1] else -1.0
        end = tip[1] - down * (_head_length(self.width) - 1)
        points = [*route.points[:-2], (tip[0], min(before * down, end * down) * down)]

        parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
        for (x1, y1), (x2, y2) in zip(points[1::2], points[2::2], strict=True):
            middle = (y1 + y2) / 2
            parts.append(
                f"V{y1:.1f} C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
            )
        return self.drawn(" ".join([*parts, f"V{end:.1f}"]), tip, 90 * down)

    def drawn(self, path: str, tip: Point, turn: float) -> str:
        """Draw its line, and its head turned clockwise from the right by some degrees."""
        length, half = _head_length(self.width), 2.6 + 0.8 * self.width
        return (
            f'<path class="line{self.idle}" stroke-width="{self.width:.1f}" d="{path}"/>'
            f'<polygon class="head{self.idle}" points="0,0 {-length:.1f},{half:.1f} '
            f'{-length:.1f},{-half:.1f}" '
            f'transform="translate({tip[0]:.1f} {tip[1]:.1f}) rotate({turn:.0f})"/>'
        )

    def labelled(self, drawn: str) -> str:
        """Return its drawn label with its tooltip."""
        return f"<g{self.attributes}>{title(self.label.full)}{drawn}</g>"


def _head_length(width: float) -> float:
    return 6.0 + 1.1 * width


class _Picture(Levels):
    """A diagram with what happened in it.

    An arrow from every other state counts the traffic for which there is no separate arrow. A
    transition from a state to itself has a count only if the traffic names it, since not every log
    does.

    Args:
        diagram: What is drawn.
        pictures: The traffic of this picture and of those beside it; empty shows none.
        agents: The agents in each state or set of states; None shows none.
    """

    def __init__(
        self, diagram: Diagram, pictures: Sequence[Counts], agents: Mapping[str, int] | None
    ) -> None:
        super().__init__(diagram)
        self._agents = None if agents is None else self.agents(agents)
        self._counts = [*map(self._by_arrow, pictures)]
        every = [each for counts in self._counts for each in counts.items()]
        self._most = max((count for _, count in every), default=0) or 1

        # each of several pictures is to draw them in the same order
        for source, target in sorted({ends for ends, count in every if count}, key=str):
            is_inside = not self.is_parallel(self.level_of(source))
            if is_inside and not self.has((source, target)):
                self.add(Arrow(source, target))

    def _by_arrow(self, counts: Counts) -> Counter[Ends]:
        """Add up traffic by the ends of its arrow, a separate one or one from all states."""
        totals = Counter[Ends]()
        for (source, target), count in self.traffic(counts).items():
            is_separate = self.has((source, target)) or not self.has((None, target))
            totals[source if is_separate else None, target] += count

        return totals

    def name(self, state: str) -> Text:
        """Return a state's name with what stands below it."""
        diagram = self.diagram
        if state in diagram.histories:
            return Text((("name", diagram.histories[state]),), state)
        agents = None if self._agents is None else self._agents[state]
        sign = "◆ " * (state in diagram.decision_states) + "◉ " * (state in diagram.final_states)
        return state_text(sign, state, agents, diagram.notes.get(state, ()))

    def attributes(self, **names: str | None) -> str:
        """Return the attributes of a state or an arrow for scripts; empty without agents."""
        if self._agents is None or None in names.values():
            return ""
        return "".join(f' data-{key}="{escape(showable(str(n)))}"' for key, n in names.items())

    def lines(self, level: str | None) -> Iterator[_Line]:
        """Yield the arrows of a level, and the one from the dot to its initial state."""
        for (source, target), labels in self.arrows.get(level, {}).items():
            begin = "every other state" if source is None else source
            full = f"{begin} → {target}: {', '.join(labels)}"
            unknown = None if source == target else 0
            counts = [each.get((source, target), unknown) for each in self._counts]
            count = counts[0] if counts else None
            # The root, since twice the width looks like more than twice the traffic.
            width = _THINNEST + (_THICKEST - _THINNEST) * sqrt((count or 0) / self._most)
            text = label_text([*labels], counts, full)
            attributes = self.attributes(source=source, target=target)
            yield _Line(source, target, text, width, " idle" if count == 0 else "", attributes)

        if beginning := self.beginning(level):
            first, inside = beginning
            label = label_text([f"→ {inside}"], (), inside) if inside else Text()
            yield _Line(_DOT, first, label)

    def legend(self) -> list[str]:
        """Explain the signs, in lines that are short enough for the width of a phone."""
        diagram = self.diagram
        signs = {
            "◆ decision state: a reasoner chooses if several are enabled": diagram.decision_states,
            "◉ final state: an agent, or the state around it, is done": diagram.final_states,
            "H, H*: the state, or the leaves, in which it was left last": diagram.histories,
            "number and width of an arrow: how often it was taken": self._counts,
        }
        return [line for line, what in signs.items() if what]


class _Level:
    """One level of a picture: what is inside a state, or the outermost (None).

    The regions of a parallel state lie side by side, with a dashed line between them.
    """

    def __init__(self, state: str | None, picture: _Picture) -> None:
        self._picture = picture
        self._diagram = picture.diagram
        # the background behind labels, so that no line crosses them
        self._ground = 'class="paper"' if state is None else 'class="box" style="stroke: none"'
        self._are_regions = picture.is_parallel(state)
        states = picture.states(state)
        boxes = self._diagram.boxes
        self._insides = {each: _Level(each, picture) for each in states if each in boxes}
        self._names = {each: picture.name(each) for each in states}
        lines = [] if self._are_regions else [*picture.lines(state)]
        self._loops = {line.target: line for line in lines if line.source == line.target}
        self._lines = [line for line in lines if line.source != line.target]
        self.layout, self._boxes = self._laid_out()

    def _laid_out(self) -> tuple[Layout, dict[object, Node]]:
        """Place everything; the dot and the box for all other states come first, to be on top."""
        sources = {line.source for line in self._lines}
        boxes: dict[object, Box] = {_DOT: Box(10, 10)} if _DOT in sources else {}
        if None in sources:
            boxes[None] = Box(_REST.width + 22, 24)
        boxes |= {state: self._box(state) for state in self._names}
        if self._are_regions:
            tallest = max(box.height for box in boxes.values())
            boxes = {state: box._replace(height=tallest) for state, box in boxes.items()}

        numbers = {key: number for number, key in enumerate(boxes)}
        links = []
        for line in self._lines:
            width, height = line.label.width + 8, line.label.height
            links.append(Link(numbers[line.source], numbers[line.target], width, height))
        layout = _laid_out(tuple(boxes.values()), tuple(links))
        return layout, dict(zip(boxes, layout.boxes, strict=True))

    def _box(self, state: str) -> Box:
        name, loop = self._names[state], self._loops.get(state)
        label = loop.label if loop else Text()
        right_margin = _LOOP_WIDTH + 6 + label.width if loop else 0.0
        if state in self._diagram.histories:
            return Box(2 * _RADIUS, 2 * _RADIUS, right_margin)

        width = max(name.width + _BOX_PADDING, _MIN_BOX_WIDTH)
        if not (self._are_regions or state in self._insides):
            return Box(width, max(name.height + 14, label.height), right_margin)

        height, around = name.height + _PADDING, 2 * _PADDING
        if inside := self._insides.get(state):
            width = max(width, inside.layout.width + around)
            height += inside.layout.height
        return Box(width, height + around, right_margin)

    def parts(self) -> Iterator[str]:
        """Yield everything but the frame."""
        routes = [*zip(self._lines, self.layout.routes, strict=True)]
        for line, route in routes:
            yield line.along(route)
        for line, route in routes:
            if (label := line.label).lines:
                ground = _rectangle(self._ground, *route.label, label.width + 6, label.height)
                yield line.labelled(ground + label.at(*route.label))

        if dot := self._boxes.get(_DOT):
            yield f'<circle class="start" cx="{dot.x:.1f}" cy="{dot.y:.1f}" r="5"/>'
        if rest := self._boxes.get(None):
            shape = _rectangle('class="box rest"', rest.x, rest.y, 2 * rest.left, rest.height, 12)
            yield shape + _REST.at(rest.x, rest.y)
        for number, state in enumerate(self._names):
            box = self._boxes[state]
            if self._are_regions and number and state not in self._diagram.histories:
                x = box.x - box.left - SPACING / 2
                path = f"M{x:.1f} -6 V{self.layout.height + 6:.1f}"
                yield f'<path class="line rest" stroke-width="1.3" d="{path}"/>'
            yield from self._state(state, box)
            if state in self._loops:
                yield self._loop(self._loops[state], box.x + box.left, box.y)

    def _state(self, state: str, box: Node) -> Iterator[str]:
        name = self._names[state]
        if state in self._diagram.histories:
            circle = f'<circle class="box" cx="{box.x:.1f}" cy="{box.y:.1f}" r="{_RADIUS:.0f}"/>'
            yield f"<g>{title(name.full)}{circle}{name.at(box.x, box.y)}</g>"
            return

        is_decision = state in self._diagram.decision_states
        classes = f"box{' inner' * (state in self._insides)}{' decision' * is_decision}"
        shape = _rectangle(f'class="{classes}"', box.x, box.y, 2 * box.left, box.height, 7)
        y = box.y
        # the name of what has states inside is at its top
        if self._are_regions or state in self._insides:
            y += _PADDING + (name.height - box.height) / 2
        group = f"<g{self._picture.attributes(state=state)}>{title(name.full)}"
        yield f"{group}{'' if self._are_regions else shape}{name.at(box.x, y)}</g>"
        if inside := self._insides.get(state):
            x, y = box.x - inside.layout.width / 2, y + name.height / 2 + _PADDING
            yield f'<g transform="translate({x:.1f} {y:.1f})">'
            yield from inside.parts()
            yield "</g>"

    def _loop(self, line: _Line, x: float, y: float) -> str:
        far = x + _LOOP_WIDTH
        path = (
            f"M{x:.1f} {y - 8:.1f} "
            f"C{far:.1f} {y - 16:.1f} {far:.1f} {y + 16:.1f} {x + 7:.1f} {y + 9:.1f}"
        )
        label = line.labelled(line.label.at(far + line.width / 2, y, "start"))
        return line.drawn(path, (x, y + 7), 194) + label


def _rectangle(
    attributes: str, x: float, y: float, width: float, height: float, rounding: int = 0
) -> str:
    corners = f' rx="{rounding}"' if rounding else ""
    return (
        f'<rect {attributes} x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}"{corners}/>'
    )


def draw_svg(
    diagram: Diagram,
    traffic: Counts | None = None,
    *,
    beside: Sequence[Counts] = (),
    agents: Mapping[str, int] | None = None,
    caption: str = "",
) -> str:
    """Draw a diagram of states and transitions.

    Decision states have a thick border and a diamond, final states a dot in a circle. An arrow from
    a dot leads to the initial state. With traffic, an arrow's number and width show how often
    its transitions happened; an arrow that was never used is faint. An arrow from a state to itself
    has no number where the traffic does not name it. Traffic without an arrow in the diagram gets
    an arrow without triggers.

    In a diagram with boxes, name several regions together, as in ``work+pocket``. A box counts all
    agents inside, and an agent in several regions counts in each. An arrow that leaves a box is
    drawn at the box.

    The picture has its own colours for light and dark backgrounds.

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
    """
    picture = _Picture(diagram, [] if traffic is None else [traffic, *beside], agents)
    level = _Level(None, picture)
    lines = [*picture.legend(), *([caption] if caption else [])]
    legend = Text(tuple(("small", line) for line in lines))
    width = max(level.layout.width, legend.width) + 2 * _MARGIN
    height = level.layout.height + 2 * _MARGIN + (legend.height + 10 if lines else 0)
    left = (width - level.layout.width) / 2
    parts = [
        f'<g transform="translate({left:.1f} {_MARGIN:.0f})">',
        *level.parts(),
        "</g>",
        legend.at(_MARGIN, height - _MARGIN - legend.height / 2, "start"),
    ]
    return framed(diagram.name, width, height, parts)
