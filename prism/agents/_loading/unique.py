"""Names that may occur only once in a file."""

from __future__ import annotations

from collections.abc import Sequence

from prism.files import Record


class UniqueNames:
    """The names that a file has used so far, each with its line.

    Args:
        field: The field that holds the name.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._lines: dict[str, int] = {}

    def take(self, record: Record) -> str:
        """Return the name of a record.

        Raises:
            InputError: If it is missing, or an earlier record has the same.
        """
        name = record.text(self._field)
        if name in self._lines:
            problem = f"{name!r} is already used on line {self._lines[name]}"
            raise record.wrong(self._field, problem)

        self._lines[name] = record.line

        return name

    def __contains__(self, name: object) -> bool:
        """Return True if a record had this name."""
        return name in self._lines


def told_apart(names: Sequence[str]) -> list[str]:
    """Return names that occur once each: a repeated one gets its row, counted from 0, as ``ann#7``.

    The first of several keeps its name.
    """
    taken, seen = set(names), set[str]()
    unique: list[str] = []

    for row, name in enumerate(names):
        told = name
        while told in (seen if told == name else taken):
            told = f"{told}#{row}"

        seen.add(name)
        taken.add(told)
        unique.append(told)

    return unique
