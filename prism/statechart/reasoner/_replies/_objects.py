"""JSON as models write it, between thoughts and with quotes and commas of any kind."""

# ruff: noqa: RUF001 (models write signs that look like others)

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MOST_CHARACTERS = 120


def excerpt(given: Any) -> str:
    """Return the repr of something, shortened."""
    shown = repr(given)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 3] + "..."


_MOST_TAGS = 1_000

_NAMES = ("think", "thought", "reasoning", "reflection", "scratchpad")
_TAG = re.compile(
    r"""[<\[◁] \|?+ (?P<end>/|end_(?:of_)?)?+ (?:(?:begin|start)_(?:of_)?)?+ (?:seed:)?+
        (?:think|thinking|thoughts?|reasoning|reflection|scratchpad) \s{0,3}\|?[>\]▷]
    """,
    re.VERBOSE | re.IGNORECASE,
)
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
    """Drop everything between tags of thoughts."""
    lowered = text.lower()
    if not any(name in lowered for name in _NAMES):
        return text

    # what precedes a lone end tag, or follows a lone start tag, is a thought, too
    said: list[str] = []
    position, is_thinking = 0, False
    for number, tag in enumerate(_TAG.finditer(text)):
        if number == _MOST_TAGS:
            return ""  # nobody thinks so often: the model repeats itself without end

        if tag["end"] is None:
            if not is_thinking:
                said.append(text[position : tag.start()])
            is_thinking = True
        else:
            if not is_thinking:
                said.clear()
            is_thinking, position = False, tag.end()

    return "".join(said) if is_thinking else "".join((*said, text[position:]))


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
    """

    start: int
    end: int
    members: Members


def objects_in(text: str) -> Iterator[FoundObject]:
    """Yield the objects in a text, in order, without those that are inside others.

    It is read once from left to right: where an object is broken it ends, and the search goes on
    from there.
    """
    brace = _BEGINNING.search(text)
    while brace is not None:
        scanner = _Scanner(text, brace.start())
        members = scanner.read_object(0)
        end = max(scanner.position, brace.end())
        if members:
            yield FoundObject(brace.start(), end, members)

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
_FRACTION = re.compile(r"-?\d{1,15}(\.\d{1,17})?([eE][-+]?\d{1,2})?", re.ASCII)
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
    """

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.is_broken = False

    def read_object(self, depth: int) -> Members:
        """Read an object until its end, or until it is broken."""
        self.position += 1
        members = Members()

        while True:
            read_until = self.position
            sign = self._next()
            if sign in (",", ";"):
                self.position += 1
            elif sign == "}":
                self.position += 1
                return members
            else:
                member = self._read_member(depth)
                if member is not None:
                    members.append(member)
                else:
                    self._break_off(read_until)
                if self.is_broken:
                    return members

    def _read_member(self, depth: int) -> tuple[str, Any] | None:
        key = self._read_text() if self._next() in _TEXTS else self._match(_PLAIN_KEY)
        if key is None or self._next() not in (":", "=", "："):
            return None

        self.position += 1
        value = self._read_value(depth + 1)

        return None if value is _MISSING else (key.strip(), value)

    def _read_list(self, depth: int) -> list[Any]:
        self.position += 1
        items: list[Any] = []

        while not self.is_broken:
            sign = self._next()
            if sign == ",":
                self.position += 1
            elif sign == "]":
                self.position += 1
                return items
            else:
                value = self._read_value(depth + 1)
                if value is _MISSING:
                    self._break_off(self.position)
                else:
                    items.append(value)

        return items

    def _read_value(self, depth: int) -> Any:
        sign = self._next()
        if sign in ("{", "["):
            if depth > MOST_DEPTH:
                return _MISSING
            return self.read_object(depth) if sign == "{" else self._read_list(depth)

        if sign in _TEXTS:
            return self._read_text()

        plain = self._match(_PLAIN_VALUE)

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

    if re.fullmatch(r"-?\d{1,15}", plain, re.ASCII):
        return int(plain)
    if _FRACTION.fullmatch(plain):
        return float(plain)

    return plain


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
