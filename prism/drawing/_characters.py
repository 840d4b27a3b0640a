"""Characters that cannot be drawn or printed."""

from __future__ import annotations

import re

UNSHOWABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""What XML, HTML, a terminal or Vega's expressions (U+2028, U+2029) cannot hold.

A class of characters as Python and polars both read it: control characters, halves of surrogate
pairs, and the separators of lines and paragraphs.
"""

_UNSHOWABLE = re.compile(UNSHOWABLE)


def showable(text: str) -> str:
    """Replace characters that no drawing, page or terminal can show; see `UNSHOWABLE`."""
    return _UNSHOWABLE.sub("\ufffd", text)


def printable(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)
