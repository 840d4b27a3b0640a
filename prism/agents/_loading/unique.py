"""Names that may occur only once in a file."""

from __future__ import annotations

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
