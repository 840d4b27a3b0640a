"""Problems of a workflow and of the files that it names, all reported at once."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prism.files._declarations import keys_at, meant, shape_problems, shown
from prism.files._source import MOST_TOLD, DocumentError, Problem, Problems, Source, Where
from prism.workflow._document._declarations import STEP_KINDS, AnyDocument, document_kind


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

    def __init__(self, source: Source, beside: Problems | None = None) -> None:
        super().__init__(source, beside)
        self._others: dict[str, WorkflowProblems] = {}

    @property
    def top(self) -> Where:
        """Path of the workflow in its document."""
        return ("workflow",) if document_kind(self.source.value) == "<agent>" else ()

    @property
    def files(self) -> tuple[Path, ...]:
        """The other files that were read."""
        return tuple(map(Path, self._others))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that do not prevent a run, those of the file itself first."""
        found = (problem for problem in self.found if problem.severity != "error")
        own = self.source.path or ""
        return tuple(sorted(found, key=lambda problem: (problem.path != own, problem)))

    def of_file(self, source: Source) -> WorkflowProblems:
        """Return where to note the problems of another file, which are reported with the others."""
        other = self._others[source.path or ""] = WorkflowProblems(source, self)

        return other

    def at(self, path: str | None) -> WorkflowProblems:
        """Return where to note what is wrong with a file that was read; None for the first."""
        return self if path is None else self._others[path]

    def add_shape(self, error: ValidationError) -> list[tuple[Where, str]]:
        """Note what pydantic says of the workflow's shape.

        Args:
            error: What it says.

        Returns:
            Where something is wrong, with its name.
        """
        document = self.source.value
        found = list(islice(shape_problems(AnyDocument, document, error), 2 * MOST_TOLD))
        unknown = {where[:-1] for where, _, name in found if _is_unknown_type(where, name)}
        for where, message, name in found:
            # of a step whose type is not known nothing else can be said
            if where[:-1] not in unknown or _is_unknown_type(where, name):
                self.add(where, _told(where, message, name, document), name)

        self.counts["error"] += max(0, error.error_count() - 2 * MOST_TOLD)

        return [(where, name) for where, _, name in found]


def _is_unknown_type(where: Where, name: str) -> bool:
    return name == "literal_error" and where[-1] == "type" and where[-3:-2] == ("steps",)


def _told(where: Where, message: str, name: str, document: Any) -> str:
    """Return a message, with what only a workflow knows of the problem."""
    owner, value = _at(where, document)
    if name == "string_pattern_mismatch":
        return f'{shown(value)} is not a transition: write it as "a->b"'
    if _is_unknown_type(where, name):
        *others, last = map(repr, STEP_KINDS)
        return f"must be {', '.join(others)} or {last}, got {shown(value)}"
    if where[-3:-2] != ("steps",) or not isinstance(owner, dict):
        return message

    inside = f"in a step of type {owner.get('type', 'code')}"
    if name == "extra_forbidden":
        near = key_meant(where, document)
        return f"is unknown {inside}" + ("" if near is None else f"; did you mean {near!r}?")

    return f"{message} {inside}" if name == "missing" else message


def key_meant(where: Where, document: Any) -> str | None:
    """Return the key of the same mapping that an unknown one was probably meant to be."""
    return meant(str(where[-1]), keys_at(AnyDocument, where[:-1], document))


def _at(where: Where, value: Any) -> tuple[Any, Any]:
    """Return what stands at a place, after what holds it; None for what there is not."""
    owner: Any = None
    for part in where:
        has_part = part in value if isinstance(value, dict) else isinstance(part, int)
        owner, value = value, value[part] if has_part else None

    return owner, value
