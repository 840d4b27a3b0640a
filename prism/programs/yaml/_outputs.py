"""Replies of llm steps against a JSON Schema; the only module that imports jsonschema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prism._lazy import import_extra

_REFUSED = {
    "pattern": "a pattern can keep a validator busy without end",
    "patternProperties": "a pattern can keep a validator busy without end",
    "uniqueItems": "comparing all items of a long list takes minutes",
    "$ref": "references are not supported: write the schema out",
    "$dynamicRef": "references are not supported: write the schema out",
}


class OutputError(ValueError):
    """A schema is not valid, or a reply does not match it."""


class Validator:
    """Checks replies against a schema.

    Args:
        schema: JSON Schema, draft 2020-12.

    Raises:
        OutputError: If it is none, or uses keywords that prism does not support.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        jsonschema: Any = import_extra("jsonschema", "programs.yaml", extra="workflow")
        for key, value in _entries(schema):
            # a property may have one of these names, too: its value is then an object
            if key in _REFUSED and (key == "patternProperties" or not isinstance(value, dict)):
                raise OutputError(f"has {key!r}: {_REFUSED[key]}")
        try:
            jsonschema.Draft202012Validator.check_schema(dict(schema))
        except jsonschema.SchemaError as error:
            raise OutputError(f"is not a JSON Schema: {error.message[:200]}") from None
        self._validator = jsonschema.Draft202012Validator(dict(schema))

    def require(self, value: Any) -> Any:
        """Return a value that matches the schema.

        Raises:
            OutputError: If it does not match; the message names the place and the reason.
        """
        error = next(iter(self._validator.iter_errors(value)), None)
        if error is not None:
            problem = f"{error.json_path}: {error.message[:200]}"
            raise OutputError(f"is not what the step asks for: {problem}")
        return value


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), item
            yield from _entries(item)
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item)
