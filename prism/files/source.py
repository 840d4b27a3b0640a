"""A document: its value, and the line of each part if it is YAML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from prism.errors import InputError
from prism.files._json import parse_json
from prism.files._yaml import MAX_CHARACTERS, Position, YamlDocument, parse_yaml
from prism.files.records import Where, key_of, reading

Language = Literal["json", "toml", "yaml"]
Severity = Literal["error", "warning", "note"]

_MOST_LISTED = 50
_MOST_KEPT = 1000
_LANGUAGES: dict[str, Language] = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True)
class Source:
    """A document that was read, from a trusted source or not.

    Make one with `read`, `parse` or `of`.

    Args:
        value: The document as plain data.
        path: The file, for messages.
        yaml: The lines of its parts; None in other languages, whose problems are named by key.
    """

    value: Any
    path: str | None = None
    yaml: YamlDocument | None = field(default=None, repr=False, compare=False)

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
        language = language or _LANGUAGES.get(path.suffix.lower(), "json")
        # of a text that is too long, which is refused, no more is held
        most = MAX_CHARACTERS + 1 if language == "yaml" else None
        with reading(path), path.open(encoding="utf-8", newline="") as file:
            text = file.read(most)

        return cls.parse(text, language, path=path)

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
        if language == "yaml":
            document = parse_yaml(text, path=path)
            return cls(document.value, _name(path), document)

        value = (
            _parse_toml(text, path)
            if language == "toml"
            else parse_json(text.removeprefix("\ufeff"), path=path)
        )
        return cls(value, _name(path))

    @classmethod
    def of(cls, value: Any, path: PathLike[str] | str | None = None) -> Self:
        """Return plain data as a document."""
        return cls(value, _name(path))

    def line_of(self, where: Where) -> int:
        """Return the line of a key, or of the nearest enclosing part; 0 if it is not YAML."""
        return self.position_of(where)[0]

    def position_of(self, where: Where, line: int = 0) -> Position:
        """Return line and column of a key, or of the nearest enclosing part; zeros if not YAML.

        Args:
            where: The key.
            line: A line inside its text, counted from 1.
        """
        if self.yaml is None:
            return 0, 0

        # a block of text begins on the line after its indicator
        if line and where in self.yaml.blocks:
            return self.yaml.blocks[where] + line, 1

        while where not in self.yaml.positions:
            where = where[:-1]
        return self.yaml.positions[where]

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
        where = ":".join(part for part in (self.path, *numbers) if part)
        return ": ".join(part for part in (where, self.key, self.message) if part)


class DocumentError(InputError):
    """A document cannot be used.

    Args:
        problems: The reasons, at least one.

    Attributes:
        problems: The reasons, in the order of the document.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        first = self.problems[0]
        path = first.path or None
        if len(self.problems) == 1:
            super().__init__(
                first.message, path=path, line=first.line or None, field=first.key or None
            )
            return

        listed = "".join(f"\n  {problem}" for problem in self.problems[:_MOST_LISTED])
        more = len(self.problems) - _MOST_LISTED
        rest = f"\n  and {more} more" if more > 0 else ""
        super().__init__(f"has {len(self.problems)} problems:{listed}{rest}", path=path)


class Problems:
    """Collects the problems of one document, at most a thousand.

    Args:
        source: The document.
        beside: The problems of another document, to report together with these.

    Attributes:
        source: The document.
    """

    def __init__(self, source: Source, beside: Problems | None = None) -> None:
        self.source: Source = source
        # a dictionary, so that a problem that is met twice is reported once
        self._problems: dict[Problem, None] = {} if beside is None else beside._problems

    def __iter__(self) -> Iterator[Problem]:
        """Iterate over the problems so far."""
        return iter([*self._problems])

    def add(
        self,
        where: Where,
        message: str,
        kind: str = "value",
        *,
        line: int = 0,
        severity: Severity = "error",
    ) -> None:
        """Add a problem.

        Args:
            where: Its place in the document.
            message: The problem, and how to fix it.
            kind: Its name.
            line: Line inside the text at that place, counted from 1.
            severity: Its severity.
        """
        if len(self._problems) == _MOST_KEPT:
            return

        position = self.source.position_of(where, line)
        path = self.source.path or ""
        self._problems[Problem(path, *position, key_of(where), message, kind, severity)] = None

    def raise_if_any(self) -> None:
        """Raise an error if there are problems that make the document unusable.

        Raises:
            DocumentError: If there are such problems; it lists them with the warnings.
        """
        problems = [each for each in sorted(self) if each.severity != "note"]
        if any(each.severity == "error" for each in problems):
            raise DocumentError(problems)


def _name(path: PathLike[str] | str | None) -> str | None:
    return None if path is None else str(path)


def _parse_toml(text: str, path: PathLike[str] | str | None) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", path=path) from None
