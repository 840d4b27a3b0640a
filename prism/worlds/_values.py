"""Values of fields and parameters from texts, as a command line and a table have them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from enum import Enum
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from prism.files import parse_json
from prism.worlds._fields import is_a

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING = ("none", "null")
_ARRAYS = (list, tuple, deque)


def read_value(hint: Any, value: Any) -> Any:
    """Return the value of a type for which a text, or a value of JSON, stands.

    A text is a number, true or false, a member of an enum by its value or name, one of a
    `Literal`, ``none`` where None is a value, or an array of JSON. A type that cannot be resolved
    takes the value as it is.

    Raises:
        ValueError: If it stands for no value of the type.
    """
    if hint is Any:
        return value

    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _of_several(get_args(hint), value)
    if origin is Literal:
        return _among(get_args(hint), value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return value if isinstance(value, hint) else _among(tuple(hint), value)

    if isinstance(value, str) and (origin or hint) in _ARRAYS:
        value = parse_json(value)
    if not isinstance(value, str):
        return _of_json(origin or hint, get_args(hint), value)

    return _of_text(origin or hint, value)


def _of_text(kind: Any, text: str) -> Any:
    if kind is bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if kind is int:
        return int(text)
    if kind is float:
        number = float(text)
        if not isfinite(number):
            raise ValueError(text)
        return number
    if isinstance(kind, type) and not is_a(kind, text):
        raise ValueError(text)

    return text


def _of_json(kind: Any, items: Sequence[Any], value: Any) -> Any:
    """Return the tuple or deque of a JSON array, and the items as what they stand for."""
    if not (isinstance(value, list) and kind in _ARRAYS):
        return value

    if kind is tuple and items and items[-1] is not ...:
        if len(value) != len(items):
            raise ValueError(value)
        return tuple(map(read_value, items, value))

    hint = items[0] if items else Any

    return kind(read_value(hint, item) for item in value)


def _of_several(members: Sequence[Any], value: Any) -> Any:
    is_nothing = value is None or (isinstance(value, str) and value.lower() in _NOTHING)
    if is_nothing and NoneType in members:
        return None

    # a text is a text only if it is nothing else
    for member in sorted(members, key=lambda each: each is str):
        try:
            found = read_value(member, value)
        except ValueError:
            continue
        if is_a(member, found):
            return found

    raise ValueError(value)


def _among(options: Sequence[Any], value: Any) -> Any:
    """Return the option that a value is, or that a text names by its value or name."""
    plain = {id(option): getattr(option, "value", option) for option in options}
    for option in options:
        if type(plain[id(option)]) is type(value) and plain[id(option)] == value:
            return option
    for option in options:
        names = (str(plain[id(option)]), getattr(option, "name", None))
        if isinstance(value, str) and value in names:
            return option

    raise ValueError(value)


def words_of_type(hint: Any, annotation: Any) -> str:
    """Return a type as a message names it: an enum and a `Literal` with their values."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return f"one of {', '.join(map(_shown, hint))}"
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(words_of_type(each, each) for each in get_args(hint))
    if hint is NoneType:
        return "none"

    return annotation if isinstance(annotation, str) else _name_of(annotation)


def _shown(option: Enum) -> str:
    return option.value if isinstance(option.value, str) else option.name


def shown_value(value: Any) -> Any:
    """Return a value as `plain_value` does, a member of an enum by the name that is read again."""
    return _shown(value) if isinstance(value, Enum) else plain_value(value)


def _name_of(annotation: Any) -> str:
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__

    # without the modules of what it is made of
    return re.sub(r"\b[\w.]+\.(?=\w)", "", str(annotation))


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it: an enum by its value, a tuple or deque as a list."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple, deque)):
        return [plain_value(each) for each in value]
    if isinstance(value, Mapping):
        return {str(plain_value(key)): plain_value(each) for key, each in value.items()}

    return value
