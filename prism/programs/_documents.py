"""Files that describe agents, and the data that agents keep."""

from __future__ import annotations

import json
import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin
from unicodedata import category

import orjson
from pydantic import BaseModel, ValidationError

from prism._numbers import plain_data, plain_number
from prism.errors import FieldTypeError, FieldValueError
from prism.files.declarations import shape_problems
from prism.files.records import Where, key_of
from prism.files.source import DocumentError, Language, Problem, Problems, Source
from prism.reasoner.wording import shortened

LOGGER: logging.Logger = logging.getLogger("prism.programs")
"""Gets the warnings and notes of a file, once; they are not part of a run's log."""

OWN_WORDS = "write words of your own there"
"""What a refusal asks for; small models write that down, too."""

ANY_KEY = "*"
_MISSPELT = 0.8
_FORM = re.compile(r"<[^<>]{0,60}>|\[(?:[a-z ][^\[\]]{0,60})?\]|\{[^{}:]{0,60}\}", re.IGNORECASE)
_OPERATORS = frozenset("+*/%<>=|&^~")
"""Signs that may be meant alone, as an operator or a path."""

_ARTICLES = frozenset(["a", "an", "the", "your", "my", "some", "of", "here", "new", "example"])
_ARTICLES |= {"content", "data", "field", "list", "log"}
_TYPES = frozenset(["str", "string", "tag", "tags", "text", "val", "value", "values"])
_PARTS = _TYPES | frozenset(["action", "empty", "placeholder", "thought", "thoughts", "type"])
_KINDS = frozenset(("format", "kind", "type"))

ModelT = TypeVar("ModelT", bound=BaseModel)


