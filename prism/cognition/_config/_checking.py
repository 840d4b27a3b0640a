"""Holds a document to the schema, and says what is wrong in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from reprlib import repr as brief
from typing import Any

from prism.files._json_places import Where, shown

Mistake = tuple[Where, str, str]
"""Where something is wrong, what, and its kind."""

_NAMES = {
    "object": "an object",
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
}


class Checker:
    """Holds documents to a schema.

    It knows those words of JSON Schema that the schema uses, and no others.

    Args:
        schema: The schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._known = dict(_keys(schema, ()))

    def check(self, document: Any, left_out: list[Where]) -> Iterator[Mistake]:
        """Yield what is wrong, one mistake after the other.

        Args:
            document: Plain data.
            left_out: Takes the keys that are left out.
        """
        return self._check(document, self._schema, (), left_out)

    def _check(
        self, value: Any, schema: Mapping[str, Any], where: Where, left_out: list[Where]
    ) -> Iterator[Mistake]:
        if schema.get("deprecated"):
            left_out.append(where)
            return

        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_IS[name](value) for name in types):
            wanted = " or ".join(_NAMES[name] for name in types)
            yield where, f"must be {wanted}, got {_told(value)}", "type"
        elif isinstance(value, dict):
            yield from self._check_object(value, schema, where, left_out)
        else:
            yield from _check_scalar(value, schema, where)

    def _check_object(
        self,
        value: Mapping[str, Any],
        schema: Mapping[str, Any],
        where: Where,
        left_out: list[Where],
    ) -> Iterator[Mistake]:
        patterns = schema.get("patternProperties", {})
        for key, inner in value.items():
            found = schema["properties"].get(key)
            matching = (known for pattern, known in patterns.items() if re.search(pattern, key))
            known = next(matching, None) if found is None else found
            if known is None:
                yield (*where, key), f"is unknown{self._meant(key, where, schema)}", "unknown_key"
            else:
                yield from self._check(inner, known, (*where, key), left_out)

    def _meant(self, key: str, where: Where, schema: Mapping[str, Any]) -> str:
        here = [name for name, known in schema["properties"].items() if not known.get("deprecated")]
        near = get_close_matches(key, here, n=1)
        if near:
            return f"; did you mean {near[0]!r}?"

        elsewhere = get_close_matches(key, self._known, n=1)
        if elsewhere:
            return f" here; did you mean {self._known[elsewhere[0]]}?"

        return f"; {shown(where) or 'the file'} takes {', '.join(here)}"


def _check_scalar(value: Any, schema: Mapping[str, Any], where: Where) -> Iterator[Mistake]:
    if isinstance(value, str):
        if "enum" in schema and value not in schema["enum"]:
            choices = " or ".join(map(repr, schema["enum"]))
            yield where, f"must be {choices}, got {_told(value)}", "choice"
        elif "pattern" in schema and not re.search(schema["pattern"], value):
            problem = "must be letters, digits, '_', '.' and '-', and not end in a digit"
            yield where, f"{problem}; got {_told(value)}", "pattern"
    elif "minimum" in schema and not schema["minimum"] <= value <= schema["maximum"]:
        least, most = schema["minimum"], schema["maximum"]
        yield where, f"must be from {least} to {most:,}, got {_told(value)}", "range"


def _is_integer(value: Any) -> bool:
    # JSON knows one kind of number: 3.0 is a whole one
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return is_whole and not isinstance(value, bool)


_IS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "boolean": lambda value: isinstance(value, bool),
}


def _keys(schema: Mapping[str, Any], where: Where) -> Iterator[tuple[str, str]]:
    """Yield every key that is read with its path, those nearer to the top last."""
    for key, inner in reversed(schema.get("properties", {}).items()):
        if not inner.get("deprecated"):
            yield from _keys(inner, (*where, key))
            yield key, shown((*where, key))


def _told(value: Any) -> str:
    """Return a value as JSON writes it, or nearly, shortened."""
    if value is None:
        return "null"

    return str(value).lower() if isinstance(value, bool) else brief(value)
