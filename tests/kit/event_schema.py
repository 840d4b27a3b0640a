"""What logs hold, against the page of events, which names all keys and their kinds of values."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "events.md"
_OWN = "world."
_KINDS: Mapping[str, Any] = {
    **{"text": str, "time": str, "16 hexadecimal": str, "whole number": int},
    **{"number": (int, float), "object": dict, "list": list, "array": list},
    **{"boolean": bool, "true": bool, "any value": object},
}


@cache
def keys_by_event() -> Mapping[str, Mapping[str, str]]:
    """Return the keys of each event with their values in words; those of every line under ''."""
    _, every_line, *sections = _PAGE.read_text(encoding="utf-8").split("\n## ")
    tables = {"": every_line} | {each.split("`")[1]: each for each in sections}
    return {name: dict(_rows(table)) for name, table in tables.items()}


def _rows(section: str) -> Iterator[tuple[str, str]]:
    for line in section.splitlines():
        if line.startswith("| `"):
            name, words, _ = line.removeprefix("| `").split(" | ", 2)
            yield name.removesuffix("`"), words


def faults_of(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return in what events differ from the page: unknown or missing keys, and other values."""
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
    """Return whether a value is what the page says in words."""
    if value is None:
        return " or null" in words or words.startswith("any value")
    if words.startswith("`"):
        return f"`{value}`" in words
    kind = next(kind for begin, kind in _KINDS.items() if words.startswith(begin))
    return isinstance(value, kind)
