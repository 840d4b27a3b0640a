"""The tags in a reply, and the text between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
            (?P<attributes>(?=[\s/>]) (?:[^<>"'\x00\x02]|"[^"]*+"|'[^']*+')*+ )>
      | \\?+/\s{{0,3}}+ (?P<end>agent|next[-_ ]?state|thinking[-_ ]?log|action|type|tags?|value)
            \s{{0,100}}+ (?:>|(?=[<\x00\x02]))
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

Kind = Literal[
    "start", "empty", "end", "thought", "said", "comment", "open comment", "turn", "rest"
]
_KINDS: dict[str, Kind] = {
    "attributes": "start",
    "end": "end",
    "comment": "comment",
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
        text: The text, with other signs for those in CDATA sections that are no markup.
        tags: Its tags in order, without those in comments and CDATA sections.
        is_doubtful: Whether nobody can tell where a CDATA section ends.

    Raises:
        TooManyTagsError: If it cannot be read in the time that a reply may take.
    """

    def __init__(self, text: str) -> None:
        if text.count("<") > MOST_SIGNS:
            raise TooManyTagsError

        self.is_doubtful = False
        self.text = "".join(self._shielded(_OWN_SIGNS.sub("", text)))
        self.tags = list(self._tags())

    def content(self, start: int, end: int) -> str:
        """Return what a part of the text says."""
        return content_of(self.text[start:end])

    def _shielded(self, text: str) -> Iterator[str]:
        """Yield the parts of a text, with other signs where its own are no markup."""
        find = _finder(text)
        position = 0
        while (begins := _TAG.search(text, position)) is not None:
            yield text[position : begins.start()]
            (start, inner), kind = begins.span(), begins.lastgroup
            if kind == "cdata":
                yield _MARK
                position = self._end_of_section(find, inner)
                said = text[inner : max(position - len("]]>"), inner)]
                yield said.replace("<", _LESS).replace("&", _AND)
            elif kind == "doctype":
                position = find(">", inner) or inner
                if "[" in text[inner : min(position, inner + _MOST_DOCTYPE)]:
                    position = find("]>", inner) or position
                yield text[start:position].replace("<", _LESS)
            else:
                position = (find("-->", inner) if kind == "comment" else 0) or inner
                yield text[start:position]

        yield text[position:]

    def _end_of_section(self, find: Callable[[str, int], int], inner: int) -> int:
        """Return where to read on behind the mark of a CDATA section: its end, if that is known."""
        end, agent = find("]]>", inner), find("<agent", inner)
        # another reply with a section of its own may begin inside of a section
        again = find("<![CDATA[", agent) if agent else 0
        self.is_doubtful |= not end or 0 < again <= end
        return inner if not end or 0 < again <= end else end

    def _tags(self) -> Iterator[Tag]:
        find = _finder(self.text)
        position = 0
        for _ in range(MOST_TAGS):
            found = _TAG.search(self.text, position)
            if found is None:
                return

            kind, start, position = _KINDS[str(found.lastgroup)], found.start(), found.end()
            name, attributes = found["name"] or found["end"] or "", found["attributes"] or ""
            if kind == "comment":
                end = find("-->", position)
                kind, position = ("comment", end) if end else ("open comment", position)
            elif attributes.endswith("/"):
                kind = "empty"
            yield Tag(kind, key_of(name), start, position, attributes)

        raise TooManyTagsError


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


def content_of(text: str) -> str:
    """Return what a part of a `Markup` says: references are resolved, CDATA is as it stands."""
    return resolved(text).replace(_LESS, "<").replace(_AND, "&").replace(_MARK, "")


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
