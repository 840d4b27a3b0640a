"""What all pictures have: the frame, colours and texts, with their width and where they are cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from html import escape
from string import Template
from textwrap import wrap
from typing import NamedTuple
from unicodedata import category, east_asian_width

_UNSHOWABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def showable(text: str) -> str:
    """Replace what XML, HTML, a terminal or Vega's expressions (U+2028, U+2029) cannot hold.

    That is control characters, halves of surrogate pairs, and separators of lines and paragraphs.
    """
    return _UNSHOWABLE.sub("\ufffd", text)


def printable(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


def number_text(value: float) -> str:
    """Return a number with commas: whole if it is an integer or large, otherwise in four digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:,.4g}"


_FONTS = {"name": (13.0, 17.0), "small": (11.0, 14.0), "count": (11.0, 14.0)}
"""The size of the font and the height of a line of each class of text."""

_NAME_CHARACTERS, _NAME_LINES = 22, 4
_LABEL_CHARACTERS = 36
_ONE_LINE = 24
"""Characters of a label whose guard and action stand behind its trigger, not below it."""


class Text(NamedTuple):
    """Lines of text and the room they take.

    Args:
        lines: The lines, each with its style class: ``name``, ``small`` or ``count``.
        full: The text in full, for the tooltip.
        room: Least width to reserve for it.
    """

    lines: tuple[tuple[str, str], ...] = ()
    full: str = ""
    room: float = 0.0

    @property
    def width(self) -> float:
        """The width of the longest line."""
        widths = (text_width(line) * _FONTS[kind][0] for kind, line in self.lines)
        return max([*widths, self.room])

    @property
    def height(self) -> float:
        """The height of all lines."""
        return sum(_FONTS[kind][1] for kind, _ in self.lines)

    def at(self, x: float, y: float, anchor: str = "middle") -> str:
        """Draw the lines with their vertical middle at y, anchored at x."""
        parts, top = [], y - self.height / 2
        for kind, line in self.lines:
            height = _FONTS[kind][1]
            parts.append(
                f'<text class="{kind}" x="{x:.1f}" y="{top + height * 0.76:.1f}" '
                f'text-anchor="{anchor}">{escape(line, quote=False)}</text>'
            )
            top += height

        return "".join(parts)


def state_text(sign: str, state: str, agents: int | None, notes: Sequence[str]) -> Text:
    """Return the name of a state, wrapped and cut to fit a box, and what stands below it.

    Args:
        sign: What stands before the name.
        state: The state.
        agents: The number of agents in it; None shows none.
        notes: More lines.
    """
    name, width = sign + showable(state), _NAME_CHARACTERS
    wrapped = wrap(name, width, break_on_hyphens=False, max_lines=_NAME_LINES, placeholder=" …")
    lines = [("name", line) for line in wrapped or [" "]]
    if agents is not None:
        lines.append(("count", f"{agents:,} agent{'s' * (agents != 1)}"))
    # room for a million keeps the box as wide in every round
    room = 0.0 if agents is None else text_width("999,999 agents") * _FONTS["count"][0]
    return Text((*lines, *(("small", note) for note in notes)), state, room)


def label_text(labels: Sequence[str], counts: Sequence[int | None], full: str) -> Text:
    """Return the label of an arrow, cut to fit, with how often the arrow was used below.

    Args:
        labels: The transitions of the arrow.
        counts: How often it was used, in this picture and in those beside it, which all reserve the
            width of the widest; None for an unknown count.
        full: The text in full.
    """
    lines = [("small", line) for label in labels for line in _lines_of(showable(label))]
    if {*counts} <= {None}:
        return Text(tuple(lines), full)

    counted = ["" if count is None else f"{count:,}\N{MULTIPLICATION SIGN}" for count in counts]
    room = max(map(text_width, counted)) * _FONTS["count"][0]
    return Text((*lines, ("count", counted[0])), full, room)


def _lines_of(label: str) -> list[str]:
    flat = " ".join(label.split())
    parts = [flat] if len(flat) <= _ONE_LINE else re.split(r" (?=\[|/ )", flat, maxsplit=1)
    most = _LABEL_CHARACTERS
    return [part if len(part) <= most else part[: most - 1] + "…" for part in parts]


# a page that follows a run writes the same labels again and again
@lru_cache(maxsize=4096)
def text_width(text: str) -> float:
    """Estimate the width of a line in ems; on the generous side, since the font is not known."""
    return sum(map(_character_width, text)) * 1.06


def _character_width(character: str) -> float:
    if character in "iljtfrI.,:;'|!()[] ":
        return 0.36
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05
    if character in "mwMW@%—◆◉":
        return 0.86

    return 0.7 if character.isupper() else 0.6


# The frame

_LIGHT = {"ink": "#1f2328", "paper": "#fff", "box": "#f0f3f6", "line": "#6e7781", "edge": "#8250df"}
_DARK = dict(zip(_LIGHT, ["#e6edf3", "#0d1117", "#1c232c", "#8b949e", "#b58cff"], strict=True))
_RULES = """
.prism-chart text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.prism-chart .small { font-size: 11px; }
.prism-chart .name { font-size: 13px; font-weight: 600; }
.prism-chart .count { font-size: 11px; font-weight: 700; }
.prism-chart .idle { opacity: 0.45; stroke-dasharray: 3 3; }
"""
_COLOURED = Template("""
.prism-chart text { fill: $ink; }
.prism-chart .paper { fill: $paper; }
.prism-chart .box { fill: $box; stroke: $line; stroke-width: 1.3; }
.prism-chart .decision { stroke: $edge; stroke-width: 2.4; }
.prism-chart .rest { stroke-dasharray: 4 3; fill: none; }
.prism-chart .line { fill: none; stroke: $line; }
.prism-chart .head, .prism-chart .start { fill: $line; }
""")


def framed(name: str, width: float, height: float, parts: Iterable[str], style: str = "") -> str:
    """Return a picture, for light and dark surroundings.

    Args:
        name: Its title.
        width: Its width in pixels.
        height: Its height in pixels.
        parts: What it shows.
        style: Rules beside those of all pictures.
    """
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="prism-chart" role="img" {size} '
        # on a phone, text gets no smaller than 7 pixels: what is around it scrolls
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width: 100%; min-width: {0.65 * round(width):.0f}px; height: auto">',
        title(name),
        f"<style>{_style_sheet()}{style}</style>",
        f'<rect class="paper" {size} rx="6"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def title(text: str) -> str:
    """Return the title of an element, which is its tooltip and read aloud by screen readers."""
    return f"<title>{escape(showable(text), quote=False)}</title>"


@cache
def _style_sheet() -> str:
    light, dark = map(_COLOURED.substitute, (_LIGHT, _DARK))
    return f"{_RULES}{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"
