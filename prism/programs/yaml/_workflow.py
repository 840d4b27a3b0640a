"""A workflow: the definition that was read, its chart, and how its steps' replies are read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError
from prism.files._records import shown_path
from prism.files._source import Problem, Source
from prism.files._yaml import yaml_text
from prism.programs.yaml._checks import check
from prism.programs.yaml._definition import ANY_STATE, AllowedTransition, Step, WorkflowDefinition
from prism.programs.yaml._problems import WorkflowFileError, WorkflowProblems
from prism.programs.yaml._reading import read_workflow
from prism.programs.yaml._replies import StepReply, reply_of
from prism.programs.yaml._sandbox import Condition
from prism.programs.yaml._variables import through_json
from prism.statechart import Statechart, Transition, state_enum

LOGGER: logging.Logger = logging.getLogger("prism.programs")
"""Gets the probable mistakes of a file, once; they are not part of a run's log."""

STEP = "step"
"""The one trigger of a workflow's chart: a step names the target."""


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
        states: Its states, as an enum.
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
        self.states: type[StrEnum] = state_enum(_enum_name(self.name), definition.states)
        self.replies: Mapping[str, StepReply] = {
            step.name: reply_of(step) for step in definition.steps if step.kind != "code"
        }

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        components: Path | str | None = None,
        variables: Iterable[str] = (),
    ) -> Self:
        """Read a workflow from a file, and its components from the folder beside it.

        Probable mistakes are logged to the standard logger ``prism.programs``.

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
    def load_quietly(cls, path: Path, components: Path | None = None) -> Self:
        """Read a workflow from a file without looking for probable mistakes."""
        return cls._read(path, components)

    @classmethod
    def _read(
        cls, file: Path, components: Path | str | None, variables: Iterable[str] | None = None
    ) -> Self:
        """Read a file, and look for probable mistakes if variables are given."""
        source = Source.parse(yaml_text(file), "yaml", path=file)
        definition, problems = read_workflow(source, file.stem, file.parent, components=components)
        if variables is not None:
            check(definition, problems, variables)
        return cls._of(definition, problems, file)

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

    @cached_property
    def chart(self) -> Statechart[StrEnum]:
        """Its states and transitions, with the conditions as guards; built on first use."""
        return Statechart(
            self.states,
            self._transitions(),
            initial=self.states(self.definition.initial),
            name=self.name,
            final_states=map(self.states, self.definition.final_states),
        )

    def _transitions(self) -> Iterator[Transition[StrEnum]]:
        definition = self.definition
        left = [state for state in definition.states if state not in definition.final_states]
        guards: dict[Condition, Callable[[Any, Any], bool]] = {}
        for item in definition.transitions or self._possible(left):
            for source in left if item.source == ANY_STATE else [item.source]:
                guard = None
                if item.condition is not None:
                    guard = guards.setdefault(item.condition, _guard(item.condition))
                yield Transition(STEP, self.states(source), self.states(item.target), guard)

    def _possible(self, states: Iterable[str]) -> Iterator[AllowedTransition]:
        """Yield what steps can name, once each, where any state may follow any other."""
        for state in states:
            targets: dict[str, None] = {}
            for step in self.definition.steps:
                if step.in_state is None or state in step.in_state:
                    targets |= dict.fromkeys(step.targets)
            for target in targets:
                yield AllowedTransition(state, target)


def _guard(condition: Condition) -> Callable[[Any, Any], bool]:
    """Return a condition as a guard; the agent notes why it refuses."""

    def guard(agent: Any, _context: Any) -> bool:
        return bool(agent.allows(condition))

    guard.__name__ = guard.__qualname__ = condition.source
    return guard


def _enum_name(name: str) -> str:
    # a class cannot be called by what no UTF-8 has, as a file may be
    words = shown_path(name).replace("-", " ").replace("\0", " ").split()
    return "".join(word.capitalize() for word in words) or "Workflow"
