"""Texts of limited length in a language: asking a model for one, and reading its reply.

JSON replies are validated against their schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from unicodedata import category

import orjson

from prism._numbers import plain_number
from prism.errors import FieldValueError
from prism.reasoner.replies import find_json, spoken
from prism.reasoner.texts import ReadText, TextCall, whole_characters


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """Return a pattern for pydantic's engine, which needs linear time; `re` could need hours."""
    from pydantic_core import SchemaValidator, core_schema

    return SchemaValidator(core_schema.str_schema(pattern=pattern))


@lru_cache(maxsize=64)
def validator_of(schema: str) -> Any:
    """Return the validator of a JSON Schema, which is given as JSON.

    Raises:
        FieldValueError: If it is none, or has patterns that pydantic's engine cannot search for.
    """
    from jsonschema import FormatChecker, SchemaError, ValidationError, validators
    from pydantic_core import SchemaError as PatternError

    def search(_: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and not _compiled(pattern).isinstance_python(value):
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    formats = FormatChecker(())
    formats.checks("regex", PatternError)(_compiled)
    kind = validators.extend(validators.Draft202012Validator, {"pattern": search})
    # a part that names its dialect would be checked by that dialect's own class
    data = json.loads(schema.replace('"$schema":', '"$comment":'))
    try:
        kind.check_schema(data, format_checker=formats)
        if '"patternProperties":' in schema:
            raise SchemaError("use propertyNames instead of patternProperties")
    except SchemaError as error:
        why = str(error.cause or error.message[:200]).splitlines()[-1].strip()
        problem = f"is not a JSON Schema that prism can check: {error.json_path}: {why}"
        raise FieldValueError(f"schema {problem}") from None
    return kind(data)


def read_data(reply: str, schema: Mapping[str, Any]) -> Any:
    """Return the data in a model's reply, with cleaned texts.

    Raises:
        ValueError: If there is none, it does not follow the schema, or a log cannot hold it.
    """
    validator = validator_of(json.dumps(schema, ensure_ascii=False))
    try:
        data = _cleaned(find_json(reply))
        error = next(validator.iter_errors(data), None)
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None
    if error is not None:
        raise ValueError(f"{error.json_path} of the reply: {error.message[-200:]}")
    with suppress(TypeError):  # integers of more than 64 bits, or very deep data
        if orjson.loads(orjson.dumps(data)) == data:
            return data
    raise ValueError("the reply has a number that is too large, or none, for a log")


_MOST_LENGTH = 100_000
_AGAIN = "Respond with JSON only, in the form that is shown above."
_ELLIPSIS = "…"
_LINE_BREAK = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*\n")
# signs that turn the text around them, and the mark of a file's beginning
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff]")


@dataclass(frozen=True, slots=True)
class Wording:
    """The maximum length and the language of a text.

    Args:
        max_length: Maximum number of characters (Unicode code points), by default that of a post on
            X. A longer text is cut after a word, and ends with an ellipsis.
        language: Language named in the prompt, such as ``"German"`` or ``"pt-BR"``; None leaves it
            to the model.

    Raises:
        FieldValueError: If ``max_length`` is below 1.
    """

    max_length: int = 280
    language: str | None = None

    def __post_init__(self) -> None:
        """Refuse limits that no text can meet."""
        most = plain_number(self.max_length)
        object.__setattr__(self, "max_length", most)
        if type(most) is not int or not 1 <= most <= _MOST_LENGTH:
            raise FieldValueError(
                f"max_length must be a whole number from 1 to {_MOST_LENGTH}, got {most!r}"
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
            FieldValueError: If the schema is none, or cannot be checked.
        """
        text = "\n\n".join(part for part in (self._rules(schema), persona, prompt) if part)
        of_text = {"type": "string", "maxLength": self.max_length}
        usual = {"type": "object", "properties": {"text": of_text}, "required": ["text"]}
        form: dict[str, Any] = usual if schema is None else dict(schema)
        read: ReadText = self.read if schema is None else partial(read_data, schema=form)
        return TextCall(agent, key, text, form, read, fallback=fallback, how=_AGAIN)

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

    def _rules(self, schema: Mapping[str, Any] | None) -> str:
        language = f" in {self.language}" if self.language else ""
        if schema is not None:
            written = json.dumps(schema, ensure_ascii=False)
            validator_of(written)
            return f"Respond{language}, with JSON only, by this schema:\n{written}"

        return (
            f"Write one text{language}, of at most {self.max_length} characters. "
            'Respond with JSON only:\n{"text": "<the text>"}'
        )


USUAL_WORDING = Wording()
"""The wording of a post, in a language that is left to the model."""


def clean(text: str) -> str:
    """Return a text without control characters and half surrogate pairs; line breaks stay."""
    text = _DIRECTION.sub("", _LINE_BREAK.sub("\n", whole_characters(text)))
    if not text.isprintable():
        # keep unknown characters, since a replay may run on an older version of Unicode
        text = "".join(sign for sign in text if sign in "\n\t" or category(sign) != "Cc")

    return _BLANK_LINES.sub("\n\n", text.replace("\t", " ")).strip()


def shortened(text: str, most: int) -> str:
    """Return a text of limited length; one that is cut ends with an ellipsis.

    It is cut after a word if one ends in its second half, and not between a letter and its accent.
    """
    # a server may have cut it exactly at the limit in the schema
    goes_on = text[-1:].isalnum() or text.endswith((",", ";", ":", "-"))
    if len(text) < most or (len(text) == most and not goes_on):
        return text

    room = most - len(_ELLIPSIS)
    end = max(text.rfind(space, 0, room + 1) for space in " \n")
    if end < room // 2:
        end = room
        while end and category(text[end])[0] == "M":
            end -= 1

    return text[:end].rstrip(" \n,;:-") + _ELLIPSIS


def _text_in(reply: str) -> str:
    """Return the text of a reply: under its key, or all that a model says, if that is no data."""
    try:
        data = find_json(reply)
    except ValueError:
        words = spoken(reply)
        if not words or "{" in words or words.startswith("["):
            raise
        return words

    text = data.get("text") if isinstance(data, dict) else data
    if not isinstance(text, str) and (isinstance(data, (dict, list)) or data is None):
        raise ValueError('the reply has no "text"')
    return text if isinstance(text, str) else spoken(reply)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(item) for key, item in value.items()}

    return value
