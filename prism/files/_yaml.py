"""The only reader of untrusted YAML, and the only module that imports PyYAML.

It reads the scalars of YAML 1.2's core schema, so ``on``, ``no`` and ``1:30`` stay texts. Depth and
size are checked on the parser's events, before anything is built.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from types import ModuleType
from typing import Any

from prism._lazy import import_extra
from prism.errors import InputError
from prism.files.records import Where

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
        positions: Where each part begins, by its path; for an entry of a mapping, its key.
        blocks: The line of the indicator of each text that is written as a block below it.
    """

    value: Any
    positions: dict[Where, Position] = field(default_factory=dict)
    blocks: dict[Where, int] = field(default_factory=dict)


def parse_yaml(text: str, *, path: PathLike[str] | str | None = None) -> YamlDocument:
    """Return the one document of a YAML text, which need not be trusted.

    Args:
        text: The text.
        path: The file it comes from, for the error.

    Raises:
        InputError: If it is not valid YAML, contains a repeated key, a merge (``<<``), a tag or
            several documents, or exceeds a limit, with its aliases expanded; the error names line
            and column.
        MissingExtraError: If PyYAML is not installed.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"has more than {MAX_CHARACTERS:,} characters", path=path)

    yaml = import_extra("yaml", "programs")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader = _Reader(path)
    try:
        reader.check(yaml, yaml.parse(text, Loader=loader))
        node = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        raise _unreadable(error, path) from None
    if node is None:
        raise InputError("is empty", path=path)

    return reader.document(node)


def _unreadable(error: Any, path: PathLike[str] | str | None) -> InputError:
    position = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    column = "" if position is None else f" (column {position.column + 1})"
    line = None if position is None else position.line + 1

    # libyaml scans ahead, and since PyYAML 6.0.4 it has its own limit, far beyond ours
    if problem == "exceeded maximum nesting depth":
        return InputError(f"is nested more than {MAX_DEPTH} levels deep", path=path, line=line)

    words = f"{context}, {problem}" if context else problem
    return InputError(f"is not valid YAML: {words}{column}", path=path, line=line)


class _Reader:
    """Builds plain data from the nodes that PyYAML composes."""

    def __init__(self, path: PathLike[str] | str | None) -> None:
        self._path = path
        self._positions: dict[Where, Position] = {}
        self._blocks: dict[Where, int] = {}
        self._size = 0

    def check(self, yaml: ModuleType, events: Iterable[Any]) -> None:
        """Check a document before its nodes exist, which take much memory, and depth the stack."""
        depth = size = 0
        for event in events:
            if getattr(event, "tag", None) is not None:
                problem = f"has the tag {event.tag!r}: prism reads plain values only"
                raise self._wrong(event, problem)

            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            size += isinstance(event, yaml.NodeEvent)
            self._limit(event, depth, size)

    def document(self, node: Any) -> YamlDocument:
        return YamlDocument(self._value(node, ()), self._positions, self._blocks)

    def _value(self, node: Any, where: Where) -> Any:
        self._positions.setdefault(where, _position(node))
        self._size += 1
        self._limit(node, len(where), self._size)

        # an alias is the node of its anchor, of which each repetition is read as if written out
        if node.id == "sequence":
            return [self._value(item, (*where, index)) for index, item in enumerate(node.value)]
        if node.id == "mapping":
            return self._mapping(node, where)
        if node.style in ("|", ">"):
            self._blocks[where] = _position(node)[0]
        return node.value if node.style else self._resolved(node)

    def _mapping(self, node: Any, where: Where) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for key_node, value in node.value:
            if key_node.id != "scalar":
                raise self._wrong(key_node, "a key must be text")

            # the written form is the name, so a state may be called no, null or 1
            key = str(key_node.value)
            if key == "<<" and not key_node.style:
                raise self._wrong(key_node, "prism merges no mappings (<<): write out the keys")
            if key in items:
                raise self._wrong(key_node, f"the key {key!r} appears twice")

            self._size += 1
            self._positions[*where, key] = _position(key_node)
            items[key] = self._value(value, (*where, key))

        return items

    def _resolved(self, node: Any) -> Any:
        text = node.value
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _INTEGER_OF_BASE.fullmatch(text):
            return int(text, base=0)
        if _ENDLESS.fullmatch(text):
            problem = f"contains {text}, which is not finite: if it is text, quote it"
            raise self._wrong(node, problem)
        if not _FLOAT.fullmatch(text):
            return text

        number = float(text)
        if not math.isfinite(number):
            raise self._wrong(node, f"contains a number that is too large: {text}")
        return number

    def _limit(self, node: Any, depth: int, size: int) -> None:
        if depth > MAX_DEPTH:
            raise self._wrong(node, f"is nested more than {MAX_DEPTH} levels deep")
        if size > MAX_VALUES:
            problem = f"contains more than {MAX_VALUES:,} values, with its aliases expanded"
            raise self._wrong(node, problem)

    def _wrong(self, node: Any, problem: str) -> InputError:
        line, column = _position(node)
        return InputError(f"{problem} (column {column})", path=self._path, line=line)


def _position(node: Any) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1
