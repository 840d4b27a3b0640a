"""Replies of llm steps against a JSON Schema; the only module that imports jsonschema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from prism._lazy import import_extra

_MOST_EXACT = 1 << 53

_REFUSED = {
    "pattern": "a pattern can keep a validator busy without end",
    "patternProperties": "a pattern can keep a validator busy without end",
    "$ref": "references are not supported: write the schema out",
    "$dynamicRef": "references are not supported: write the schema out",
}


class OutputError(ValueError):
    """A schema is not valid, or a reply does not match it."""


class Validator:
    """Checks replies against a schema.

    Args:
        schema: JSON Schema, draft 2020-12.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = _validators()(dict(schema))

    def require(self, value: Any) -> Any:
        """Return a value that matches the schema.

        Raises:
            OutputError: If it does not match; says where and why.
        """
        error = next(iter(self._validator.iter_errors(value)), None)
        if error is not None:
            problem = f"{error.json_path}: {error.message[:200]}"
            raise OutputError(f"is not what the step asks for: {problem}")

        return value


def require_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is not a schema, or uses keywords that prism does not support.

    Raises:
        OutputError: If it is refused.
    """
    jsonschema = _jsonschema()
    for key, value in _entries(schema):
        # a property may be called pattern, too, which is then an object
        if key in _REFUSED and (key == "patternProperties" or isinstance(value, str)):
            raise OutputError(f"has {key!r}: {_REFUSED[key]}")
    try:
        jsonschema.Draft202012Validator.check_schema(dict(schema))
    except jsonschema.SchemaError as error:
        raise OutputError(f"is not a JSON Schema: {error.message[:200]}") from None


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), item
            yield from _entries(item)
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item)


@lru_cache(maxsize=1)
def _validators() -> Any:
    """Return the class of validators, which looks for repetitions in one pass over a list."""
    jsonschema = _jsonschema()

    def unique(_validator: Any, wanted: bool, items: Any, _schema: Any) -> Iterator[Any]:
        if wanted and isinstance(items, list):
            seen = {orjson.dumps(_comparable(item), option=orjson.OPT_SORT_KEYS) for item in items}
            if len(seen) < len(items):
                yield jsonschema.ValidationError("the list has duplicates")

    # jsonschema's own compares every object with every other: half a minute for 5,000 of them
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"uniqueItems": unique})


def _comparable(value: Any) -> Any:
    """Return data of which equal numbers are written alike, as JSON Schema compares them."""
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_EXACT:
        return int(value)

    return value


@lru_cache(maxsize=1)
def _jsonschema() -> Any:
    return import_extra("jsonschema", "workflow")
