"""A diagram with states in states as SVG.

Each level is laid out alone, then as one box in the level around it. An arrow whose end lies deeper
than its level ends at the box around that, and says where it leads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from prism.drawing._diagram import Arrow, Diagram
from prism.drawing._layout import Box, Placed
from prism.drawing._picture import Drawing, rectangle, title
from prism.drawing._text import Text, state_text

_PADDING = 12.0
_GAP = 20.0


def draw_nested(diagram: Diagram) -> str:
    """Draw a diagram with states in states; see `prism.drawing.draw_svg`."""
    levels = _Levels(diagram)
    return _Level(levels.at(None), levels).svg()


class _Inside(Protocol):
    """What is drawn inside a box."""

    width: float
    height: float

    def parts(self) -> Iterator[str]:
        """Yield it."""


class _Levels:
    """Which states and arrows belong to which level; None is the outermost."""

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self._around = {name: state for state, box in diagram.boxes.items() for name in box.inside}
        self._arrows: dict[str | None, dict[tuple[str, str], dict[str, None]]] = {}
        for arrow in diagram.arrows:
            self._add(arrow)

    def _add(self, arrow: Arrow) -> None:
        source, target = arrow.source or arrow.target, arrow.target
        from_top, to_top = self._path(source), self._path(target)
        depth = 0
        while depth < min(len(from_top), len(to_top)) - 1 and from_top[depth] == to_top[depth]:
            depth += 1
        level = from_top[depth - 1] if depth else None
        if level is not None and self.diagram.boxes[level].is_parallel:
            # no arrow leads from region to region: it stands at the state around them
            depth -= 1
            level = from_top[depth - 1] if depth else None

        ends = from_top[depth], to_top[depth]
        labels = self._arrows.setdefault(level, {}).setdefault(ends, {})
        for label in arrow.labels:
            before = f"{source}: " if ends[0] != source else ""
            behind = f" → {self._shown(target)}" if ends[1] != target else ""
            labels[before + label + behind] = None

    def _path(self, state: str) -> list[str]:
        """Return a state with all around it, outermost first."""
        found = [state]
        while found[0] in self._around:
            found.insert(0, self._around[found[0]])
        return found

    def _shown(self, state: str) -> str:
        return self.diagram.marks.get(state, state)

    def at(self, state: str | None) -> Diagram:
        """Return one level as a diagram."""
        whole = self.diagram
        if state is None:
            states = tuple(each for each in whole.states if each not in self._around)
            initial = None if whole.initial is None else self._path(whole.initial)[0]
        else:
            states = whole.boxes[state].inside
            path = self._path((*whole.boxes[state].initial, states[0])[0])
            initial = path[path.index(state) + 1]

        return Diagram(
            states,
            tuple(
                Arrow(*ends, tuple(labels)) for ends, labels in self._arrows.get(state, {}).items()
            ),
            initial,
            whole.name,
            whole.decision_states.intersection(states),
            {name: ticks for name, ticks in whole.timeouts.items() if name in states},
            whole.final_states.intersection(states),
            notes={name: lines for name, lines in whole.notes.items() if name in states},
            marks={name: sign for name, sign in whole.marks.items() if name in states},
        )

    def inside(self, state: str) -> _Inside:
        """Return what is drawn inside a state."""
        if self.diagram.boxes[state].is_parallel:
            return _Regions(self, state)
        return _Level(self.at(state), self)


class _Level(Drawing):
    """One level of a picture."""

    def __init__(self, diagram: Diagram, levels: _Levels) -> None:
        boxes = levels.diagram.boxes
        self._whole = levels.diagram
        self._insides = {name: levels.inside(name) for name in diagram.states if name in boxes}
        super().__init__(diagram, None, None)
        self.width: float = self._layout.width
        self.height: float = self._layout.height

    def _name(self, state: str) -> Text:
        return _named(self._whole, state)

    def _box(self, state: str) -> Box:
        box = super()._box(state)
        inside = self._insides.get(state)
        if state in self._diagram.marks:
            return Box(26.0, 26.0, box.right_margin)
        if inside is None:
            return box
        name = self._names[state]
        return Box(
            max(box.width, inside.width + 2 * _PADDING),
            name.height + inside.height + 3 * _PADDING,
            box.right_margin,
        )

    def _drawn_state(self, state: str, name: Text, box: Placed) -> Iterator[str]:
        if state in self._diagram.marks:
            yield (
                f'<g>{title(state)}<circle class="box" cx="{box.x:.1f}" cy="{box.y:.1f}" '
                f'r="13"/>{name.at(box.x, box.y)}</g>'
            )
            return
        inside = self._insides.get(state)
        if inside is None:
            yield from super()._drawn_state(state, name, box)
            return

        top = box.y - box.height / 2
        is_decision = state in self._diagram.decision_states
        yield (
            f'<g>{title(name.full)}<rect class="box inner{" decision" if is_decision else ""}" '
            f'{rectangle(box)} rx="9"/>{name.at(box.x, top + _PADDING + name.height / 2)}</g>'
        )
        x, y = box.x - inside.width / 2, top + name.height + 2 * _PADDING
        yield f'<g transform="translate({x:.1f} {y:.1f})">'
        yield from inside.parts()
        yield "</g>"

    def _legend(self) -> Text:
        """Explain what stands on any level."""
        lines = []
        if self._whole.decision_states:
            lines.append("◆ decision state: a reasoner chooses if several transitions are enabled")
        if self._whole.final_states:
            lines.append("◉ final state: an agent, or the state around it, is done")
        if self._whole.marks:
            lines.append("H, H*: the state, or the leaves, in which it was left last")

        return Text(tuple(lines), ("small",) * len(lines))


class _Regions:
    """Regions side by side, with a dashed line between them."""

    def __init__(self, levels: _Levels, state: str) -> None:
        self._regions = [
            (_named(levels.diagram, region), _inside(levels, region))
            for region in levels.diagram.boxes[state].inside
        ]
        self._widths = [
            max(name.width + 2 * _PADDING, 0.0 if inside is None else inside.width)
            for name, inside in self._regions
        ]
        self.width: float = sum(self._widths) + _GAP * (len(self._widths) - 1)
        self.height: float = max(
            name.height + _PADDING + (0.0 if inside is None else inside.height)
            for name, inside in self._regions
        )

    def parts(self) -> Iterator[str]:
        """Yield the regions."""
        left = 0.0
        for number, ((name, inside), width) in enumerate(
            zip(self._regions, self._widths, strict=True)
        ):
            if number:
                x = left - _GAP / 2
                line = f"M{x:.1f} -6 V{self.height + 6:.1f}"
                yield f'<path class="line rest" stroke-width="1.3" d="{line}"/>'
            yield f"<g>{title(name.full)}{name.at(left + width / 2, name.height / 2)}</g>"
            if inside is not None:
                x, y = left + (width - inside.width) / 2, name.height + _PADDING
                yield f'<g transform="translate({x:.1f} {y:.1f})">'
                yield from inside.parts()
                yield "</g>"
            left += width + _GAP


def _inside(levels: _Levels, state: str) -> _Inside | None:
    return levels.inside(state) if state in levels.diagram.boxes else None


def _named(diagram: Diagram, state: str) -> Text:
    """Return a state's name with the notes below it."""
    if state in diagram.marks:
        return Text((diagram.marks[state],), ("name",), state)
    name = state_text(state, diagram.timeouts.get(state))
    notes: Sequence[str] = diagram.notes.get(state, ())
    return Text((*name.lines, *notes), (*name.classes, *("small",) * len(notes)), name.full)
