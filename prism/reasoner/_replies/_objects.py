"""What a model says, and JSON as models write it, with quotes and commas of any kind."""

# ruff: noqa: RUF001 (models write signs that look like others)

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_END_SIGN = r"(?:/|end_(?:of_)?)"
_KIND = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)\s{0,3}\|?[>\]▷]"
_START = re.compile(rf"[<\[◁]\|?(?:(?:begin|start)_(?:of_)?)?{_KIND}", re.IGNORECASE)
_END = re.compile(rf"[<\[◁]\|?{_END_SIGN}{_KIND}", re.IGNORECASE)
_THOUGHT = re.compile(rf"{_START.pattern}.*?{_END.pattern}", re.IGNORECASE | re.DOTALL)
_DONE_THINKING = "...done thinking."

_CHANNEL = "<|channel|>"
_FINAL_MESSAGE = re.compile(r"\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call|start)\|>")
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|end_of_text|end_of_turn|end|return)\|>|</s>|<end_of_turn>"
)


def what_is_said(reply: str) -> str:
    """Return the model's own turn without its thoughts.

    Thoughts stand between tags of the kinds in use, or in another channel than the final one. A
    model that goes on after the end of its turn writes the turns of others.
    """
    after_channels = _final_channel(reply)
    said = without_thoughts(after_channels.rpartition(_DONE_THINKING)[2])
    turns = (turn for turn in _END_OF_TURN.split(said) if turn.strip())
    return next(turns, "")


def without_thoughts(text: str) -> str:
    """Drop everything between tags of thoughts, before a lone end tag and after a lone start."""
    behind = 0
    for tag in _END.finditer(text):
        behind = tag.end()
    # every start tag before the last end tag has its end, so each is looked for once
    before = _END.split(_THOUGHT.sub("", text[:behind]))[-1]

    return before + _START.split(text[behind:], maxsplit=1)[0]


def _final_channel(text: str) -> str:
    """Return what a model of the gpt-oss family says in its final channel; all, if it has none."""
    if _CHANNEL in text:
        finals = (
            _END_OF_MESSAGE.split(part[start.end() :], maxsplit=1)[0]
            for part in text.split(_CHANNEL)
            if (start := _FINAL_MESSAGE.match(part))
        )
        return "".join(finals)

    # servers that drop special tokens leave the names of role and channel
    if text.lstrip().startswith("analysis"):
        return text.rpartition("assistantfinal")[2]

    return text


def parse_whole(text: str) -> Any:
    """Return the value of a text that is JSON as a whole; None if it is not.

    A null is None, too: it says as little.
    """
    try:
        return json.loads(text, object_pairs_hook=Members)
    except (ValueError, RecursionError):  # ValueError also for a number of too many digits
        return None


_MOST_CHARACTERS = 120


def excerpt(given: Any) -> str:
    """Return the repr of something, shortened."""
    shown = repr(given)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 3] + "..."


MOST_DEPTH = 32
"""How deeply values are nested in each other at most; what is deeper is broken off."""


class Members(list[tuple[str, Any]]):
    """The keys and values of an object, in order; a key may stand there twice."""


class CutText(str):
    """A text without its closing quote, so that more may have followed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object in a text.

    Args:
        start: Position of its opening brace.
        end: Position behind it.
        members: Its keys and values.
        has_comment: Whether a comment stands in it.
    """

    start: int
    end: int
    members: Members
    has_comment: bool = False


def objects_in(text: str) -> Iterator[FoundObject]:
    """Yield the objects in a text, in order, without those that are inside others.

    It is read once from left to right: where an object is broken it ends, and the search goes on
    from there.
    """
    brace = _BEGINNING.search(text)
    while brace is not None:
        scanner = _Scanner(text, brace.start())
        members = scanner.read(0)
        end = max(scanner.position, brace.end())
        if members:
            yield FoundObject(brace.start(), end, members, scanner.has_comment)

        brace = _BEGINNING.search(text, end)


# A quote closes a text where something follows that belongs to the object; others are part of it.
_CLOSES = r"""(?=\s*+(?:[,;:=：}\])`]|//|</|$)|[ \t]*+\n|\s*+["'“][^"'”\n]{1,60}["'”]\s*+:)"""


def _quoted(opening: str, closing: str) -> re.Pattern[str]:
    body = rf"(?:[^\\{closing}]|\\.|[{closing}](?!{_CLOSES}))*+"
    return re.compile(rf"[{opening}]({body})(?:([{closing}])|\\?$)", re.DOTALL)


