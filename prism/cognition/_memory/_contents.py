"""What a memory holds apart from its storage, and the shape of its document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from prism.cognition._memory._values import as_tag, numbered, plain_value
from prism.errors import InputError

SCHEMA = 2
START = "thinking"
DEFAULT_PREFIX = "thinking_log_"

WORKING = "working_memory"
STORAGE = "storage"
STATE = "state"
OWN = "prism"

# below what a number of JSON holds exactly, with room to count on
_NUMBER = re.compile(r"\d{3,15}")


class NewerSchemaError(InputError):
    """The memory was written by a newer prism."""

    def __init__(self, schema: int, path: Path | None = None) -> None:
        problem = f"has schema {schema}, but this prism reads up to {SCHEMA}: use a newer prism"
        super().__init__(problem, path=path, field="schema")


class Contents:
    """All of a memory but the storage.

    The document is kept as it was read: keys that prism does not know stay where they stand, also
    inside its own.

    Args:
        document: The memory as plain JSON data, in the specification's shape.

    Raises:
        InputError: If it is not that of a memory; names the key.

    Attributes:
        state: The agent's state.
        cycle: Cycles so far.
        next_thought: Number of the next thought.
        used: For each tag of working memory the cycle in which it was used last.
        working: Working memory.
        outdated: Tags of working memory under which storage has had a newer value since.
        last_action: The last action and its result; None before the first.
        news: What the agent has been told and has not answered yet.
        thoughts: The last thoughts, oldest first.
        unknown: All other keys.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        # keys go back to where they stood, so that a commit changes as little of the file as it can
        self._order = list(document)
        self._own = _own_part(document)
        self._prefixes = list(self._own.get("thought_prefixes", [DEFAULT_PREFIX]))

        self.working: dict[str, Any] = with_tags(_object(document, WORKING))
        self.state: str = _typed(document, STATE, START)
        self.unknown: dict[str, Any] = {
            key: value
            for key, value in document.items()
            if key not in (WORKING, STORAGE, STATE, OWN)
        }
        self.thoughts: dict[str, str] = {}
        self._last_number = 0
        for prefix in self._prefixes:
            self._adopt(prefix)

        self.cycle: int = self._own.get("cycle", 0)
        self.next_thought: int = max(self._own.get("next_thought", 1), self._last_number + 1)
        # somebody may have removed memories by hand
        used = self._own.get("used", {})
        self.used: dict[str, int] = {tag: used[tag] for tag in used if tag in self.working}
        outdated = self._own.get("outdated", [])
        self.outdated: list[str] = [tag for tag in outdated if tag in self.working]
        self.last_action: Mapping[str, Any] | None = self._own.get("last_action") or None
        self.news: list[str] = list(self._own.get("news", []))

    def to_dict(
        self, storage: Mapping[str, Any], versions: Mapping[str, list[Any]]
    ) -> dict[str, Any]:
        """Return the document.

        Args:
            storage: What is in storage.
            versions: Old values, oldest first, by tag.
        """
        parts: dict[str, Any] = {
            WORKING: dict(self.working),
            STORAGE: dict(storage),
            STATE: self.state,
            **self.thoughts,
            **self.unknown,
            OWN: self._own_document(versions),
        }

        return {key: parts[key] for key in self._places()}

    def add_thought(self, entry: str, prefix: str, limit: int) -> str:
        """Add a thought, and drop the oldest beyond so many; return its key."""
        if prefix not in self._prefixes:
            self._prefixes.append(prefix)
            self._adopt(prefix)
            self.next_thought = max(self.next_thought, self._last_number + 1)

        # the file may have something else under that key, which would hide the thought
        while (key := f"{prefix}{self.next_thought:03}") in self.unknown:
            self.next_thought += 1

        self._order.insert(self._end_of_thoughts(), key)
        self.thoughts[key] = entry
        self.next_thought += 1
        while len(self.thoughts) > limit:
            self.drop_thought(next(iter(self.thoughts)))

        return key

    def drop_thought(self, key: str) -> None:
        """Remove a thought."""
        del self.thoughts[key]
        self._order.remove(key)

    def _adopt(self, prefix: str) -> None:
        """Take the entries with this prefix for thoughts, in the order of their numbers."""
        found: list[tuple[int, str]] = []
        for key, value in self.unknown.items():
            digits = key.removeprefix(prefix) if key.startswith(prefix) else ""
            if isinstance(value, str) and digits.isascii() and _NUMBER.fullmatch(digits):
                found.append((int(digits), key))

        for number, key in sorted(found):
            self.thoughts[key] = self.unknown.pop(key)
            self._last_number = max(self._last_number, number)

    def _end_of_thoughts(self) -> int:
        """Return the place for a new thought: after the last, else before what is prism's own."""
        places = [place for place, key in enumerate(self._order) if key in self.thoughts]
        if places:
            return places[-1] + 1

        return self._order.index(OWN) if OWN in self._order else len(self._order)

    def _places(self) -> Iterator[str]:
        """Yield all keys: those of the document in its order, new ones at the end."""
        missing = [key for key in (WORKING, STORAGE, STATE) if key not in self._order]
        yield from missing
        yield from self._order
        if OWN not in self._order:
            yield OWN

    def _own_document(self, versions: Mapping[str, list[Any]]) -> dict[str, Any]:
        kept: dict[str, Any] = {
            "schema": SCHEMA,
            "cycle": self.cycle,
            "next_thought": self.next_thought,
            "used": dict(self.used),
        }
        seldom = {
            "outdated": list(self.outdated),
            "last_action": None if self.last_action is None else dict(self.last_action),
            "news": list(self.news),
            "versions": {tag: list(values) for tag, values in versions.items()},
        }
        rest = {key: value for key, value in self._own.items() if key not in seldom}
        own = {**rest, **kept, **{key: value for key, value in seldom.items() if value}}
        if self._prefixes != [DEFAULT_PREFIX]:
            own["thought_prefixes"] = list(self._prefixes)

        return own


