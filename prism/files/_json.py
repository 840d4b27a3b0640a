"""The only reader of untrusted JSON."""

from __future__ import annotations

import json
from math import isfinite
from os import PathLike
from typing import Any

from prism.errors import InputError


def parse_json(
    text: str, *, path: PathLike[str] | str | None = None, line: int | None = None
) -> Any:
    """Return the value of a JSON text, which need not be trusted.

    It is stricter than ``json.loads``: an object must not have a key twice, and numbers must be
    finite.

    Args:
        text: The text.
        path: The file it comes from, for the error.
        line: The line it is on, for the error; by default the parser's own count.

    Raises:
        InputError: If it is not valid JSON or nested too deeply. The message names the line or key,
            if known.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite
        )
    except InputError as error:
        raise InputError(error.problem, path=path, line=line, field=error.field) from None
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg} (column {error.colno})"
        raise InputError(problem, path=path, line=line or error.lineno) from None
    except RecursionError:
        raise InputError("is nested too deeply", path=path, line=line) from None
    except ValueError:  # Python converts no integer of more than 4300 digits
        raise InputError("contains a number with too many digits", path=path, line=line) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)

    # The parser would silently keep the last value of a repeated key.
    if len(result) < len(pairs):
        keys = set[str]()
        for key, _ in pairs:
            if key in keys:
                raise InputError("appears twice in one object", field=key)
            keys.add(key)

    return result


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise InputError(f"is not valid JSON: {text} is not a finite number")
    return number