_TEXTS = {
    '"': _quoted('"', '"'),
    "'": _quoted("'", "'"),
    "“": _quoted("“", '”“"'),
    "”": _quoted("”", '”"'),
    "‘": _quoted("‘", "’'"),
}
_BEGINNING = re.compile(r"""\{(?=\s*+(?:["'“”‘,;/]|[^\W\d]))""")
_SPACE = re.compile(r"(?:\s++|//[^\n]*+)*+")
_PLAIN_KEY = re.compile(r"[^\W\d][\w\- ]{0,60}")
_PLAIN_VALUE = re.compile(r"[^,;{}\[\]\n\"“]{1,200}")
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,17})?([eE][-+]?\d{1,2})?", re.ASCII)
_BARE_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*+)"')
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}
_MISSING = object()
_MOST_REREAD = 200


class _Scanner:
    """Reads one object, and what is in it, from left to right.

    Args:
        text: The text.
        position: Where the object begins.

    Attributes:
        position: Where the part that could be read ends.
        is_broken: Whether something stood there that is no part of an object.
        has_comment: Whether a comment was passed over.
    """

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.is_broken = False
        self.has_comment = False

    def read(self, depth: int) -> Any:
        """Read an object or a list until its end, or until it is broken."""
        is_object = self.text[self.position] == "{"
        items: list[Any] = Members() if is_object else []
        self.position += 1

        while not self.is_broken:
            begun = self.position
            sign = self._next()
            if sign == ("}" if is_object else "]"):
                self.position += 1
                break
            if sign in (",", ";"):
                self.position += 1
                continue

            item = self._read_member(depth) if is_object else self._read_value(depth + 1)
            if item is _MISSING:
                self._break_off(begun)
            else:
                items.append(item)

        return items

    def _read_member(self, depth: int) -> Any:
        key = self._read_text() if self._next() in _TEXTS else self._match(_PLAIN_KEY)
        if key is None or self._next() not in (":", "=", "："):
            return _MISSING

        self.position += 1
        value = self._read_value(depth + 1)

        return value if value is _MISSING else (key.strip(), value)

    def _read_value(self, depth: int) -> Any:
        sign = self._next()
        if sign in ("{", "["):
            return _MISSING if depth > MOST_DEPTH else self.read(depth)
        if sign in _TEXTS:
            return self._read_text()

        plain = self._match(_PLAIN_VALUE)
        self.has_comment |= plain is not None and "//" in plain

        return _MISSING if plain is None else _plain_value(plain)

    def _read_text(self) -> str:
        found = _TEXTS[self.text[self.position]].match(self.text, self.position)
        assert found is not None  # every quote begins a text, if only one that never ends
        self.position = found.end()
        body = _unescaped(found[1])

        return body if found[2] else CutText(body)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.position)
        if found is None:
            return None

        self.position = found.end()
        return found[0]

    def _next(self) -> str:
        """Return the next sign that is not a space, with the position on it; empty at the end."""
        found = _SPACE.match(self.text, self.position)
        assert found is not None  # it may be empty
        self.position = found.end()
        self.has_comment |= "/" in found[0]
        return self.text[self.position : self.position + 1]

    def _break_off(self, position: int) -> None:
        """Stop, and leave what was read since a position to be read again, if that is little."""
        self.is_broken = True
        if self.position - position <= _MOST_REREAD:
            self.position = position


def _plain_value(text: str) -> Any:
    """Return what a value without quotes stands for."""
    plain = text.partition("//")[0].strip()
    if plain.lower() in _CONSTANTS:
        return _CONSTANTS[plain.lower()]

    number = _NUMBER.fullmatch(plain)
    if number is None:
        return plain

    return float(plain) if any(number.groups()) else int(plain)


def _unescaped(body: str) -> str:
    """Return a text without its backslashes; with them, if they escape nothing."""
    if "\\" not in body:
        return body

    for mend in (str, _with_escaped_quotes):
        try:
            return str(json.loads(f'"{mend(body)}"', strict=False))
        except ValueError:
            continue

    return body


def _with_escaped_quotes(body: str) -> str:
    return _BARE_QUOTE.sub(r'\1\\"', body.replace("\\'", "'"))


def holds_cut_text(value: Any) -> bool:
    """Return True if a text in it was never closed."""
    if isinstance(value, Members):
        return any(holds_cut_text(item) for _, item in value)
    if isinstance(value, list):
        return any(holds_cut_text(item) for item in value)

    return isinstance(value, CutText)


FENCE: re.Pattern[str] = re.compile(r"(?:```|~~~)[A-Za-z]*")
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
    said = FENCE.sub("", what_is_said(text)).strip("\ufeff \t\r\n")
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
    """Return what was read as plain data; of a key that appears twice, a dict has the last."""
    if isinstance(value, Members):
        return {key: _plain(item) for key, item in value}
    if isinstance(value, list):
        return [_plain(item) for item in value]

    return str(value) if isinstance(value, str) else value