def with_tags(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return memories under proper tags; a value that would be hidden gets a numbered one."""
    if all(tag and as_tag(tag) == tag for tag in found):
        return dict(found)

    tagged: dict[str, Any] = {}
    for key, value in found.items():
        tag = wanted = as_tag(key) or "_"
        number = 1
        while tag in tagged and tagged[tag] != value:
            number += 1
            tag = numbered(wanted, number)

        tagged[tag] = value

    return tagged


def storage_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the storage of a document."""
    return with_tags(_object(document, STORAGE))


def versions_of(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the old values that a document has, oldest first, by tag."""
    found = _object(document, OWN).get("versions", {})
    return {as_tag(tag): list(values) for tag, values in found.items()}


def checked_document(document: Any, path: Path | None = None) -> dict[str, Any]:
    """Return a copy of a memory's document, as plain data that every file can hold.

    Raises:
        InputError: If it is not the document of a memory; names the key.
    """
    if not isinstance(document, Mapping):
        raise InputError("must be a JSON object", path=path)

    try:
        plain: dict[str, Any] = plain_value(document)
        Contents(plain)
        storage_of(plain)
    except InputError as error:
        error.path = None if path is None else str(path)
        raise
    except ValueError as error:
        raise InputError(str(error), path=path) from None

    return plain


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] = _typed(document, key, {})
    return value


def _typed(holder: Mapping[str, Any], key: str, default: Any, *, least: int = 0) -> Any:
    value = holder.get(key, default)
    if type(value) is not type(default):
        wanted = {dict: "an object", str: "text", int: "a whole number", list: "a list"}
        raise InputError(f"must be {wanted[type(default)]}", field=key)
    if isinstance(value, int) and not least <= value < 2**53:
        raise InputError(f"must be at least {least}", field=key)

    return value


_MAPPINGS: Mapping[str, tuple[type, str]] = {
    "used": (int, "whole numbers"),
    "versions": (list, "lists of values"),
}
_LISTS = ("outdated", "news", "thought_prefixes")


def _own_part(document: Mapping[str, Any]) -> dict[str, Any]:
    own = dict(_object(document, OWN))
    schema = _typed(own, "schema", SCHEMA)
    if schema > SCHEMA:
        raise NewerSchemaError(schema)

    _typed(own, "cycle", 0)
    _typed(own, "next_thought", 1, least=1)
    _typed(own, "last_action", {})
    for field, (kind, what) in _MAPPINGS.items():
        if not all(type(each) is kind for each in _typed(own, field, {}).values()):
            raise InputError(f"must have {what}", field=field)
    for field in _LISTS:
        if not all(isinstance(each, str) for each in _typed(own, field, [])):
            raise InputError("must be a list of texts", field=field)

    return own


StorageKind = Literal["json", "sqlite"]
