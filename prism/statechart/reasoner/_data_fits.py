"""Whether data that a model wrote is what a schema asks for.

Servers that take a schema keep to it; others are told it in the prompt alone, and their models may
write anything. What agents keep must be what the world's author wrote the next line for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from prism.errors import FieldTypeError

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
"""What the values of keywords that are followed must be."""


def require_schema(schema: Any, where: str = "schema") -> None:
    """Refuse what no data could be held to.

    Raises:
        FieldTypeError: If it is no JSON Schema, or has keywords that cannot be, with the place.
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
    """Refuse data that a schema does not allow, or that no log or checkpoint could hold.

    Of JSON Schema ``type``, ``enum``, ``required``, ``properties``, ``items``, ``minimum`` and
    ``maximum`` are followed; other keywords are for the model alone.

    Args:
        value: The data.
        schema: The schema; anything else than an object allows everything.
        where: What the data is, for messages.
        depth: In how many lists and objects it stands.

    Raises:
        ValueError: If it is so, with the place.
    """
    if isinstance(value, int | float) and not _can_be_kept(value):
        raise ValueError(f"{where} is {_shown(value)}, which is too large, or no number")

    if depth > _MOST_DEPTH:
        raise ValueError(f"the reply has data in more than {_MOST_DEPTH} lists and objects")

    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    _require_own(value, known, where)
    if isinstance(value, dict):
        missing = [key for key in known.get("required", ()) if key not in value]
        if missing:
            raise ValueError(f"{where} has no {missing[0]!r}")

        parts = known.get("properties", {})
        for key, item in value.items():
            require_data(item, parts.get(key), f"{key!r} of {where}", depth + 1)
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            require_data(item, known.get("items"), f"item {number} of {where}", depth + 1)


def _require_own(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Refuse what the schema says of the value itself."""
    kinds = schema.get("type", ())
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    if names and not any(name not in _TYPES or _TYPES[name](value) for name in names):
        raise ValueError(f"{where} must be {_named(names)}, got {_shown(value)}")
    if "enum" in schema and not any(_is_same(value, each) for each in schema["enum"]):
        listed = ", ".join(map(repr, schema["enum"]))
        raise ValueError(f"{where} must be one of {listed}, got {_shown(value)}")

    if _is_number(value):
        if "minimum" in schema and value < schema["minimum"]:
            raise ValueError(f"{where} must be at least {schema['minimum']}, got {_shown(value)}")
        if "maximum" in schema and value > schema["maximum"]:
            raise ValueError(f"{where} must be at most {schema['maximum']}, got {_shown(value)}")


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
    except ValueError:  # Python writes no number of more than some thousand digits
        return "a number of very many digits"

    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
