"""The only reader of untrusted YAML, and the only module that imports PyYAML.

It reads the scalars of YAML 1.2's core schema, so ``on``, ``no`` and ``1:30`` stay texts. It reads
events rather than nodes, so depth and size are limited before anything is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from prism._lazy import import_extra
from prism.errors import InputError
from prism.files._records import reading

Where = tuple[str | int, ...]
"""The place of a value in a document: keys and indices of lists, from the top."""

Position = tuple[int, int]
"""Line and column, counted from 1."""

MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 50
MAX_VALUES = 100_000

# https://yaml.org/spec/1.2.2/#103-core-schema
_INTEGER = re.compile(r"[-+]?[0-9]{1,400}")
_INTEGER_OF_BASE = re.compile(r"0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,5})?")
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
}


@dataclass(slots=True)
class YamlDocument:
    """A document and the place of each of its values.

    Args:
        value: The document as plain data.
        places: The beginning of each part, by its path; for an entry of a mapping, that of its key.
        values: The beginning of each value, by its path.
        blocks: Texts written as blocks, which begin on the line below.
    """

    value: Any
    places: dict[Where, Position] = field(default_factory=dict)
    values: dict[Where, Position] = field(default_factory=dict)
    blocks: set[Where] = field(default_factory=set)


def yaml_text(path: Path) -> str:
    """Return the text of a YAML file, cut just above the maximum length.

    Raises:
        InputError: If it cannot be read.
    """
    with reading(path), path.open(encoding="utf-8") as file:
        return file.read(MAX_CHARACTERS + 1)


def parse_yaml(text: str, *, path: PathLike[str] | str | None = None) -> YamlDocument:
    """Return the one document of a YAML text, which need not be trusted.

    Args:
        text: The text.
        path: The file it comes from, for the error.

    Raises:
        InputError: If it is not valid YAML, contains a repeated key, a tag, several documents or an
            alias that refers to itself, or exceeds a limit; the error names line and column.
        MissingExtraError: If PyYAML is not installed.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"has more than {MAX_CHARACTERS:,} characters", path=path)

    yaml = import_extra("yaml", "programs")
    reader = _Reader(yaml, text, path)
    try:
        return reader.document()
    except yaml.YAMLError as error:
        raise _unreadable(error, path) from None


def _unreadable(error: Any, path: PathLike[str] | str | None) -> InputError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    column = "" if mark is None else f" (column {mark.column + 1})"
    line = None if mark is None else mark.line + 1

    # libyaml scans ahead, and since PyYAML 6.0.4 it has its own limit, far beyond ours
    if problem == "exceeded maximum nesting depth":
        return InputError(f"is nested more than {MAX_DEPTH} levels deep", path=path, line=line)
    return InputError(f"is not valid YAML: {problem}{column}", path=path, line=line)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value that was read, for aliases to repeat."""

    value: Any
    size: int
    depth: int


class _Reader:
    """Builds plain data from the events of PyYAML's parser, the C one if available."""

    def __init__(self, yaml: ModuleType, text: str, path: PathLike[str] | str | None) -> None:
        self._yaml = yaml
        self._path = path
        self._events: Iterator[Any] = yaml.parse(text, Loader=_loader(yaml))
        self._anchors: dict[str, _Node | None] = {}
        self._places: dict[Where, Position] = {}
        self._values: dict[Where, Position] = {}
        self._blocks: set[Where] = set()
        self._size = 0

    def document(self) -> YamlDocument:
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), self._yaml.StreamEndEvent):
            raise InputError("is empty", path=self._path)

        node = self._node(next(self._events), ())
        next(self._events)  # the end of the document

        event = next(self._events)
        if not isinstance(event, self._yaml.StreamEndEvent):
            raise self._wrong(event, "contains a second document: prism reads one per file")

        return YamlDocument(node.value, self._places, self._values, self._blocks)

    def _node(self, event: Any, where: Where) -> _Node:
        yaml = self._yaml
        self._values[where] = _position(event)
        self._places.setdefault(where, self._values[where])
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, where)
        if len(where) >= MAX_DEPTH:
            raise self._wrong(event, f"is nested more than {MAX_DEPTH} levels deep")
        if event.tag not in (None, "!"):
            raise self._wrong(event, f"has the tag {event.tag!r}: prism reads plain values only")

        self._grow(event, 1)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None  # until it is complete
        if isinstance(event, yaml.ScalarEvent):
            node = _Node(self._scalar(event), 1, 0)
            if event.style in ("|", ">"):
                self._blocks.add(where)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(where)
        else:
            node = self._mapping(where)
        if anchor is not None:
            self._anchors[anchor] = node

        return node

    def _alias(self, event: Any, where: Where) -> _Node:
        if event.anchor not in self._anchors:
            raise self._wrong(event, f"there is no earlier anchor &{event.anchor}")

        node = self._anchors[event.anchor]
        if node is None:
            raise self._wrong(event, f"*{event.anchor} refers to itself")
        if len(where) + node.depth >= MAX_DEPTH:
            raise self._wrong(event, f"is nested more than {MAX_DEPTH} levels deep")

        # each repetition counts as if it were written out, since a few lines can mean billions of
        # values
        self._grow(event, node.size)

        return _Node(_copied(node.value), node.size, node.depth)

    def _scalar(self, event: Any) -> Any:
        is_plain = event.implicit[0]
        return self._resolved(event) if is_plain else event.value

    def _resolved(self, event: Any) -> Any:
        text = event.value
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _INTEGER_OF_BASE.fullmatch(text):
            return int(text, base=0)
        if _ENDLESS.fullmatch(text):
            raise self._wrong(
                event, f"contains {text}, which is not finite: if it is text, quote it"
            )
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                raise self._wrong(event, f"contains a number that is too large: {text}")
            return number

        return text

    def _sequence(self, where: Where) -> _Node:
        items: list[Any] = []
        size, depth = 1, 0
        for event in self._events:
            if isinstance(event, self._yaml.SequenceEndEvent):
                break

            node = self._node(event, (*where, len(items)))
            items.append(node.value)
            size, depth = size + node.size, max(depth, node.depth + 1)

        return _Node(items, size, depth)

    def _mapping(self, where: Where) -> _Node:
        items: dict[str, Any] = {}
        size, depth = 1, 0
        for event in self._events:
            if isinstance(event, self._yaml.MappingEndEvent):
                break

            key = self._key(event)
            if key in items:
                raise self._wrong(event, f"the key {key!r} appears twice")

            self._places[*where, key] = _position(event)
            node = self._node(next(self._events), (*where, key))
            items[key] = node.value
            size, depth = size + node.size + 1, max(depth, node.depth + 1)

        return _Node(items, size, depth)

    def _key(self, event: Any) -> str:
        if not isinstance(event, self._yaml.ScalarEvent):
            raise self._wrong(event, "a key must be text")

        self._grow(event, 1)
        # the written form is the name, so a state may be called no, null or 1
        return str(event.value)

    def _grow(self, event: Any, values: int) -> None:
        self._size += values
        if self._size > MAX_VALUES:
            raise self._wrong(
                event, f"contains more than {MAX_VALUES:,} values, with its aliases expanded"
            )

    def _wrong(self, event: Any, problem: str) -> InputError:
        line, column = _position(event)
        return InputError(f"{problem} (column {column})", path=self._path, line=line)


def _loader(yaml: ModuleType) -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _position(event: Any) -> Position:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _copied(value: Any) -> Any:
    """Return a copy of the value that shares nothing with the first."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]

    return value
