"""The contents of a memory, and the shape of its document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from prism.cognition._memory._values import as_tag, numbered, plain_value
from prism.errors import InputError
from prism.files._source import Source, Where
from prism.files.declarations import Declaration, meant, read_document

SCHEMA = 2

STATES = ("thinking", "executing", "paging")
"""The states of a thinking agent."""

# below what a number of JSON holds exactly, with room to count on
_NUMBER = re.compile(r"\d{3,15}", re.ASCII)
_MOST = 2**53


class Version(Declaration):
    """An old value of a memory.

    Attributes:
        value: The value.
        replaced_in_cycle: The cycle in which it was replaced.
    """

    value: Any
    replaced_in_cycle: int


class Own(Declaration):
    """The part of a document that prism keeps for itself.

    Attributes:
        schema_: The version of the shape.
        cycle: The cycles so far.
        next_thought: The number of the next thought.
        used: The cycle in which each tag of working memory was used last.
        last_action: The last action and its result, empty before the first.
        news: What the agent has been told and has not answered yet.
        versions: Old values of memories, oldest first, by tag.
        thought_prefixes: What the keys of thoughts begin with.
    """

    model_config = ConfigDict(extra="allow")

    schema_: Annotated[int, Field(ge=0)] = Field(default=SCHEMA, alias="schema")
    cycle: Annotated[int, Field(ge=0, lt=_MOST)] = 0
    next_thought: Annotated[int, Field(ge=1, lt=_MOST)] = 1
    used: dict[str, int] = Field(default={})
    last_action: dict[str, Any] = Field(default={})
    news: list[str] = Field(default=[])
    versions: dict[str, list[Version]] = Field(default={})
    thought_prefixes: list[str] = Field(default=["thinking_log_"])


class Document(Declaration):
    """A memory as JSON data, in the specification's shape."""

    model_config = ConfigDict(extra="allow")

    working_memory: dict[str, Any] = Field(default={})
    storage: dict[str, Any] = Field(default={})
    state: str = "thinking"
    prism: Own = Own()


_SELDOM = Own().model_dump(exclude={"schema_", "cycle", "next_thought", "used"})
"""What a file does not say where it is empty, or the default."""


class NewerSchemaError(InputError):
    """The memory was written by a newer prism."""

    def __init__(self, schema: int, path: str | None = None) -> None:
        problem = f"has schema {schema}, but this prism reads up to {SCHEMA}: use a newer prism"
        super().__init__(problem, path=path, field="schema")


class Contents:
    """All of a memory.

    Keys that prism does not know stay where they stand, also inside its own, so that a commit
    changes as little of the file as it can.

    Args:
        source: The memory's document, which is copied, as plain data that every file can hold.

    Raises:
        InputError: If it is not that of a memory; names the line or the key.

    Attributes:
        working: Working memory.
        state: The agent's state.
        thoughts: The last thoughts, oldest first.
        own: What else prism keeps: see `Own`.
        stored: Storage, in order of addition.
        versions: Old values, oldest first, by tag.
    """

    def __init__(self, source: Source) -> None:
        document = _plain(source)
        found: Document = read_document(Document, replace(source, value=document), checks=[_slips])
        given = document.get("prism", {})
        others = {key: value for key, value in given.items() if key not in _SELDOM}
        self.own: dict[str, Any] = {**others, **found.prism.model_dump(by_alias=True)}
        self.own["schema"] = SCHEMA
        versions = self.own.pop("versions")
        self.working: dict[str, Any] = _with_tags(found.working_memory)
        self.stored: dict[str, Any] = _with_tags(found.storage)
        self.state: str = found.state
        self.versions: dict[str, list[Any]] = {as_tag(tag): old for tag, old in versions.items()}
        # all keys in their order
        missing = [key for key in ("working_memory", "storage", "state") if key not in document]
        self._top: dict[str, Any] = {**dict.fromkeys(missing), **document}
        self._top.setdefault("prism", None)

        self._forget_removed()
        self.thoughts: dict[str, str] = {}
        for prefix in self.own["thought_prefixes"]:
            self._adopt(prefix)

    @property
    def unknown(self) -> dict[str, Any]:
        """All other keys."""
        known = {*Document.model_fields, *self.thoughts}
        return {key: value for key, value in self._top.items() if key not in known}

    def to_dict(self) -> dict[str, Any]:
        """Return the document."""
        versions = {tag: [*values] for tag, values in self.versions.items()}
        own = {
            key: value.copy() if isinstance(value, dict | list) else value
            for key, value in {**self.own, "versions": versions}.items()
            if key not in _SELDOM or (value and value != _SELDOM[key])
        }
        parts = {
            "working_memory": {**self.working},
            "storage": {**self.stored},
            "state": self.state,
            "prism": own,
        }
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

    def is_missing_thought(self, key: str) -> bool:
        """Return whether a key is that of a thought which is not in the log."""
        return key not in self._top and any(
            key.startswith(prefix) and _NUMBER.fullmatch(key.removeprefix(prefix))
            for prefix in self.own["thought_prefixes"]
        )

    def return_thought(self, key: str, entry: str) -> None:
        """Put a thought back to its place in the log."""
        self._place(key)
        self._top |= {**self.thoughts, key: entry}
        self.thoughts.clear()
        for prefix in self.own["thought_prefixes"]:
            self._adopt(prefix)

        # the document has them in the order of the log, too
        logged = iter(self.thoughts)
        keys = [next(logged) if each in self.thoughts else each for each in self._top]
        self._top = {each: self._top[each] for each in keys}

    def _forget_removed(self) -> None:
        """Keep nothing of memories that somebody may have removed by hand."""
        used = self.own["used"]
        self.own["used"] = {tag: used[tag] for tag in used if tag in self.working}

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
        keys.insert(places[-1] if places else keys.index("prism"), key)
        self._top = {each: self._top.get(each) for each in keys}


def _slips(document: Document) -> Iterator[tuple[Where, str]]:
    """Yield what is probably misspelt; other unknown keys may be those of another program."""
    parts: dict[Where, Declaration] = {(): document, ("prism",): document.prism}
    for where, part in parts.items():
        fields = type(part).model_fields.items()
        missing = [each.alias or name for name, each in fields if name not in part.model_fields_set]
        for key in part.model_extra or ():
            if near := meant(key, missing):
                yield (*where, key), f"is unknown; did you mean {near!r}?"
    if near := misspelt_state(document.state):
        yield ("state",), f"is unknown; did you mean {near!r}?"


def misspelt_state(state: str) -> str | None:
    """Return the state that is probably meant by a name; None if it is one, or of no such thing."""
    # an agent starts over in thinking from another case, as from a state of another program
    near = meant(state, STATES)
    return None if near == state.strip().lower() else near


def _with_tags(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return memories under proper tags; a value that would be hidden gets a numbered one."""
    tagged: dict[str, Any] = {}
    for key, value in found.items():
        wanted = as_tag(key) or "_"
        further = (numbered(wanted, number) for number in count(2))
        free = (tag for tag in chain([wanted], further) if tagged.get(tag, value) == value)
        tagged[next(free)] = value

    return tagged


def _plain(source: Source) -> dict[str, Any]:
    """Return a copy of a document as plain data that every file can hold.

    Raises:
        InputError: If that is not possible, or a newer prism wrote it.
    """
    try:
        document: dict[str, Any] = plain_value(source.value)
    except ValueError as error:
        raise source.error(str(error)) from None

    own = document.get("prism") if isinstance(document, dict) else None
    schema = own.get("schema") if isinstance(own, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise NewerSchemaError(schema, source.path)

    return document
