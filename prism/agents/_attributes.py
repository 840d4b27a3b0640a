"""What an agent has beyond its persona: plain data that survives a log and a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from prism.errors import FieldValueError


def plain_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as a dict, if JSON gives them back unchanged.

    Raises:
        FieldValueError: If they are not a mapping, or a value is not plain; names the attribute.
    """
    if not isinstance(values, Mapping):
        raise FieldValueError(f"attributes must be a mapping of names to values, got {values!r}")

    for name, value in values.items():
        if not isinstance(name, str) or not _survives(name, value):
            raise FieldValueError(
                f"attribute {name!r} must have a text as its name, and a value that JSON gives "
                f"back unchanged, got {value!r}"
            )

    return dict(values)


def _survives(name: str, value: Any) -> bool:
    # JSON would turn NaN into null, a tuple into a list and an enum into its value
    try:
        pair = orjson.loads(orjson.dumps([name, value]))
    except orjson.JSONEncodeError:  # a TypeError, also for integers beyond 64 bits
        return False

    return bool(pair == [name, value])
