"""Replies in JSON, with or without the outer agent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from prism.cognition._replies._tags import MOST_SIGNS, THOUGHT
from prism.statechart.reasoner._replies._objects import (
    MOST_DEPTH,
    Members,
    holds_cut_text,
    objects_in,
    without_thoughts,
)

MOST_OBJECTS = 2_000
"""How many braces are opened at most in a text that is read as JSON."""
MOST_OBJECTS_NEARLY, MOST_SIGNS_NEARLY = 300, 6_000
"""How many braces, and other signs between values, if it is no valid JSON: that takes longer."""

_BEGINNING = re.compile(
    rf"""(?P<object>\{{(?=\s*+["'}}])) | <(?:{THOUGHT})""",
    re.VERBOSE | re.IGNORECASE,
)

_SIGNS = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z))|[{}\[\]]""", re.DOTALL
)


class Pairs(dict[str, Any]):
    """An object of JSON; of a key that appears twice, the first.

    Attributes:
        repeated: The keys that stand there more than once, with different values.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        for key, value in pairs:
            self.setdefault(key, value)

        is_whole = len(self) == len(pairs)
        again = set() if is_whole else {key for key, value in pairs if self[key] != value}
        self.repeated = sorted(again)


@dataclass(slots=True)
class FoundData:
    """The objects in a reply that are no part of a thought.

    Attributes:
        objects: The objects, in order.
        is_closed: Whether each is closed, as far as can be said.
        is_valid: Whether all that looks like an object is valid JSON.
    """

    objects: list[Pairs] = field(default_factory=list)
    is_closed: bool = True
    is_valid: bool = True


def holds_objects(text: str) -> bool:
    """Return True if objects are to be looked for in a text."""
    signs = (text.count("{"), text.count("["), text.count("<"))
    return 0 < signs[0] <= MOST_OBJECTS and max(signs) <= MOST_SIGNS


def valid_objects(text: str) -> FoundData:
    """Return the objects in a text, without those inside others; none unless all are valid JSON.

    What is inside an object that is broken may look whole, and is not.
    """
    if not holds_objects(text):
        return FoundData()

    # line breaks inside texts are read as they stand
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=Pairs)
    found = FoundData()
    position = 0

    while (begins := _BEGINNING.search(text, position)) is not None:
        position = begins.end()
        if begins["object"]:
            try:
                data, position = decoder.raw_decode(text, begins.start())
            except (ValueError, RecursionError):
                return FoundData(is_valid=False)
            if _is_deep(data):
                return FoundData(is_valid=False)
            found.objects.append(data)
        elif _ends_thought(begins):
            found.objects.clear()
        else:
            tags = _BEGINNING.finditer(text, position)
            position = next((tag.end() for tag in tags if _ends_thought(tag)), len(text))

    return found


def objects_nearly(text: str) -> FoundData:
    """Return the objects in a text as a careful reader takes them; closed only beyond doubt.

    Args:
        text: A reply.
    """
    found = FoundData(is_valid=False)
    # the quotes of people, and the colon of full width, begin and end texts, too
    signs = sum(text.count(sign) for sign in ",:;=[\"'\u201c\u201d\u2018\u2019\uff1a")
    if text.count("{") > MOST_OBJECTS_NEARLY or signs > MOST_SIGNS_NEARLY:
        return found

    # a thought holds whole objects; where it does not, its tag may stand in a text
    said = without_thoughts(text)
    opened, closed = (text.count(brace) - said.count(brace) for brace in "{}")
    found.is_closed = opened == closed

    for each in objects_in(said):
        found.objects.append(_plain(each.members))
        is_whole = is_balanced(said[each.start : each.end]) and not holds_cut_text(each.members)
        found.is_closed &= is_whole

    return found


def _is_deep(data: Any) -> bool:
    """Return True for data nested so deeply that functions that call themselves may not end."""
    layer = [data]
    for _ in range(MOST_DEPTH):
        inner: list[Any] = []
        for each in layer:
            inner.extend(each.values() if isinstance(each, dict) else each)
        layer = [each for each in inner if isinstance(each, dict | list)]
        if not layer:
            return False

    return True


def _ends_thought(tag: re.Match[str]) -> bool:
    return bool(tag["said"] or tag["final"])


def is_balanced(text: str) -> bool:
    """Return True if every bracket outside of quotes is closed, the last by the last sign."""
    if sum(text.count(sign) for sign in "{}[]\"'") > MOST_SIGNS:
        return False

    depth = 0
    for sign in _SIGNS.finditer(text):
        if sign["text"] is None:
            depth += 1 if sign[0] in "{[" else -1

    return depth == 0 and text.endswith("}")


def _plain(value: Any) -> Any:
    if isinstance(value, Members):
        return Pairs([(key, _plain(item)) for key, item in value])
    if isinstance(value, list):
        return [_plain(item) for item in value]

    return str(value) if isinstance(value, str) else value
