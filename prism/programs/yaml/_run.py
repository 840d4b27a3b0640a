"""A run of a workflow: a world with one agent, and everything that its events depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import FieldTypeError, InputError
from prism.files._source import Source
from prism.programs._layer import Turn
from prism.programs.yaml._actions import by_command, echo
from prism.programs.yaml._agent import WorkflowAgent
from prism.programs.yaml._results import WorkflowResults
from prism.programs.yaml._variables import as_context
from prism.programs.yaml._workflow import Workflow
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock, read_answers
from prism.runlog._prompts import ANSWERS_NAME
from prism.runs import ReplayOptions
from prism.runs._config import REASONER_KINDS
from prism.runs._dry_run import is_dry_run
from prism.runs._makers import make_repeated_writer, make_writer
from prism.runs._services import NobodyWriter
from prism.telemetry.loggers import EventLogger
from prism.worlds._alone import NOBODY, AloneLoop, AloneRun

DEFAULT_TURNS = 10

_KINDS: Mapping[str, Any] = {
    "workflow": str,
    "turns": int,
    "agent_id": str,
    "context": str | None,
    "variables": dict,
    "seed": int,
    "reasoner": (NOBODY, *REASONER_KINDS),
    "inputs": dict,
    "components": str | None,
    "action": str | None,
    "echo_actions": bool,
}


class TurnTaker(WorkflowAgent):
    """An agent that carries out a workflow alone.

    Attributes:
        last: The result of its last turn.
    """

    last: Turn

    async def act(self, world: Any) -> None:  # noqa: ARG002 - there is nobody else in it
        """Take a turn."""
        self.last = await self.turn()


class Turns(AloneLoop):
    """The run of one agent that carries out a workflow; a turn is a round."""

    agent: TurnTaker

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
        components: Folder of the components' files; None leaves it to the workflow.
        action: Command that carries out actions: it reads an action as JSON and writes its result.
        echo_actions: Whether each action is its own result.
        application: Any of ``variables``, ``on_action`` and ``action_seconds``, as
            `WorkflowAgent` takes them.
    """

    names: ClassVar[Mapping[str, str]] = {
        "workflow": "file",
        "turns": "rounds",
        "variables": "parameters",
    }
    kinds: ClassVar[Mapping[str, Any]] = _KINDS
    paths: ClassVar[Sequence[str]] = ("file", "context", "components")
    brought: ClassVar[Sequence[str]] = ("variables", "on_action", "action_seconds")

    rounds: int | None = DEFAULT_TURNS
    context: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    components: Path | None = None
    action: str | None = None
    echo_actions: bool = False

    def _check(self) -> None:
        super()._check()
        if self.action is not None and self.echo_actions:
            raise InputError("contradicts echo_actions: leave out one", field="action")
        try:
            self.parameters = as_context(self.parameters)
        except FieldTypeError as error:
            raise InputError(str(error)) from None

    def _make(self, logger: EventLogger | None) -> Any:
        """Read and make all that the run needs.

        Args:
            logger: Where its events go.

        Raises:
            InputError: If something is wrong with a file or an option, or nobody would answer the
                workflow's prompts.
        """
        context = {**_read_context(self.context), **self.parameters}
        application = self._application()
        known = (*context, *application.get("variables", ()))
        workflow = Workflow.load(self.file, components=self.components, variables=known)
        clock = SimulatedClock()
        agent = TurnTaker(
            workflow,
            None,
            context,
            agent_id=self.agent_id,
            turns=self.rounds,
            logger=logger,
            clock=clock,
            **application,
        )
        writer = self._writer(workflow)
        return Turns(agent, writer, self.number_of_rounds, self.seed, logger, clock)

    def _application(self) -> dict[str, Any]:
        """Return what the application provides, and what carries out actions in its place."""
        brought = dict(self.application)
        if self.action is not None:
            brought.setdefault("on_action", by_command(self.action))
        if self.echo_actions or (is_dry_run() and "on_action" in brought):
            brought["on_action"] = echo
        if isinstance(self.reasoner, ReplayOptions) and _has_effects(self.reasoner.run):
            brought.setdefault("on_action", echo)  # never called: the journal has the results

        return brought

    def _inputs(self) -> Iterator[Path]:
        yield from Workflow.load_quietly(self.file, self.components).files
        if self.context is not None:
            yield self.context

    def _writer(self, workflow: Workflow) -> BaseWriter:
        if isinstance(self.reasoner, ReplayOptions):
            writer = make_repeated_writer(self.reasoner, self.seed)
            return writer or NobodyWriter()
        if self.reasoner is not None:
            return make_writer(self.reasoner, self.seed)

        asking = [step.name for step in workflow.steps if step.kind != "code"]
        if asking:
            names = ", ".join(asking[:5]) + (", ..." if len(asking) > 5 else "")
            problem = f"asks a model in {names}: name the model (--model)"
            raise InputError(f"{problem}; prism replay repeats an earlier run", path=self.file)
        return NobodyWriter()


def _has_effects(run: Path) -> bool:
    """Return whether actions were carried out in an earlier run."""
    journal = (run if run.is_dir() else run.parent) / ANSWERS_NAME
    lines = read_answers(journal) if journal.exists() else iter(())
    return any(line.get("kind") == "effect" for line in lines)


def _read_context(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}

    value = Source.read(path, "json" if path.suffix.lower() == ".json" else "yaml").value
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(
            f"must hold a mapping of variables, not a {type(value).__name__}", path=path
        )

    return value