class Document:
    """What is read from a file that people write.

    Attributes:
        language: The language of the file.
    """

    language: ClassVar[Language]

    @classmethod
    @abstractmethod
    def _of(cls, problems: Problems, file: Path | None, name: str) -> Self:
        """Return what a document says, and collect its problems.

        Args:
            problems: Collects them; it holds the document.
            file: The file, if there is one.
            name: What to call it.
        """

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read it from a file; warnings and notes go to the standard logger ``prism.programs``.

        Args:
            path: The file.

        Raises:
            InputError: If it cannot be read, or is wrong; the message lists what is.
        """
        problems, file = Problems(Source.read(path, cls.language)), Path(path)
        result = cls._of(problems, file, file.stem)
        for problem in sorted(problems):
            LOGGER.warning("%s", problem)
        return result

    @classmethod
    def from_text(cls, text: str, *, name: str = "text") -> Self:
        """Read it from a text.

        Args:
            text: The content of a file.
            name: Its name, in messages and where it has none of its own.

        Raises:
            InputError: If it is wrong.
        """
        return cls._of(Problems(Source.parse(text, cls.language, path=name)), None, name)

    @classmethod
    def check(cls, path: Path | str) -> Sequence[Problem]:
        """Return what is wrong with a file, and what is ignored.

        Args:
            path: The file.

        Raises:
            InputError: If it cannot be read.
        """
        problems = Problems(Source.read(path, cls.language))
        with suppress(DocumentError):
            cls._of(problems, Path(path), Path(path).stem)
        return sorted(problems)


def read_part(kind: type[ModelT], value: Any, problems: Problems, top: Where = ()) -> ModelT | None:
    """Read a part of a document, without the keys that its class does not have.

    Args:
        kind: The class.
        value: The part.
        problems: Collects what is wrong.
        top: Where the part stands in its document.

    Returns:
        None if something is wrong.
    """
    try:
        return kind.model_validate(value, extra="ignore", by_alias=True, by_name=False)
    except ValidationError as error:
        for where, message, name in shape_problems(kind, value, error):
            problems.add((*top, *where), message, name)
    return None


def note_unknown(value: Any, keys: Any, problems: Problems, top: Where = ()) -> None:
    """Warn of keys that look misspelt, and note which others are ignored.

    Args:
        value: The part.
        keys: The keys that it may have, as `keys_of` returns them.
        problems: Collects the warnings and the note.
        top: Where the part stands in its document.
    """
    ignored = []
    for where, near in _unknown(value, keys, top):
        if near:
            message = f"is unknown; did you mean {near!r}?"
            problems.add(where, message, "misspelt", severity="warning")
        else:
            ignored.append(where)
    if ignored:
        # a file of another program may have very many
        message = shortened(f"prism ignores {', '.join(map(key_of, ignored))}", 600)
        problems.add(ignored[0], message, "left_out", severity="note")


def keys_of(kind: Any) -> Any:
    """Return the keys that a part may have, each with those of its own value.

    Args:
        kind: The class or type of the part. A mapping with any keys has the key `ANY_KEY`.

    Returns:
        None for a part whose keys are not known.
    """
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        return {field.alias or name: keys_of(field.annotation) for name, field in fields}
    inside = next(filter(None, map(keys_of, get_args(kind))), None)
    return {ANY_KEY: inside} if inside and get_origin(kind) is dict else inside


def _unknown(value: Any, keys: Any, where: Where) -> Iterator[tuple[Where, str]]:
    """Yield unknown keys, each with the one that is probably meant."""
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from _unknown(part, keys, (*where, number))
    elif isinstance(value, dict) and isinstance(keys, dict):
        # a key that is there is not meant by another one
        missing = [key for key in keys if key not in value]
        for key, part in value.items():
            if key in keys or ANY_KEY in keys:
                yield from _unknown(part, keys.get(key, keys.get(ANY_KEY)), (*where, key))
            else:
                yield (*where, key), "".join(get_close_matches(key, missing, 1, _MISSPELT))
    elif where and isinstance(keys, dict) and not isinstance(value, str):
        yield where, ""


def require_count(name: str, value: Any) -> Any:
    """Return a number of turns or cycles, also one of numpy's; None is returned as it is.

    Raises:
        FieldValueError: If it is not a whole number from 1 on.
    """
    count = plain_number(value)
    if count is not None and (type(count) is not int or count < 1):
        raise FieldValueError(f"{name} must be a whole number, 1 or more, got {count!r}")
    return count


def as_data(value: Any, name: str) -> Any:
    """Return a copy of a value, as JSON has it.

    Args:
        value: The value.
        name: What to call it in messages.

    Raises:
        FieldTypeError: If JSON cannot hold it, or would change it.
    """
    try:
        plain = plain_data(value)
        json.dumps(plain, allow_nan=False)  # orjson writes null for what is no number
        return orjson.loads(orjson.dumps(plain))
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(value).__name__
        problem = f"{name} must be data that JSON can hold, got {kind}: {error}"
        raise FieldTypeError(problem) from None


def is_placeholder(text: str, name: str = "") -> bool:
    """Return whether a text only stands for one: signs, ``<a tag>``, or the name of a part.

    Args:
        text: The text.
        name: The name of the part that it is; what is no part of a form has no name.
    """
    core = text.strip()
    if _FORM.fullmatch(core) or not (core in _OPERATORS or any(map(_says_something, core))):
        return True
    named = _words(name)
    parts = named | (_PARTS - _TYPES if named & _KINDS else _PARTS)
    words = _words(text)
    return bool(name and words & parts) and words <= parts | _ARTICLES


def _says_something(sign: str) -> bool:
    """Return whether a sign is a letter, a number or a picture."""
    kind = category(sign)
    return kind[0] in "LN" or kind == "So"


def _words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without numbers at their ends."""
    words = re.split(r"[\s_-]+", text.casefold().strip(" \t\n\"'`.:"))
    return frozenset(word.rstrip("0123456789") for word in words) - {""}


def require_content(data: Any, schema: Mapping[str, Any], name: str) -> None:
    """Refuse placeholders, and words of a refusal, in data that a model wrote.

    Args:
        data: The data.
        schema: Their JSON Schema; the values that it lists are no placeholders.
        name: The name of what they are.

    Raises:
        ValueError: If a text is a placeholder.
    """
    listed = [*_listed(schema)]
    for part, text in _texts(data, name):
        is_copied = OWN_WORDS in text.casefold()
        if text.strip() and text not in listed and (is_copied or is_placeholder(text, part)):
            # not quoted, as small models would write it again
            raise ValueError(f"{part} is only a placeholder: {OWN_WORDS}")


def _texts(data: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in data, with the name of the part that each is."""
    if isinstance(data, str):
        yield name, data
    elif isinstance(data, Mapping):
        for key, part in data.items():
            yield from _texts(part, key)
    elif isinstance(data, list):
        for part in data:
            yield from _texts(part, name)


def _listed(schema: Any) -> Iterator[Any]:
    """Yield the values that a JSON Schema lists."""
    parts = schema.items() if isinstance(schema, Mapping) else ()
    for key, part in enumerate(schema) if isinstance(schema, list) else parts:
        if key in ("const", "enum"):
            yield from part if isinstance(part, list) else [part]
        else:
            yield from _listed(part)
