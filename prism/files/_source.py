"""A document: its text, its value, and the place of each part."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from prism.errors import InputError
from prism.files._json import parse_json
from prism.files._places import Mark, Where, json_places, nearest, repeated_key, toml_places
from prism.files._records import reading
from prism.files._yaml import YamlDocument, parse_yaml

__all__ = [
    "DocumentError",
    "Language",
    "Place",
    "Problem",
    "Problems",
    "Severity",
    "Source",
    "Where",
    "key_of",
]

Language = Literal["json", "toml", "yaml"]

Severity = Literal["error", "warning", "note"]

MOST_TOLD = 50
"""Most problems of one document to report."""

_LONGEST_PART = 60
_LANGUAGES: dict[str, Language] = {
    ".json": "json",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text.

    Args:
        line: Line, counted from 1.
        column: Column, counted from 1; 0 if the language's parser does not reveal it.
    """

    line: int
    column: int = 0


@dataclass(frozen=True)
class Source:
    """A document that was read, from a trusted source or not.

    Make one with `read`, `parse` or `of`.

    Args:
        value: The document as plain data.
        text: Its text; None if it never had one.
        language: Its language; None if it never had a text.
        path: The file, for messages.
    """

    value: Any
    text: str | None = field(default=None, repr=False)
    language: Language | None = None
    path: str | None = None
    _yaml: YamlDocument | None = field(default=None, repr=False, compare=False)

    @classmethod
    def read(cls, path: Path | str, language: Language | None = None) -> Self:
        """Read a file.

        Args:
            path: The file.
            language: Its language; by default that of the file's suffix, or else JSON.

        Raises:
            InputError: If it cannot be read, or is not valid. The message names the line.
            MissingExtraError: If it is YAML and PyYAML is not installed.
        """
        path = Path(path)
        with reading(path):
            text = path.read_bytes().decode()

        return cls.parse(text, language or _LANGUAGES.get(path.suffix.lower(), "json"), path=path)

    @classmethod
    def parse(
        cls, text: str, language: Language, *, path: PathLike[str] | str | None = None
    ) -> Self:
        """Read a text.

        Args:
            text: The text.
            language: Its language.
            path: The file it comes from, for messages.

        Raises:
            InputError: If it is not valid. The message names the line.
            MissingExtraError: If it is YAML and PyYAML is not installed.
        """
        name = None if path is None else str(path)
        if language == "yaml":
            document = parse_yaml(text, path=path)
            return cls(document.value, text, language, name, document)
        if language == "toml":
            return cls(_parse_toml(text, path), text, language, name)

        bare = text.removeprefix("\ufeff")
        try:
            return cls(parse_json(bare, path=path), text, language, name)
        except InputError as error:
            raise _with_place(error, bare) from None

    @classmethod
    def of(cls, value: Any, path: PathLike[str] | str | None = None) -> Self:
        """Return plain data as a document, whose problems have keys but no lines."""
        return cls(value, path=None if path is None else str(path))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the text."""
        return sha256((self.text or "").encode()).hexdigest()

    def place(self, where: Where) -> Place | None:
        """Return the place of a key, or of the nearest enclosing part; None without a text."""
        found = nearest(self._places, where)
        return None if found is None else Place(*found)

    def line_of(self, where: Where) -> int:
        """Return the line of a key, or of the nearest enclosing part; 0 without a text."""
        place = self.place(where)
        return 0 if place is None else place.line

    @cached_property
    def _places(self) -> dict[Where, Mark]:
        if self._yaml is not None:
            return self._yaml.places
        if self.text is None:
            return {}

        return toml_places(self.text) if self.language == "toml" else json_places(self.text)

    def place_inside(self, where: Where, line: int) -> Place | None:
        """Return the place of a line inside a text value of the document.

        Args:
            where: The value.
            line: The line inside of it, counted from 1.
        """
        document = self._yaml
        if document is None or where not in document.values:
            return self.place(where)

        # a block of text begins on the line after its indicator, a quoted text on the same line
        first, column = document.values[where]
        return Place(first + line, 1) if where in document.blocks else Place(first, column)

    def error(self, problem: str, where: Where = ()) -> InputError:
        """Return an error about one place.

        Args:
            problem: The problem, and how to fix it.
            where: The place.
        """
        line = self.line_of(where) or None
        return InputError(problem, path=self.path, line=line, field=key_of(where) or None)


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A certain or probable mistake in a document.

    Args:
        path: The file; empty if there is none.
        line: Line, counted from 1; 0 if it has none.
        column: Column, counted from 1; 0 if it has none.
        key: The key, such as ``cells[0].counts``; empty for the whole document.
        message: The problem, and how to fix it.
        kind: Its name, such as ``unknown_key``.
        severity: ``error`` if the document cannot be used, ``warning`` for a probable mistake,
            ``note`` for a hint.
    """

    path: str
    line: int
    column: int
    key: str
    message: str
    kind: str
    severity: Severity = "error"

    def __str__(self) -> str:
        """Return ``file:line:column: key: message``, without unknown parts."""
        numbers = (str(number) for number in (self.line, self.column) if number)
        place = ":".join(part for part in (self.path, *numbers) if part)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class DocumentError(InputError):
    """A document cannot be used.

    Args:
        problems: The problems, in the order of the document.
        more: Number of further problems that are not listed.

    Attributes:
        problems: The problems, in the order of the document.
    """

    def __init__(self, problems: Sequence[Problem], more: int = 0) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        first = self.problems[0]
        path = first.path or None
        if len(self.problems) == 1:
            super().__init__(
                first.message, path=path, line=first.line or None, field=first.key or None
            )
            return

        listed = "".join(f"\n  {problem}" for problem in self.problems[:MOST_TOLD])
        more += max(0, len(self.problems) - MOST_TOLD)
        rest = f"\n  and {more} more" if more > 0 else ""
        count = min(MOST_TOLD, len(self.problems)) + more
        super().__init__(f"has {count} problems:{listed}{rest}", path=path)


