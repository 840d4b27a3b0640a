"""The contents of a memory apart from its storage, and the shape of its document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any, Literal

from prism.cognition._memory._values import as_tag, numbered, plain_value
from prism.errors import InputError

StorageKind = Literal["json", "sqlite"]

SCHEMA = 2
WORKING = "working_memory"
STORAGE = "storage"
STATE = "state"
OWN = "prism"

_ALWAYS: Mapping[str, Any] = {"schema": SCHEMA, "cycle": 0, "next_thought": 1, "used": {}}
_SELDOM: Mapping[str, Any] = {
    "outdated": [],
    "last_action": {},
    "news": [],
    "versions": {},
    "thought_prefixes": ["thinking_log_"],
}
_LEAST = {"next_thought": 1}
_WITHIN = {
    "used": (int, "whole numbers"),
    "versions": (list, "lists of values"),
    "outdated": (str, "texts"),
    "news": (str, "texts"),
    "thought_prefixes": (str, "texts"),
}
_KINDS = {dict: "an object", str: "text", int: "a whole number", list: "a list"}

# below what a number of JSON holds exactly, with room to count on
_NUMBER = re.compile(r"\d{3,15}", re.ASCII)


class NewerSchemaError(InputError):
    """The memory was written by a newer prism."""

    def __init__(self, schema: int, path: Path | None = None) -> None:
        problem = f"has schema {schema}, but this prism reads up to {SCHEMA}: use a newer prism"
        super().__init__(problem, path=path, field="schema")


class Contents:
    """All of a memory but the storage.

    Keys that prism does not know stay where they stand, also inside its own, so that a commit
    changes as little of the file as it can.

    Args:
        document: The memory as plain JSON data, in the specification's shape.

    Raises:
        InputError: If it is not that of a memory; names the key.

    Attributes:
        working: Working memory.
        state: The agent's state.
        thoughts: The last thoughts, oldest first.
        own: What else prism keeps: ``cycle``, the cycles so far; ``next_thought``, its number;
            ``used``, the cycle in which each tag of working memory was used last; ``outdated``,
            the tags of working memory under which storage has had a newer value since;
            ``last_action`` and its result, empty before the first; ``news``, what the agent has
            been told and has not answered yet; and ``thought_prefixes``.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.working: dict[str, Any] = with_tags(_typed(document, WORKING, {}))
        self.state: str = _typed(document, STATE, "thinking")
        self.own: dict[str, Any] = _own_part(_typed(document, OWN, {}))
        missing = [key for key in (WORKING, STORAGE, STATE) if key not in document]
        # all keys in their order
        self._top: dict[str, Any] = {**dict.fromkeys(missing), **document}
        self._top.setdefault(OWN, None)

        # somebody may have removed memories by hand
        used, outdated = self.own["used"], self.own["outdated"]
        self.own["used"] = {tag: used[tag] for tag in used if tag in self.working}
        self.own["outdated"] = [tag for tag in outdated if tag in self.working]
        self.thoughts: dict[str, str] = {}
        for prefix in self.own["thought_prefixes"]:
            self._adopt(prefix)

    @property
    def unknown(self) -> dict[str, Any]:
        """All other keys."""
        known = {WORKING, STORAGE, STATE, OWN, *self.thoughts}
        return {key: value for key, value in self._top.items() if key not in known}

    def to_dict(
        self, storage: Mapping[str, Any], versions: Mapping[str, list[Any]]
    ) -> dict[str, Any]:
        """Return the document.

        Args:
            storage: What is in storage.
            versions: Old values, oldest first, by tag.
        """
        own = {
            key: value.copy() if isinstance(value, dict | list) else value
            for key, value in {**self.own, "versions": versions}.items()
            if key not in _SELDOM or (value and value != _SELDOM[key])
        }
        parts = {WORKING: {**self.working}, STORAGE: {**storage}, STATE: self.state, OWN: own}
        return {**self._top, **parts, **self.thoughts}

    def add_thought(self, entry: str, prefix: str, limit: int) -> str:
        """Add a thought, and drop the oldest beyond so many; return its key."""
        own = self.own
        if prefix not in own["thought_prefixes"]:
            own["thought_prefixes"].append(prefix)
            self._adopt(prefix)

        # the file may have something else under that key, which would hide the thought
        while (key := f"{prefix}{own['next_thought']:03}") in self._top:
            own["next_thought"] += 1

        own["next_thought"] += 1
        self._place(key)
        self.thoughts[key] = entry
        while len(self.thoughts) > limit:
            self.drop_thought(next(iter(self.thoughts)))

        return key

    def drop_thought(self, key: str) -> None:
        """Remove a thought."""
        del self.thoughts[key], self._top[key]

    def _adopt(self, prefix: str) -> None:
        """Take the entries with this prefix for thoughts, in the order of their numbers."""
        found: list[tuple[int, str]] = []
        for key, value in self.unknown.items():
            digits = key.removeprefix(prefix) if key.startswith(prefix) else ""
            if isinstance(value, str) and _NUMBER.fullmatch(digits):
                found.append((int(digits), key))

        for number, key in sorted(found):
            self.thoughts[key] = self._top[key]
            self.own["next_thought"] = max(self.own["next_thought"], number + 1)

    def _place(self, key: str) -> None:
        """Make a place for a new thought: after the last, else before what is prism's own."""
        keys = list(self._top)
        places = [place for place, each in enumerate(keys, 1) if each in self.thoughts]
        keys.insert(places[-1] if places else keys.index(OWN), key)
        self._top = {each: self._top.get(each) for each in keys}


def with_tags(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return memories under proper tags; a value that would be hidden gets a numbered one."""
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
    return with_tags(_typed(document, STORAGE, {}))


def versions_of(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the old values that a document has, oldest first, by tag."""
    found = document.get(OWN, {}).get("versions", {})
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


def _typed(holder: Mapping[str, Any], key: str, default: Any) -> Any:
    """Return the value of a key, which has the type of its default."""
    value, least = holder.get(key, default), _LEAST.get(key, 0)
    if type(value) is not type(default):
        raise InputError(f"must be {_KINDS[type(default)]}", field=key)
    if isinstance(value, int) and not least <= value < 2**53:
        raise InputError(f"must be at least {least}", field=key)

    return value


def _own_part(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what prism keeps for itself, checked: what it does not know, too, where it stands."""
    schema = _typed(given, "schema", SCHEMA)
    if schema > SCHEMA:
        raise NewerSchemaError(schema)

    defaults = {**_ALWAYS, **_SELDOM}
    known = {key: copy(_typed(given, key, default)) for key, default in defaults.items()}
    for key, (kind, what) in _WITHIN.items():
        inside = known[key].values() if isinstance(known[key], dict) else known[key]
        if not all(type(each) is kind for each in inside):
            raise InputError(f"must have {what}", field=key)

    others = {key: value for key, value in given.items() if key not in _SELDOM}
    # old values are in storage
    return {**others, **known, "schema": SCHEMA, "versions": {}}
