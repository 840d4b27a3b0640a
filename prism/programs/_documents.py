"""Documents of agents: unknown keys are a note, since other programs may read them."""

from __future__ import annotations

from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from prism.files._source import Problems, Severity, Where, key_of
from prism.files.declarations import adapter, keys_at, shape_problems, shaped

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_MISSPELT = 0.8
_MOST_NAMED = 20


def read_known(kind: Any, value: Any, problems: Problems, top: Where = ()) -> Any:
    """Read a part of a document by its class, without the keys that the class does not have.

    Args:
        kind: The class that declares it.
        value: The part.
        problems: Collects what is wrong, and one note of the keys that are left out; a warning if
            one of them looks misspelt.
        top: Where the part stands in its document.

    Returns:
        None if something is wrong.
    """
    known, unknown, part = deepcopy(value), list[Where](), None
    while part is None:
        try:
            part = adapter(kind).validate_python(known)
        except ValidationError as error:
            # of many, a part is told at once
            found = [w for w, _, name in shape_problems(kind, known, error) if name in _UNKNOWN]
            if not found:
                shaped(kind, known, problems, top)
                break
            for where in found:
                around = known
                for key in where[:-1]:
                    around = around[key]
                del around[where[-1]]
            unknown += found
    if unknown:
        _note(kind, unknown, value, problems, top)
    return part


def _note(kind: Any, unknown: list[Where], value: Any, problems: Problems, top: Where) -> None:
    unknown.sort(key=lambda where: problems.source.line_of((*top, *where)))
    names, is_misspelt = [], False
    for where in unknown[:_MOST_NAMED]:
        near = get_close_matches(str(where[-1]), keys_at(kind, where[:-1], value), 1, _MISSPELT)
        is_misspelt |= bool(near)
        names.append(key_of((*top, *where)) + (f" (did you mean {near[0]}?)" if near else ""))
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    message = f"prism ignores {', '.join(names)}{more}"
    severity: Severity = "warning" if is_misspelt else "note"
    problems.add((*top, *unknown[0]), message, "left_out", severity=severity)
