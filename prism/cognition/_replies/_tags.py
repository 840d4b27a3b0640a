"""The tags in a reply, and the text between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

MOST_TAGS = 3_000
"""How many tags a reply has at most; one with more repeats itself without end."""

MOST_SIGNS = 15_000
"""How many signs ``<`` it has at most, tags or not."""

NAMES = {
    "agent": "agent",
    "nextstate": "next_state",
    "thinkinglog": "thinking_log",
    "action": "action",
    "type": "type",
    "tag": "tags",
    "tags": "tags",
    "value": "value",
}
"""The names that mean something, without signs between their words, and as they are specified."""

_KIND = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad) \s{0,3}+ \|?+>"
_MESSAGE = r"\b [^<]{0,40}+ (?:<\|constrain\|>[^<]{0,40}+)?+ <\|message\|>"
THOUGHT = rf"""
    (?P<said> \|?+ / {_KIND} | \|channel\|>\s{{0,9}}+ final {_MESSAGE})
  | (?P<thought> \|?+ {_KIND} | \|channel\|>\s{{0,9}}+ \w{{1,20}} {_MESSAGE})
"""
"""The text after ``<`` where a thought ends or begins: tags, and channels of gpt-oss."""

_NAME = r"agent|next[-_ ]?state|thinking[-_ ]?log|action|type|tags?|value"
# Quotes in a start tag may hold any sign. Wherever a tag begins, two others at most are inside
# quotes there, so that the search takes time in proportion to the text.
_TAG = re.compile(
    rf"""<(?=[\s/\\|!acensrtv])\s{{0,3}}+
    (?: (?P<start>(?P<name>{_NAME}) (?P<attributes>(?=[\s/>]) (?:[^<>"']|"[^"]*+"|'[^']*+')*+ )>)
      | (?P<end>\\?+/\s{{0,3}}+ (?P<closed>{_NAME}) \s{{0,100}}+ (?:>|(?=<)))
      | {THOUGHT}
      | (?P<comment>!--)
      | (?P<doctype>!DOCTYPE\b)
      | (?P<cdata>!\[CDATA\[)
      | (?P<turn>\|(?:im_end|eot_id|endoftext|end_of_text|end_of_turn|end|return)\|>
            |/s>|end_of_turn>)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_MOST_DOCTYPE = 1_000

_LESS, _AND, _MARK = "\x00", "\x01", "\x02"
"""Signs for ``<`` and ``&`` that are no markup, and for the mark of a CDATA section; of control
characters, replies have none."""

_OWN_SIGNS = re.compile("[\x00-\x02]")

_NUMBER = re.compile(r"&#(?:x[0-9a-fA-F]{1,6}|[0-9]{1,7});")
_NAMED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


class Tag(NamedTuple):
    """A tag that means something in a reply.

    Attributes:
        kind: ``start``, ``end`` or ``empty`` of an element, ``thought`` or ``said`` where a thought
            begins or ends, ``comment``, ``open comment``, or ``turn``, which ends the reply.
        name: The element's name as the specification writes it; empty for other tags.
        start: Where it begins.
        end: Where it ends.
        attributes: What stands in a start tag behind the name.
    """

    kind: str
    name: str
    start: int
    end: int
    attributes: str = ""


class TooManyTagsError(ValueError):
    """A reply holds more tags than `MOST_TAGS`, or more signs than `MOST_SIGNS`."""


class Markup:
    """A text with its tags.

    Args:
        text: The text.

    Attributes:
        text: The text, with other signs for those in CDATA sections that are no markup.
        tags: Its tags in order, without those in comments and CDATA sections.
        is_doubtful: Whether nobody can tell where a CDATA section ends.

    Raises:
        TooManyTagsError: If it cannot be read in the time that a reply may take.
    """

    def __init__(self, text: str) -> None:
        if text.count("<") > MOST_SIGNS:
            raise TooManyTagsError

        self.tags: list[Tag] = []
        self.is_doubtful = False
        self.text = "".join(self._parts(_OWN_SIGNS.sub("", text)))

    def content(self, start: int, end: int) -> str:
        """Return what a part of the text says: references are resolved, CDATA is as it stands."""
        said = resolved(self.text[start:end])
        return said.replace(_LESS, "<").replace(_AND, "&").replace(_MARK, "")

    def _parts(self, text: str) -> Iterator[str]:
        """Note the tags of a text, and yield its parts, with other signs for those of sections."""
        find = _finder(text)
        position = length = 0
        for _ in range(MOST_TAGS):
            found = _TAG.search(text, position)
            if found is None:
                yield text[position:]
                return

            yield (before := text[position : found.start()])
            said, position = self._part(text, found, find)
            yield said
            length += len(before) + len(said)
            kind, given = str(found.lastgroup), found["attributes"] or ""
            if given.endswith("/"):
                kind = "empty"
            elif kind == "comment" and position == found.end():
                kind = "open comment"
            if kind not in ("doctype", "cdata"):
                name = key_of(found["name"] or found["closed"] or "")
                self.tags.append(Tag(kind, name, length - len(said), length, given))

        raise TooManyTagsError

    def _part(
        self, text: str, found: re.Match[str], find: Callable[[str, int], int]
    ) -> tuple[str, int]:
        """Return what stands for a tag, a comment or a section, and where to read on."""
        start, end = found.span()
        if found.lastgroup == "comment":
            end = find("-->", end) or end
        elif found.lastgroup == "doctype":
            end = find(">", end) or end
            if "[" in text[start : min(end, start + _MOST_DOCTYPE)]:
                end = find("]>", start) or end
            return text[start:end].replace("<", _LESS), end
        elif found.lastgroup == "cdata":
            closed, agent = find("]]>", end), find("<agent", end)
            # another reply with a section of its own may begin inside of a section
            again = find("<![CDATA[", agent) if agent else 0
            if not closed or 0 < again <= closed:
                self.is_doubtful = True
                return _MARK, end
            said = text[end : closed - len("]]>")]
            return _MARK + said.replace("<", _LESS).replace("&", _AND), closed

        return text[start:end], end


def _finder(text: str) -> Callable[[str, int], int]:
    """Return what finds where the first of a mark ends from a position on, 0 if there is none.

    It takes time in proportion to the text for all positions together if they only grow.
    """
    known: dict[str, int] = {}

    def find(mark: str, position: int) -> int:
        if known.get(mark, 1) and known.get(mark, 0) < position + len(mark):
            begins = text.find(mark, position)
            known[mark] = begins + len(mark) if begins >= 0 else 0
        return known[mark]

    return find


def key_of(written: str) -> str:
    """Return the name that a key or a tag stands for; itself if it means nothing."""
    return NAMES.get(re.sub(r"[-_ ]", "", written[:40].lower()), written)


def resolved(text: str) -> str:
    """Return a text with XML's own references resolved; all other signs stay as they are."""
    if "&" not in text:
        return text

    if "&#" in text:
        text = _NUMBER.sub(lambda found: _sign_of(found[0]), text)
    for reference, sign in _NAMED:
        text = text.replace(reference, sign)

    return text


@lru_cache(maxsize=1024)
def _sign_of(reference: str) -> str:
    digits = reference[2:-1]
    number = int(digits[1:], 16) if digits.startswith("x") else int(digits)
    if number == ord("&"):
        return "&amp;"  # resolved with the others, so that nothing is resolved twice

    is_sign = number in (9, 10, 13) or 0x20 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF

    return chr(number) if is_sign else reference
