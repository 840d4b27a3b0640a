"""What is wrong with a workflow and with the files that it names; all is told at once."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from pydantic import ValidationError

from prism.files._declarations import meant, shape_problems, shown
from prism.files._source import DocumentError, Problems, Source, Where
from prism.workflow._document._declarations import STEP_KINDS, AnyDocument, AnyStep, known_keys
from prism.workflow._document._definition import Origin


class WorkflowFileError(DocumentError):
    """A workflow cannot be loaded.

    Args:
        problems: Everything that is wrong, in the order of the file.
    """


class WorkflowProblems(Problems):
    """Collects what is wrong with one file, and with those that it names.

    Args:
        source: The file.
    """

    error_class = WorkflowFileError

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._others: dict[str | None, WorkflowProblems] = {}

    def of_file(self, source: Source) -> WorkflowProblems:
        """Return where to note what is wrong with another file; it is told with the rest."""
        other = self._others[source.path] = WorkflowProblems(source)
        other.found = self.found

        return other

    def at(self, path: str | None) -> WorkflowProblems:
        """Return where to note what is wrong with a file that was read; None for the first."""
        return self if path is None else self._others[path]

    def add_shape(self, error: ValidationError, kind: Any = AnyDocument) -> list[tuple[Where, str]]:
        """Note what pydantic says of the document's shape.

        Args:
            error: What it says.
            kind: The class that declares the document.

        Returns:
            Where something is wrong, with its name.
        """
        value = self.source.value
        found = list(shape_problems(kind, value, error))
        unknown = {where[:-1] for where, _, name in found if _is_unknown_type(where, name)}
        for where, message, name in found:
            # of a step whose type is not known nothing else can be said
            if where[:-1] not in unknown or _is_unknown_type(where, name):
                self.add(where, _told(where, message, name, value), name)

        return [(where, name) for where, _, name in found]

    def add_step(
        self, error: ValidationError, step: Any, own: Set[str], at: Where, phase: Origin
    ) -> None:
        """Note what pydantic says of a step that is a phase.

        Args:
            error: What it says.
            step: The step, written out.
            own: Its keys that stand beside the phase's name; all others are the phase's.
            at: Where the step stands.
            phase: Where its phase stands.
        """
        for where, message, name in shape_problems(AnyStep, step, error):
            told = _told(("steps", 0, *where), message, name, {"steps": [step]})
            if where and where[0] in own:
                self.add((*at, *where), told, "phase")
            else:
                self.at(phase.file).add((*phase.where, "step", *where), told, "phase")


def _is_unknown_type(where: Where, name: str) -> bool:
    return name == "literal_error" and where[-1] == "type" and where[-3:-2] == ("steps",)


def _told(where: Where, message: str, name: str, value: Any) -> str:
    """Return what is wrong, where a workflow has more to say of it than any other document."""
    owner: Any = None
    for part in where:
        owner, value = value, value[part] if _has(value, part) else None

    if name == "string_pattern_mismatch":
        return f'{shown(value)} is not a transition: write it as "a->b"'
    if _is_unknown_type(where, name):
        *others, last = map(repr, STEP_KINDS)
        return f"must be {', '.join(others)} or {last}, got {shown(value)}"

    is_of_step = where[-3:-2] == ("steps",) and isinstance(owner, dict) and "phase" not in owner
    inside = f" in a step of type {owner.get('type', 'code')}" if is_of_step else ""
    if name == "missing":
        return f"{message}{inside}"
    if name == "extra_forbidden":
        near = meant(str(where[-1]), known_keys())
        if near is not None:
            return f"is unknown{inside}; did you mean {near!r}?"
        return f"is unknown{inside}" if inside else message

    return message


def _has(value: Any, part: str | int) -> bool:
    return part in value if isinstance(value, dict) else isinstance(part, int)
