"""Texts of limited length in a language: asking a model for one, and reading its reply.

JSON replies are validated against their schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any
from unicodedata import category, combining

from prism.errors import FieldTypeError, FieldValueError
from prism.reasoner._texts import TextCall, whole_characters

_MOST_NUMBER = 2**63
_MOST_DEPTH = 50
_SHOWN = 60

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == int(value),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


_KEYWORDS: Mapping[str, tuple[Any, str]] = {
    "type": (str | list, "the name of a type, or a list of them"),
    "enum": (list, "a list of values"),
    "required": (list, "a list of keys"),
    "properties": (Mapping, "an object of schemas"),
    "minimum": (int | float, "a number"),
    "maximum": (int | float, "a number"),
}
"""The types of the supported keywords' values."""


def require_schema(schema: Any, where: str = "schema") -> None:
    """Refuse an invalid schema.

    Raises:
        FieldTypeError: If it is not a JSON Schema, or has invalid keywords; the message names the
            place.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise FieldTypeError(f"{where} must be a JSON Schema, which is an object, got {schema!r}")

    for name, (kinds, what) in _KEYWORDS.items():
        if name in schema and not isinstance(schema[name], kinds):
            raise FieldTypeError(f"{name} of {where} must be {what}, got {schema[name]!r}")
    for name, part in schema.get("properties", {}).items():
        require_schema(part, f"{name!r} of {where}")
    if "items" in schema:
        require_schema(schema["items"], f"items of {where}")


def require_data(value: Any, schema: Any, where: str = "the reply", depth: int = 0) -> None:
    """Refuse data that a schema does not allow, or that a log cannot hold.

    The supported keywords of JSON Schema are ``type``, ``enum``, ``required``, ``properties``,
    ``items``, ``minimum`` and ``maximum``; others are only for the model.

    Args:
        value: The data.
        schema: The schema; anything but an object allows everything.
        where: The name of the data, for messages.
        depth: Number of lists and objects around it.

    Raises:
        ValueError: If the data is refused; the message names the place.
    """
    if depth > _MOST_DEPTH:
        raise ValueError(f"the reply's data is nested more than {_MOST_DEPTH} levels deep")

    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    for fault_in in (_fault_of_number, _fault_of_type, _fault_of_enum, _fault_of_keys):
        fault = fault_in(value, known)
        if fault is not None:
            raise ValueError(f"{where} {fault}")

    for part, own, place in _parts_of(value, known):
        require_data(part, own, f"{place} of {where}", depth + 1)


def _parts_of(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any, str]]:
    """Yield the items of a list or an object, with their schemas and places."""
    if isinstance(value, dict):
        schemas = schema.get("properties", {})
        yield from ((item, schemas.get(key), repr(key)) for key, item in value.items())
    if isinstance(value, list):
        own = schema.get("items")
        yield from ((item, own, f"item {number}") for number, item in enumerate(value, start=1))


def _fault_of_number(value: Any, schema: Mapping[str, Any]) -> str | None:
    if not isinstance(value, int | float):
        return None
    if not _can_be_kept(value):
        return f"is {_shown(value)}, which is too large or not a number"
    if isinstance(value, bool):
        return None
    if "minimum" in schema and value < schema["minimum"]:
        return f"must be at least {schema['minimum']}, got {_shown(value)}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"must be at most {schema['maximum']}, got {_shown(value)}"

    return None


def _fault_of_type(value: Any, schema: Mapping[str, Any]) -> str | None:
    kinds = schema.get("type", ())
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    # an unknown type is only for the model
    if not names or any(name not in _TYPES or _TYPES[name](value) for name in names):
        return None

    return f"must be {_named(names)}, got {_shown(value)}"


def _fault_of_enum(value: Any, schema: Mapping[str, Any]) -> str | None:
    if "enum" not in schema or any(_is_same(value, each) for each in schema["enum"]):
        return None

    return f"must be one of {', '.join(map(repr, schema['enum']))}, got {_shown(value)}"


def _fault_of_keys(value: Any, schema: Mapping[str, Any]) -> str | None:
    required = schema.get("required", ()) if isinstance(value, dict) else ()
    missing = next((key for key in required if key not in value), None)
    return None if missing is None else f"has no {missing!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_same(value: Any, other: Any) -> bool:
    # True is 1 in Python, but not in JSON
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _can_be_kept(value: float) -> bool:
    return isfinite(value) if isinstance(value, float) else abs(value) < _MOST_NUMBER


def _named(names: list[str]) -> str:
    articles = ("an" if name[0] in "aio" else "a" for name in names)
    return " or ".join(f"{article} {name}" for article, name in zip(articles, names, strict=True))


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python does not format numbers of more than a few thousand digits
        return "a number of very many digits"

    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


POST_LENGTH = 280
"""The default maximum length of a text, that of a post on X."""

_MOST_LENGTH = 100_000
_MOST_LANGUAGE = 60
_ELLIPSIS = "…"
_LINE_BREAK = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*\n")
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff]")
# signs that turn the text around them, and the mark of a file's beginning

_JOINER = "\u200d"
_MODIFIERS = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)


def _require_json(key: str, fallback: Any) -> None:
    try:
        json.dumps(fallback)
    except (TypeError, ValueError, RecursionError):
        raise FieldTypeError(
            f"the template of the text {key!r} must be a text or JSON data, got {fallback!r}"
        ) from None


@dataclass(frozen=True, slots=True)
class Wording:
    """The maximum length and the language of a text.

    Args:
        max_length: Maximum number of characters (Unicode code points). A longer text is cut after a
            word, and ends with an ellipsis.
        language: Language named in the prompt, such as ``"German"`` or ``"pt-BR"``; None leaves it
            to the model.

    Raises:
        FieldValueError: If ``max_length`` is below 1, or the language is not a name.
    """

    max_length: int = POST_LENGTH
    language: str | None = None

    def __post_init__(self) -> None:
        """Refuse limits that no text can meet."""
        most = self.max_length
        is_whole = isinstance(most, int) and not isinstance(most, bool)
        if not is_whole or not 1 <= most <= _MOST_LENGTH:
            raise FieldValueError(
                f"max_length must be a whole number from 1 to {_MOST_LENGTH}, got {most!r}"
            )

        name = self.language
        if name is not None and not (isinstance(name, str) and _is_name(name)):
            raise FieldValueError(
                f"language must be a name of at most {_MOST_LANGUAGE} characters on one line, got "
                f"{name!r}"
            )

    def call(
        self,
        agent: Any,
        key: str,
        prompt: str,
        *,
        persona: str = "",
        schema: Mapping[str, Any] | None = None,
        fallback: Any = None,
    ) -> TextCall:
        """Return the call for a text.

        The parts that all calls share come first, so that servers can reuse what they have read.

        Args:
            agent: The agent.
            key: Purpose of the text; together with the agent, the name of the call in a log.
            prompt: What to write.
            persona: Description of the writer.
            schema: JSON Schema of the answer, if it is not one text.
            fallback: The result if no usable text comes.

        Raises:
            FieldTypeError: If it is not a schema, or the fallback cannot be written to a log.
        """
        if schema is not None:
            require_schema(schema)
        if not isinstance(fallback, str | None):
            _require_json(key, fallback)

        told = "\n\n".join(part for part in (self._rules(schema), persona, prompt) if part)
        if schema is not None:
            own = dict(schema)
            return TextCall(
                agent, key, told, own, lambda reply: read_data(reply, own), fallback=fallback
            )

        return TextCall(
            agent, key, told, self._schema(), self.read, fallback=fallback, cuts=self.cuts
        )

    def read(self, reply: str) -> str:
        """Return the text in a model's reply, cleaned and cut to the allowed length.

        Args:
            reply: JSON with a ``text``, or bare text if the model ignores the format.

        Raises:
            ValueError: If there is no text, or only a part of it.
        """
        text = clean(_text_in(reply))
        if all(category(sign)[0] in "ZM" or category(sign) == "Cf" for sign in text):
            raise ValueError("the text is empty")

        return shortened(text, self.max_length)

    def cuts(self, reply: str) -> bool:
        """Return whether the text in a model's reply is too long.

        Args:
            reply: As for `read`.

        Raises:
            ValueError: If there is no text.
        """
        whole = clean(_text_in(reply))
        return shortened(whole, self.max_length) != whole

    def _rules(self, schema: Mapping[str, Any] | None) -> str:
        language = f" in {self.language}" if self.language else ""
        if schema is not None:
            written = json.dumps(schema, ensure_ascii=False)
            return f"Respond{language}, with JSON only, by this schema:\n{written}"

        return (
            f"Write one text{language}, of at most {self.max_length} characters. "
            'Respond with JSON only:\n{"text": "<the text>"}'
        )

    def _schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": self.max_length}},
            "required": ["text"],
        }


USUAL_WORDING = Wording()
"""The wording of a post, in a language that is left to the model."""


def read_data(reply: str, schema: Mapping[str, Any]) -> Any:
    """Return the data in a model's reply, with cleaned texts.

    Raises:
        ValueError: If there is none, or it does not follow the schema.
    """
    # a run without a model reads no replies
    from prism.reasoner._replies._objects import find_json

    found = _cleaned(find_json(reply))
    require_data(found, schema)

    return found


def clean(text: str) -> str:
    """Return a text without control characters and half surrogate pairs; line breaks stay."""
    text = _DIRECTION.sub("", _LINE_BREAK.sub("\n", whole_characters(text)))
    if not text.isprintable():
        # keep unknown characters, since a replay may run on an older version of Unicode
        text = "".join(sign for sign in text if sign in "\n\t" or category(sign) != "Cc")

    return _BLANK_LINES.sub("\n\n", text.replace("\t", " ")).strip()


def shortened(text: str, most: int) -> str:
    """Return a text of limited length; one that is cut ends with an ellipsis.

    It is cut after a word if one ends in its second half, and never inside a visible character,
    such as a letter with its accent, or a family emoji.
    """
    # a server may have cut it exactly at the limit in the schema
    is_whole = len(text) < most or (len(text) == most and not text[-1].isalnum())
    if is_whole:
        return text

    room = most - len(_ELLIPSIS)
    place = max(text.rfind(space, 0, room + 1) for space in " \n")
    if place < room // 2:
        place = _start_of_sign(text, room)

    return text[:place].rstrip(" \n,;:-") + _ELLIPSIS


def _start_of_sign(text: str, place: int) -> int:
    """Return the last position up to a given one that is not inside a visible character."""
    while place > 0 and _belongs_together(text, place):
        place -= 1

    return place


def _belongs_together(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place : place + 1]
    if not after:
        return False
    if _JOINER in (before, after) or combining(after) or category(after) in ("Mn", "Me", "Mc"):
        return True
    if ord(after) in _MODIFIERS:
        return True

    # flags are pairs, counted from the first of a row
    first = place
    while first > 0 and ord(text[first - 1]) in _FLAGS:
        first -= 1

    return ord(after) in _FLAGS and (place - first) % 2 == 1


def _text_in(reply: str) -> str:
    # in the requested form, since a text may mention something like a thinking tag
    try:
        text = json.loads(reply)["text"]
        if isinstance(text, str):
            return text
    except (ValueError, TypeError, LookupError, RecursionError):
        pass

    from prism.reasoner._replies._objects import find_json, what_is_said

    said = what_is_said(reply).strip()
    is_data = said.startswith(("{", "[", "```", "~~~"))
    try:
        found = find_json(said)
    except ValueError:
        if is_data:
            raise
        return said

    if isinstance(found, str):
        return found
    if isinstance(found, dict):
        text = found.get("text")
        if isinstance(text, str):
            return text

    if is_data:
        raise ValueError('the reply has no "text"')

    # words around some data, or a number
    return said


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(item) for key, item in value.items()}

    return value


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= _MOST_LANGUAGE and name.isprintable()
