"""The tags in a reply, and the text between them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

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

THOUGHT = r"""
    \|?+ (?P<thought>think|thinking|thoughts?|reasoning|reflection|scratchpad) \s{0,3}+ \|?+>
  | \|?+ /(?P<said>think|thinking|thoughts?|reasoning|reflection|scratchpad) \s{0,3}+ \|?+>
  | \|channel\|>\s{0,9}+(?:(?P<final>final)|(?P<channel>\w{1,20}))\b
        [^<]{0,40}+ (?:<\|constrain\|>[^<]{0,40}+)?+ <\|message\|>
"""
"""The text after ``<`` where a thought begins or ends: tags, and channels of gpt-oss."""

# Quotes in a start tag may hold any sign. Wherever a tag begins, two others at most are inside
# quotes there, so that the search takes time in proportion to the text.
_TAG = re.compile(
    rf"""<(?=[\s/\\|!acensrtv])\s{{0,3}}+
    (?: (?P<name>agent|next[-_ ]?state|thinking[-_ ]?log|action|type|tags?|value)
            (?P<attributes>(?=[\s/>]) (?:[^<>"']|"[^"]*+"|'[^']*+')*+ )>
      | \\?+/\s{{0,3}}+ (?P<end>agent|next[-_ ]?state|thinking[-_ ]?log|action|type|tags?|value)
            \s{{0,100}}+ (?:>|(?=<))
      | {THOUGHT}
      | (?P<cdata>!\[CDATA\[)
      | (?P<comment>!--)
      | (?P<doctype>!DOCTYPE\b)
      | (?P<turn>\|(?:im_end|eot_id|endoftext|end_of_text|end_of_turn|end|return)\|>
            |/s>|end_of_turn>)
    )""",
    re.VERBOSE | re.IGNORECASE,
)

_NUMBER = re.compile(r"&#(?:x[0-9a-fA-F]{1,6}|[0-9]{1,7});")
_NAMED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))

Kind = Literal["start", "empty", "end", "thought", "said", "comment", "open comment", "turn"]


_KINDS: dict[str, Kind] = {
    "thought": "thought",
    "channel": "thought",
    "said": "said",
    "final": "said",
    "turn": "turn",
}


class Tag(NamedTuple):
    """A tag that means something in a reply.

    Attributes:
        kind: Whether it begins or ends an element or a thought, or what else it is.
        name: The element's name as the specification writes it; empty for other tags.
        start: Where it begins.
        end: Where it ends.
        attributes: What stands in a start tag behind the name.
    """

    kind: Kind
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
        tags: Its tags in order, without those in comments and CDATA sections.
        sections: Its CDATA sections: start, start and end of what they hold, and end.
        is_doubtful: Whether nobody can tell where a CDATA section ends.

    Raises:
        TooManyTagsError: If it cannot be read in the time that a reply may take.
    """

    def __init__(self, text: str) -> None:
        if text.count("<") > MOST_SIGNS:
            raise TooManyTagsError

        self.text = text
        self.sections: list[tuple[int, int, int, int]] = []
        self.is_doubtful = False
        # where each mark that may be looked for ends
        self._ends: dict[str, list[int]] = {}
        self.tags = list(self._tags())

    def content(self, start: int, end: int) -> str:
        """Return what a part of the text says: references are resolved, CDATA is as it stands."""
        said: list[str] = []
        position = start
        for number in range(bisect_left(self.sections, (start,)), len(self.sections)):
            section_start, inner_start, inner_end, section_end = self.sections[number]
            if section_end > end:
                break

            said.append(resolved(self.text[position:section_start]))
            said.append(self.text[inner_start:inner_end])
            position = section_end

        said.append(resolved(self.text[position:end]))

        return "".join(said)

    def _tags(self) -> Iterator[Tag]:
        position = 0
        for _ in range(MOST_TAGS):
            found = _TAG.search(self.text, position)
            if found is None:
                return

            kind, start, position = found.lastgroup, found.start(), found.end()
            if kind == "cdata":
                position = self._end_of_section(start, position)
            elif kind == "doctype":
                position = self._end_of_document_type(position)
            elif kind == "comment":
                yield (comment := self._comment(start, position))
                position = comment.end
            elif kind == "end":
                yield Tag("end", _name(found["end"]), start, position)
            elif kind == "attributes":
                given = found["attributes"]
                begins: Kind = "empty" if given.endswith("/") else "start"
                yield Tag(begins, _name(found["name"]), start, position, given)
            else:
                yield Tag(_KINDS[str(kind)], "", start, position)

        raise TooManyTagsError

    def _end_of(self, mark: str, position: int) -> int | None:
        """Return where the first of a mark from a position on ends."""
        if mark not in self._ends:
            found = re.finditer(re.escape(mark), self.text)
            self._ends[mark] = [each.end() for each in found]

        ends = self._ends[mark]
        number = bisect_left(ends, position + len(mark))
        return ends[number] if number < len(ends) else None

    def _comment(self, start: int, inner: int) -> Tag:
        end = self._end_of("-->", inner)
        return Tag("open comment", "", start, inner) if not end else Tag("comment", "", start, end)

    def _end_of_section(self, start: int, inner: int) -> int:
        """Note a CDATA section, and return where to read on."""
        end = self._end_of("]]>", inner)
        if end is not None and not self._begins_anew(inner, end):
            self.sections.append((start, inner, end - len("]]>"), end))
            return end

        # its mark says nothing, and what follows is read as if it were not there
        self.is_doubtful = True
        self.sections.append((start, inner, inner, inner))

        return inner

    def _begins_anew(self, start: int, end: int) -> bool:
        """Return True if another reply with a section of its own begins inside of a section."""
        agent = self._end_of("<agent", start)
        return agent is not None and agent < end and self.text.find("<![CDATA[", agent, end) >= 0

    def _end_of_document_type(self, position: int) -> int:
        """Return where a document type ends, with the entities that it declares."""
        end = self._end_of(">", position)
        if end is None:
            return position

        if "[" in self.text[position : min(end, position + 1_000)]:
            return self._end_of("]>", position) or end

        return end


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


@lru_cache(maxsize=256)
def _name(written: str) -> str:
    return NAMES[re.sub(r"[-_ ]", "", written.lower())]
