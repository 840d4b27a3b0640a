"""Problems of a workflow and of the files that it names, all reported at once."""

from __future__ import annotations

from pathlib import Path

from prism.files._source import DocumentError, Problem, Problems, Source, Where
from prism.programs.yaml._declarations import document_kind


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
