"""Replies in JSON, with or without the outer agent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from prism.cognition._replies._tags import MOST_SIGNS, THOUGHT
from prism.statechart.reasoner._replies._objects import (
    MOST_DEPTH,
    holds_cut_text,
    objects_in,
    parse_whole,
    plain,
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
# the quotes of people, and the colon of full width, begin and end texts, too
_SIGNS_NEARLY = ",:;=[\"'\u201c\u201d\u2018\u2019\uff1a"
_SIGNS = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z))|[{}\[\]]""", re.DOTALL
)


class Pairs(dict[str, Any]):
    """An object of JSON; of a key that appears twice, the first.

    Attributes:
        repeated: The keys that stand there more than once, with different values.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.update(reversed(pairs))
        self.repeated = sorted({key for key, value in pairs if self[key] != value})


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


def loaded(text: str) -> Any:
    """Return the value of a text of JSON, with line breaks in its texts too; None if it is none."""
    return parse_whole(text, Pairs, strict=False)


def found_in(text: str) -> FoundData:
    """Return the objects in a text: of valid JSON, else as a careful reader takes them."""
    found = valid_objects(text)
    return found if found.objects else objects_nearly(text)


def valid_objects(text: str) -> FoundData:
    """Return the objects in a text, without those inside others; none unless all are valid JSON.

    What is inside an object that is broken may look whole, and is not.
    """
    found = FoundData()
    signs = (text.count("{"), text.count("["), text.count("<"))
    if not 0 < signs[0] <= MOST_OBJECTS or max(signs) > MOST_SIGNS:
        return found

    # line breaks inside texts are read as they stand
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=Pairs)
    is_thinking = False
    position = 0
    while (begins := _BEGINNING.search(text, position)) is not None:
        position = begins.end()
        if begins["said"]:
            # what precedes a lone end tag is a thought, too
            found.objects = found.objects if is_thinking else []
            is_thinking = False
        elif not begins["object"]:
            is_thinking = True
        elif not is_thinking:
            try:
                data, position = decoder.raw_decode(text, begins.start())
            except (ValueError, RecursionError):
                return FoundData(is_valid=False)
            if _is_deep(data):
                return FoundData(is_valid=False)
            found.objects.append(data)

    return found


def objects_nearly(text: str) -> FoundData:
    """Return the objects in a text as a careful reader takes them; closed only beyond doubt."""
    found = FoundData(is_valid=False)
    signs = sum(map(text.count, _SIGNS_NEARLY))
    is_long = text.count("{") > MOST_OBJECTS_NEARLY or text.count("<") > MOST_SIGNS
    if is_long or signs > MOST_SIGNS_NEARLY:
        return found

    # a thought holds whole objects; where it does not, its tag may stand in a text
    said = without_thoughts(text)
    opened, closed = (text.count(brace) - said.count(brace) for brace in "{}")
    found.is_closed = opened == closed
    for each in objects_in(said):
        found.objects.append(plain(each.members, Pairs))
        is_whole = is_balanced(said[each.start : each.end]) and not holds_cut_text(each.members)
        found.is_closed &= is_whole

    return found


def _is_deep(data: Any, left: int = MOST_DEPTH) -> bool:
    """Return True for data nested so deeply that functions that call themselves may not end."""
    inner = data.values() if isinstance(data, dict) else data
    return left == 0 or any(_is_deep(it, left - 1) for it in inner if isinstance(it, dict | list))


def is_balanced(text: str) -> bool:
    """Return True if every bracket outside of quotes is closed, the last by the last sign."""
    if sum(map(text.count, "{}[]\"'")) > MOST_SIGNS:
        return False

    signs = [sign[0] for sign in _SIGNS.finditer(text) if sign["text"] is None]
    opened = sum(sign in "{[" for sign in signs)
    return 2 * opened == len(signs) and text.endswith("}")