class Problems:
    """Collects the problems of one document, the first `MOST_TOLD` of each severity.

    Args:
        source: The document.
        beside: The problems of another document, to report together with these.

    Attributes:
        source: The document.
        found: The problems so far.
        counts: Number of problems by severity.
    """

    error_class: type[DocumentError] = DocumentError

    def __init__(self, source: Source, beside: Problems | None = None) -> None:
        self.source: Source = source
        self.found: list[Problem] = [] if beside is None else beside.found
        self.counts: Counter[Severity] = Counter() if beside is None else beside.counts

    def __iter__(self) -> Iterator[Problem]:
        """Iterate over the problems so far."""
        return iter(self.found)

    @property
    def errors(self) -> list[Problem]:
        """The errors, in the order of the document."""
        return sorted(problem for problem in self.found if problem.severity == "error")

    @property
    def is_full(self) -> bool:
        """Whether further problems would not be listed, so the search for them can stop."""
        return max(self.counts["error"], self.counts["warning"]) > MOST_TOLD

    def add(
        self,
        where: Where,
        message: str,
        kind: str = "value",
        *,
        line: int = 0,
        severity: Severity = "error",
    ) -> None:
        """Add a problem, once.

        Args:
            where: Its place in the document.
            message: The problem, and how to fix it.
            kind: Its name.
            line: Line inside the text at that place, counted from 1.
            severity: Its severity.
        """
        if self.counts[severity] >= MOST_TOLD:
            self.counts[severity] += 1
            return

        source = self.source
        place = (source.place_inside(where, line) if line else source.place(where)) or Place(0)
        path, key = source.path or "", key_of(where)
        self.take(Problem(path, place.line, place.column, key, message, kind, severity))

    def take(self, problem: Problem) -> None:
        """Add a problem that was found elsewhere, once."""
        if problem not in self.found:
            self.counts[problem.severity] += 1
            self.found.append(problem)

    def raise_if_any(self) -> None:
        """Raise an error if there are problems that make the document unusable.

        Raises:
            DocumentError: If there are such problems.
        """
        if errors := self.errors:
            raise self.error_class(errors, self.counts["error"] - len(errors))


def key_of(where: Where) -> str:
    """Return a place in a document as shown in messages, such as ``cells[0].counts``."""
    shown = ""
    for part in where:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            name = part if len(part) <= _LONGEST_PART else f"{part[:_LONGEST_PART]}..."
            shown += f".{name}" if shown else name

    return shown


def _with_place(error: InputError, text: str) -> InputError:
    """Return an error about JSON with its place, if it is about a key that appears twice."""
    try:
        json.loads(text)
        found = repeated_key(text) if error.field is not None else None
    except (ValueError, RecursionError):
        return error  # it has its place, or where keys stand cannot be told
    if found is None:
        return error

    where, (line, column) = found
    problem = f"{error.problem} (column {column})"
    return InputError(problem, path=error.path, line=line, field=key_of(where))


def _parse_toml(text: str, path: PathLike[str] | str | None) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = re.search(r"at line (\d+)", str(error))
        line = int(told[1]) if told else len(text.splitlines())
        raise InputError(f"is not valid TOML: {error}", path=path, line=line) from None
