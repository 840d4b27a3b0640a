"""A workflow: the definition that was read, its chart, and which steps run in which state."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from time import time
from typing import Any, Self

from prism.errors import InputError
from prism.files._source import Problem, Source
from prism.files._yaml import yaml_text
from prism.statechart import Statechart
from prism.telemetry.loggers import EventLogger
from prism.workflow._chart import Charts, Clock, Driving
from prism.workflow._document._checks import check
from prism.workflow._document._definition import Step, WorkflowDefinition
from prism.workflow._document._problems import WorkflowFileError, WorkflowProblems
from prism.workflow._document._reading import read_workflow
from prism.workflow._replies import StepReply, reply_of
from prism.workflow._variables import through_json

LOGGER: logging.Logger = logging.getLogger("prism.workflow")
"""Gets the probable mistakes of a file, once; they are not part of a run's log."""


class Workflow:
    """A workflow, read from YAML, which any number of agents can share.

    Args:
        definition: The parsed definition.
        warnings: Warnings of the reader, which do not prevent a run.
        files: The files that it was read from: its own, then its components'.

    Attributes:
        name: Its name.
        steps: Its steps, in order.
        replies: How the reply to each step that asks a model is read, by the step's name.
        warnings: Warnings of the reader, which do not prevent a run.
        definition: The parsed definition.
        files: The files that it was read from: its own, then its components'.
        charts: Makes its chart, or the part of it that an agent needs.
    """

    def __init__(
        self,
        definition: WorkflowDefinition,
        warnings: tuple[Problem, ...] = (),
        files: tuple[Path, ...] = (),
    ) -> None:
        self.definition: WorkflowDefinition = definition
        self.files: tuple[Path, ...] = files
        self.name: str = definition.name
        self.steps: tuple[Step, ...] = definition.steps
        self.warnings: tuple[Problem, ...] = warnings
        self.replies: Mapping[str, StepReply] = {
            step.name: reply_of(step) for step in definition.steps if step.kind != "code"
        }
        self.charts: Charts = Charts(definition)
        self._driving: tuple[EventLogger | None, Clock, Driving] | None = None
        self._by_state: dict[str, tuple[tuple[int, Step], ...]] = {}

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        components: Path | str | None = None,
        variables: Iterable[str] = (),
    ) -> Self:
        """Read a workflow from a file, and its components from the folder beside it.

        Probable mistakes are logged to the standard logger ``prism.workflow``.

        Args:
            path: The file, YAML.
            components: Folder of the components' files, overriding the file.
            variables: Names of the variables that the host provides.

        Raises:
            InputError: If it cannot be read, or is not YAML.
            WorkflowFileError: (an InputError) listing what is wrong, with line and column.
            MissingExtraError: If the extra ``workflow`` is not installed.
        """
        workflow = cls._read(Path(path), components, variables)
        for problem in workflow.warnings:
            LOGGER.warning("%s", problem)

        return workflow

    @classmethod
    def from_text(
        cls, text: str, *, name: str = "workflow", components: Path | str | None = None
    ) -> Self:
        """Read a workflow from a text, with components inline or in a folder.

        Args:
            text: The workflow, in YAML.
            name: Its name if the text has none, and its name in messages.
            components: Folder of the components' files.

        Raises:
            InputError: If it is not YAML, or holds an error.
        """
        source = Source.parse(text, "yaml", path=name)
        return cls._of(*read_workflow(source, name, None, components=components))

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        name: str = "workflow",
        components: Path | str | None = None,
    ) -> Self:
        """Read a workflow from plain data, as a file would hold it.

        Args:
            data: The workflow.
            name: Its name if the data has none, and its name in messages.
            components: Folder of the components' files.

        Raises:
            InputError: If it is not plain data, or holds an error.
        """
        try:
            source = Source.of(through_json(data), path=name)
        except (TypeError, ValueError) as error:
            raise InputError(f"is not JSON data: {error}", path=name) from None

        return cls._of(*read_workflow(source, name, None, components=components))

    @classmethod
    def _read(
        cls, file: Path, components: Path | str | None, variables: Iterable[str] | None = None
    ) -> Self:
        """Read a file, and look for probable mistakes if variables are given."""
        source = Source.parse(yaml_text(file), "yaml", path=file)
        found, problems = read_workflow(source, file.stem, file.parent, components=components)
        if variables is not None:
            check(found, problems, variables)

        return cls._of(found, problems, file)

    @classmethod
    def _of(cls, definition: WorkflowDefinition, problems: WorkflowProblems, *files: Path) -> Self:
        return cls(definition, problems.warnings, (*files, *problems.files))

    @staticmethod
    def check(
        path: Path | str,
        variables: Iterable[str] = (),
        *,
        components: Path | str | None = None,
    ) -> tuple[Problem, ...]:
        """Return certain and probable mistakes in a workflow file, then those in its components.

        Args:
            path: The file, YAML.
            variables: Names of the variables that the host provides.
            components: Folder of the components' files, overriding the file.

        Raises:
            InputError: If it cannot be read, or is not YAML.
        """
        try:
            return Workflow._read(Path(path), components, variables).warnings
        except WorkflowFileError as error:
            return error.problems

    @property
    def chart(self) -> Statechart[StrEnum]:
        """Its states and transitions, with the conditions as guards; built on first use."""
        return self.charts.whole

    @property
    def states(self) -> type[StrEnum]:
        """Its states, as an enum."""
        return self.charts.states

    @property
    def initial(self) -> StrEnum:
        """The state in which agents begin."""
        return self.charts.states(self.definition.initial)

    def driving(self, logger: EventLogger | None, clock: Clock = time) -> Driving:
        """Return the charts that drive agents; all agents of a run share them.

        Args:
            logger: Where transitions go; None for structlog's own logger, once it is configured.
            clock: Times histories.
        """
        made = self._driving
        if made is None or made[0] is not logger or made[1] is not clock:
            made = self._driving = (logger, clock, self.charts.driving(logger, clock))

        return made[2]

    def steps_in(self, state: str) -> tuple[tuple[int, Step], ...]:
        """Return the steps that run in a state, each with its place in the list.

        In a final state, no steps run.
        """
        if state not in self._by_state:
            steps = () if state in self.definition.final_states else self.steps
            self._by_state[state] = tuple(
                (number, step)
                for number, step in enumerate(steps)
                if step.in_state is None or state in step.in_state
            )

        return self._by_state[state]


def load_quietly(path: Path, components: Path | None = None) -> Workflow:
    """Return the workflow of a file without logging its probable mistakes."""
    return Workflow._read(path, components)
