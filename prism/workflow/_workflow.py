"""A workflow: the definition that was read, its chart, and which steps run in which state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Self

from prism.files._source import Problem
from prism.files._yaml import yaml_text
from prism.statechart import Statechart
from prism.telemetry._loggers import EventLogger
from prism.workflow._chart import Charts, Clock, Driving
from prism.workflow._document._checks import check
from prism.workflow._document._definition import Step, WorkflowDefinition
from prism.workflow._document._problems import WorkflowFileError
from prism.workflow._document._reading import Reading, read_workflow
from prism.workflow._replies import StepReply


class Workflow:
    """An agent's workflow, read from YAML; one serves any number of agents.

    Args:
        definition: What was read.
        warnings: What the reader noticed that does not keep it from running.
        files: The files that it was read from: its own, then its components'.

    Attributes:
        name: Its name.
        steps: Its steps, in order.
        replies: How the model's answers to each step are read, by its name.
        warnings: What the reader noticed that does not keep it from running.
        definition: What was read.
        files: The files that it was read from: its own, then its components'.
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
            step.name: StepReply(step) for step in definition.steps if step.kind != "code"
        }
        self._charts = Charts(definition)
        self._driving: tuple[EventLogger | None, Clock | None, Driving] | None = None
        self._by_state: dict[str, tuple[tuple[int, Step], ...]] = {}

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a workflow from a file, and its components from the folder beside it.

        Args:
            path: The file, YAML.

        Raises:
            InputError: If it cannot be read, or is not YAML.
            WorkflowFileError: (an InputError) listing everything that is wrong, with line and
                column.
            MissingExtraError: If the extra ``workflow`` is not installed.
        """
        file = Path(path)
        return cls._read(read_workflow(yaml_text(file), str(file), file.parent), file)

    @classmethod
    def from_text(cls, text: str, *, name: str = "workflow") -> Self:
        """Read a workflow from a text, whose components stand inline.

        Args:
            text: The workflow, YAML.
            name: What to call it, in messages too, if it does not say.

        Raises:
            InputError: If it is not YAML, or holds an error.
        """
        return cls._read(read_workflow(text, name, None))

    @classmethod
    def _read(cls, found: Reading, *files: Path) -> Self:
        warnings = tuple(sorted(found.problems.found))
        return cls(found.definition, warnings, (*files, *found.component_files))

    @staticmethod
    def check(path: Path | str, variables: Iterable[str] = ()) -> tuple[Problem, ...]:
        """Return everything that is wrong with a workflow file, or probably not meant.

        Args:
            path: The file, YAML.
            variables: Names of the variables that the host provides.

        Raises:
            InputError: If it cannot be read, or is not YAML.
        """
        file = Path(path)
        try:
            found = read_workflow(yaml_text(file), str(file), file.parent)
        except WorkflowFileError as error:
            return error.problems

        check(found.definition, found.problems, found.top, variables)

        return tuple(sorted(found.problems.found))

    @property
    def chart(self) -> Statechart[StrEnum]:
        """Its states and transitions, with the conditions as guards; made when first asked for."""
        return self._charts.whole

    @property
    def states(self) -> type[StrEnum]:
        """Its states, as an enum."""
        return self._charts.states

    @property
    def initial(self) -> StrEnum:
        """The state in which agents begin."""
        return self._charts.states(self.definition.initial)

    def driving(self, logger: EventLogger | None, clock: Clock | None = None) -> Driving:
        """Return the charts that drive agents, which all agents of one run share.

        Args:
            logger: Where transitions go; None for structlog's own logger, once it is configured.
            clock: What histories are timed by; None for real time.
        """
        made = self._driving
        if made is None or made[0] is not logger or made[1] is not clock:
            made = self._driving = (logger, clock, self._charts.driving(logger, clock))

        return made[2]

    def steps_in(self, state: str, after: int = -1) -> tuple[tuple[int, Step], ...]:
        """Return the steps that run in a state, each with its place in the list.

        In a final state none does.

        Args:
            state: The state.
            after: Leave out the steps up to this place.
        """
        found = self._by_state.get(state)
        if found is None:
            steps = () if state in self.definition.final_states else self.steps
            found = self._by_state[state] = tuple(
                (number, step)
                for number, step in enumerate(steps)
                if step.in_state is None or state in step.in_state
            )

        return found if after < 0 else tuple(item for item in found if item[0] > after)
