"""Texts of a diagram: their width, where they are cut, and how they are drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from textwrap import wrap
from unicodedata import category, east_asian_width

UNSHOWABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that XML, HTML, a terminal or Vega's expressions (U+2028, U+2029) cannot hold.

A class of characters as Python and polars both read it: control characters, halves of surrogate
pairs, and the separators of lines and paragraphs.
"""

_UNSHOWABLE = re.compile(UNSHOWABLE)


def showable(text: str) -> str:
    """Replace characters that no drawing, page or terminal can show; see ``UNSHOWABLE``."""
    return _UNSHOWABLE.sub("\ufffd", text)


def printable(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


_FONT_SIZE, _SMALL_FONT_SIZE = 13.0, 11.0
_LINE_HEIGHT, _SMALL_LINE_HEIGHT = 17.0, 14.0
_MAX_NAME_CHARACTERS, _MAX_NAME_LINES = 22, 4
_MAX_LABEL_CHARACTERS, _MAX_LABEL_LINES = 44, 6


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text and the room they take.

    Args:
        lines: The lines.
        classes: The style class of each: ``name``, ``small`` or ``count``.
        full: The text in full, for the tooltip.
        room: Least width to reserve for it.
    """

    lines: tuple[str, ...]
    classes: tuple[str, ...]
    full: str = ""
    room: float = 0.0
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        widths = [
            text_width(line) * (_FONT_SIZE if name == "name" else _SMALL_FONT_SIZE)
            for line, name in zip(self.lines, self.classes, strict=True)
        ]
        object.__setattr__(self, "width", max([*widths, self.room]))
        object.__setattr__(self, "height", sum(map(_line_height, self.classes)))

    def at(self, x: float, y: float, anchor: str = "middle") -> str:
        """Draw the lines with their vertical middle at y, anchored at x."""
        parts = []
        top = y - self.height / 2

        for line, name in zip(self.lines, self.classes, strict=True):
            height = _line_height(name)
            baseline = top + height * 0.76
            parts.append(
                f'<text class="{name}" x="{x:.1f}" y="{baseline:.1f}" text-anchor="{anchor}">'
                f"{escape(line, quote=False)}</text>"
            )
            top += height

        return "".join(parts)


def state_text(state: str, timeout: int | None, agents: int | None = None) -> Text:
    """Return the name of a state, wrapped and cut to fit a box.

    Args:
        state: The state.
        timeout: Its time-out in ticks, shown below the name; None if it has none.
        agents: The number of agents in it, shown at the end; None shows none.
    """
    name = " ".join(showable(state).split()) or state
    lines = wrap(name, _MAX_NAME_CHARACTERS, break_on_hyphens=False) or [" "]
    if len(lines) > _MAX_NAME_LINES:
        last = _MAX_NAME_LINES - 1
        lines[last:] = [_shortened(lines[last] + " …", _MAX_NAME_CHARACTERS)]

    classes = ["name"] * len(lines)
    if timeout is not None:
        lines.append(f"time-out after {timeout} ticks")
        classes.append("small")
    if agents is None:
        return Text(tuple(lines), tuple(classes), state)

    # room for a million keeps the box as wide in every round
    counted = f"{agents:,} {'agent' if agents == 1 else 'agents'}"
    room = text_width("999,999 agents") * _SMALL_FONT_SIZE

    return Text((*lines, counted), (*classes, "count"), state, room)


def label_text(labels: Sequence[str], counts: Sequence[int | None] | None, full: str) -> Text:
    """Return the label of an arrow, cut to fit, with how often the arrow was used below.

    Args:
        labels: The transitions of the arrow.
        counts: How often it was used, in this picture and in those beside it, which all reserve the
            width of the widest; None shows none. One that is not known is left out.
        full: The text in full.
    """
    lines = [_shortened(showable(label), _MAX_LABEL_CHARACTERS) for label in labels]
    if len(lines) > _MAX_LABEL_LINES:
        last = _MAX_LABEL_LINES - 1
        lines[last:] = [f"and {len(lines) - last} more"]

    classes = ["small"] * len(lines)
    if counts is None or set(counts) == {None}:
        return Text(tuple(lines), tuple(classes), full)

    shown = ["" if count is None else f"{count:,}\N{MULTIPLICATION SIGN}" for count in counts]
    room = max(map(text_width, shown)) * _SMALL_FONT_SIZE

    return Text((*lines, shown[0]), (*classes, "count"), full, room)


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
    if character in "mwMW@%—":
        return 0.86

    return 0.7 if character.isupper() else 0.6


def _line_height(name: str) -> float:
    return _LINE_HEIGHT if name == "name" else _SMALL_LINE_HEIGHT


def _shortened(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
