"""Reading data that a model wrote as JSON, more or less."""

from __future__ import annotations

import json
import re
from typing import Any

from prism.statechart.reasoner._replies._excerpt import excerpt
from prism.statechart.reasoner._replies._objects import Members, holds_cut_text, objects_in
from prism.statechart.reasoner._replies._thoughts import what_is_said

_FENCE = re.compile(r"(?:```|~~~)[A-Za-z]*")
_CLOSES_A_VALUE = ('"', "'", "\N{RIGHT DOUBLE QUOTATION MARK}", "}", "]")


def find_json(text: str) -> Any:
    """Return the data in a model's reply: all of it, or the last object in it.

    Thoughts, code fences and words around it are passed over, and quotes and commas that are wrong
    are read as they were meant. What was cut off is refused: half a number is another number.

    Args:
        text: The raw reply.

    Raises:
        ValueError: If there is no data in it, or only a part.
    """
    said = _FENCE.sub("", what_is_said(text)).strip("\ufeff \t\r\n")
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        pass

    found = list(objects_in(said))
    if not found:
        raise ValueError(f"there is no JSON in the reply {excerpt(text)}")

    last = found[-1]
    is_open = said[last.start : last.end].count("{") > said[last.start : last.end].count("}")
    is_cut = last.end >= len(said) and is_open and not said.endswith(_CLOSES_A_VALUE)
    if is_cut or holds_cut_text(last.members):
        raise ValueError(f"the reply is cut off: {excerpt(text)}")

    return _plain(last.members)


def _plain(value: Any) -> Any:
    """Return what was read as plain data; of a key that stands twice, the last."""
    if isinstance(value, Members):
        return {key: _plain(item) for key, item in value}
    if isinstance(value, list):
        return [_plain(item) for item in value]

    return value
