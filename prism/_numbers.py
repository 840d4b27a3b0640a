"""Numbers of numpy as Python's own, for all that is written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any


def plain_number(value: Any) -> Any:
    """Return a number, also one of numpy's, as Python's own, and an array as a list.

    Anything else is returned as it is.
    """
    if type(value) in (int, float, bool, str, dict, list):
        return value
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    # numpy's truth values, too, are of none of the types in `numbers`
    return value.tolist() if type(value).__module__ == "numpy" else value


def plain_data(value: Any) -> Any:
    """Return data with the numbers and arrays of numpy in it as Python's own."""
    if isinstance(value, Mapping):
        return {key: plain_data(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(each) for each in value]
    return plain_number(value)
