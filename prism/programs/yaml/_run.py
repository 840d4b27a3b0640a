"""A run of a workflow: a world with one agent, and everything that its events depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import FieldTypeError, InputError
from prism.files._source import Source
from prism.programs._layer import Turn
from prism.programs.yaml._actions import Action
from prism.programs.yaml._agent import WorkflowAgent, WorkflowResults
from prism.programs.yaml._variables import as_context
from prism.programs.yaml._workflow import Workflow
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock
from prism.runs._documents import is_trial
from prism.runs._makers import make_writer
from prism.runs._services import NobodyWriter
from prism.telemetry.loggers import EventLogger
from prism.worlds._alone import AloneLoop, AloneRun

DEFAULT_TURNS = 10

_KEYS = ("workflow", "turns", "agent_id", "context", "variables", "acts", "seed")


class Turns(AloneLoop):
    """The run of one agent that carries out a workflow; a turn is a round."""

    agent: WorkflowAgent

    async def act(self) -> Turn:
        """Take a turn."""
        return await self.agent.turn()

    def is_over(self) -> bool:
        """Return whether the workflow has stopped or finished."""
        return self.agent.failure is not None or self.agent.has_finished

    def results(self) -> WorkflowResults:
        """Return the results of the run."""
        return WorkflowResults.of(self.agent, self.finished)


@dataclass(init=False, repr=False, kw_only=True)
class WorkflowRun(AloneRun):
    """A run of a workflow's turns.

    Args:
        context: File of variables to begin with: a mapping, YAML or JSON.
        parameters: Variables to begin with, which go before those of the file.
        acts: Whether the application carries out actions, as ``on_action`` says.
        application: ``variables`` and ``on_action``, as `WorkflowAgent` takes them.
    """

    names: ClassVar[Mapping[str, str]] = {
        "workflow": "file",
        "turns": "rounds",
        "variables": "parameters",
    }
    keys: ClassVar[Sequence[str]] = _KEYS
    paths: ClassVar[Sequence[str]] = ("file", "context")
    brought: ClassVar[Sequence[str]] = ("variables", "on_action")

    rounds: int | None = DEFAULT_TURNS
    context: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    acts: bool = False

    def _check(self) -> None:
        super()._check()
        self.acts = self.acts or "on_action" in self.application
        try:
            self.parameters = as_context(self.parameters)
        except FieldTypeError as error:
            raise InputError(str(error)) from None

    @cached_property
    def _workflow(self) -> Workflow:
        return Workflow.load(self.file)

    def _make(self, logger: EventLogger | None) -> Turns:
        """Read and make all that the run needs.

        Args:
            logger: Where its events go.

        Raises:
            InputError: If something is wrong with a file or an option, or nobody would answer the
                workflow's prompts.
        """
        clock = SimulatedClock()
        agent = WorkflowAgent(
            self._workflow,
            None,
            {**_read_context(self.context), **self.parameters},
            agent_id=self.agent_id,
            turns=self.rounds,
            logger=logger,
            **self._application(),
        )
        return Turns(agent, self._writer(), self.number_of_rounds, self.seed, logger, clock)

    def _application(self) -> Mapping[str, Any]:
        """Return what the application provides; nothing that acts where nothing may happen."""
        if not self.acts:
            return self.application
        if is_trial() or self.repeats is not None:
            return {**self.application, "on_action": _echo}  # a replay takes results from a journal
        if "on_action" not in self.application:
            problem = "needs 'on_action', by which the run began: pass it to resume()"
            raise InputError(problem, field="application")
        return self.application

    def _inputs(self) -> Iterator[Path]:
        yield from self._workflow.files
        if self.context is not None:
            yield self.context

    def _writer(self) -> BaseWriter:
        workflow = self._workflow
        if self.reasoner is not None:
            return make_writer(self.reasoner, self.seed)

        asking = [step.name for step in workflow.steps if step.kind != "code"]
        if asking:
            names = ", ".join(asking[:5]) + (", ..." if len(asking) > 5 else "")
            problem = f"asks a model in {names}: name the model (--model)"
            raise InputError(f"{problem}; prism replay repeats an earlier run", path=self.file)
        return NobodyWriter()


def _echo(action: Action) -> Any:
    return action.action


def _read_context(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    value = Source.read(path, "json" if path.suffix.lower() == ".json" else "yaml").value
    if not isinstance(value, dict | None):
        problem = f"must hold a mapping of variables, not a {type(value).__name__}"
        raise InputError(problem, path=path)
    return value or {}
