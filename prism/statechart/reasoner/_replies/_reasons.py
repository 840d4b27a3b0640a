"""Reading the reason that a model gave beside its choice."""

from __future__ import annotations

import json
from typing import Any

from prism.statechart.reasoner._replies._objects import objects_in
from prism.statechart.reasoner._replies._thoughts import what_is_said

_KEYS = ("reason", "reasons", "reasoning", "explanation", "rationale", "why", "because")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def read_reason(reply: str, most_characters: int) -> str | None:
    """Return the reason in a reply on one line, without what a terminal or a log would obey.

    Args:
        reply: The raw reply.
        most_characters: How long it may be; what is longer is cut.

    Returns:
        The reason; None if there is none.
    """
    reason = next((text for text in map(_reason_among, _objects(reply)) if text), None)
    if reason is None:
        return None

    printable = "".join(sign if sign.isprintable() else " " for sign in reason)
    line = " ".join(printable.split())

    return (
        line if len(line) <= most_characters else f"{line[: most_characters - 1]}{_ELLIPSIS}"
    ) or None


def _objects(reply: str) -> list[dict[str, Any]]:
    """Return the objects in a reply, the last one first."""
    try:
        whole = json.loads(reply)
    except (ValueError, RecursionError):
        return [dict(found.members) for found in objects_in(what_is_said(reply))][::-1]

    return [whole] if isinstance(whole, dict) else []


def _reason_among(members: dict[str, Any]) -> str | None:
    named = {key.casefold(): value for key, value in members.items()}
    return next(
        (value for key in _KEYS if isinstance(value := named.get(key), str) and value.strip()), None
    )
