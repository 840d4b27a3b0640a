"""What logs hold, against the reference of events, which names all keys and their values."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any

from prism.telemetry import events as names

_SCRIPT = Path(__file__).parents[2] / "docs" / "events.py"
_OWN = "world."
_KINDS: Mapping[str, Any] = {
    **{"text": str, "time": str, "16 hexadecimal": str, "whole number": int, "count": int},
    **{"number": (int, float), "share": (int, float), "object": dict, "list": list},
    **{"boolean": bool, "true": bool, "any value": object},
}


@cache
def keys_by_event() -> Mapping[str, Mapping[str, str]]:
    """Return the keys of each event with their values in words; those of every line under ''."""
    return {
        constant and getattr(names, constant): {key: kind for key, (kind, _) in keys.items()}
        for constant, _, keys in run_path(str(_SCRIPT))["described"]()
    }


def faults_of(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return in what events differ from the reference: unknown or missing keys, other values."""
    return [fault for event in events for fault in _faults(event)]


def _faults(event: Mapping[str, Any]) -> Iterator[str]:
    name = event["event"]
    if name.startswith(_OWN):
        return
    if name not in keys_by_event():
        yield f"unknown event {name}"
        return
    keys = {**keys_by_event()[""], **keys_by_event()[name]}
    yield from (f"{name}: unknown key {key}" for key in event.keys() - keys)
    for key, words in keys.items():
        if key not in event:
            if ", optional" not in words:
                yield f"{name}: lacks {key}"
        elif not is_of_kind(event[key], words):
            yield f"{name}: {key} is {event[key]!r}, not {words}"


def is_of_kind(value: Any, words: str) -> bool:
    """Return whether a value is what the reference says in words."""
    if value is None:
        return " or null" in words or words.startswith("any value")
    if words.startswith("`"):
        return f"`{value}`" in words
    kind = next(kind for begin, kind in _KINDS.items() if words.startswith(begin))
    return isinstance(value, kind)
