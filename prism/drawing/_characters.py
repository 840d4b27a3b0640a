"""Characters that cannot be drawn or printed."""

from __future__ import annotations

import re

_UNSHOWABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def showable(text: str) -> str:
    """Replace characters that neither XML nor a terminal can show, such as control characters."""
    return _UNSHOWABLE.sub("\ufffd", text)


def printable(text: str) -> str:
    """Return a text on one line, without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)
