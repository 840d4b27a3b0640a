"""A run of a workflow: a world with one agent, and everything that its events depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import FieldTypeError, InputError
from prism.files._source import Source
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock
from prism.runlog._reader import LOG_NAME
from prism.runs import ReplayOptions
from prism.runs._config import REASONER_KINDS
from prism.runs._dry_run import is_dry_run
from prism.runs._lent import NobodyWriter
from prism.runs._makers import make_repeated_writer, make_writer
from prism.runs._options import recorded_log
from prism.statechart import Statechart
from prism.telemetry.loggers import EventLogger
from prism.workflow._actions import by_command, echo
from prism.workflow._agent import WorkflowAgent
from prism.workflow._results import WorkflowResults
from prism.workflow._steps import Recorded, Turn
from prism.workflow._variables import as_context
from prism.workflow._workflow import Workflow, load_quietly
from prism.worlds._alone import NOBODY, AloneLoop, AloneRun, events_in

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
    "workers": int | None,
}


class TurnTaker(WorkflowAgent):
    """An agent that carries out a workflow alone.

    Attributes:
        last: The result of its last turn.
    """

    last: Turn

    @property
    def chart(self) -> Statechart[StrEnum]:
        """Its states without transitions: a chart of all may be large, and is not used."""
        return self.workflow.charts.out_of(())

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

    def kept_in(self, folder: Path) -> None:
        """Take durations and the results of actions from the log of a run that was stopped."""
        log = folder / LOG_NAME
        if log.stat().st_size and self.agent.repeats is None:
            self.agent.repeat(Recorded(log, self.agent.agent_id, events_in(log), is_complete=False))


@dataclass(init=False, repr=False, kw_only=True)
class WorkflowRun(AloneRun):
    """A run of a workflow's turns.

    Args:
        context: File of variables to begin with: a mapping, YAML or JSON.
        parameters: Variables to begin with, which go before those of the file.
        components: Folder of the components' files; None leaves it to the workflow.
        action: Command that carries out actions: it reads an action as JSON and writes its result.
        echo_actions: Whether each action is its own result.
        workers: Number of code steps that may run at once in this process; None for 2.
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
    workers: int | None = None

    def _check(self) -> None:
        super()._check()
        self._require_count("workers", self.workers)
        if self.action is not None and self.echo_actions:
            raise InputError("contradicts echo_actions: leave out one", field="action")
        try:
            self.parameters = as_context(self.parameters)
        except FieldTypeError as error:
            raise InputError(str(error)) from None

    def _make(self, logger: EventLogger | None) -> Turns:
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
        writer, recorded = self._writer(workflow)

        clock = SimulatedClock()
        agent = TurnTaker(
            workflow,
            None,
            context,
            agent_id=self.agent_id,
            turns=self.rounds,
            workers=self.workers,
            logger=logger,
            clock=clock,
            **application,
        )
        loop = Turns(agent, writer, self.number_of_rounds, self.seed, logger, clock)
        if recorded is not None:
            agent.repeat(recorded)

        return loop

    def _application(self) -> dict[str, Any]:
        """Return what the application provides, and what carries out actions in its place."""
        brought = dict(self.application)
        if self.action is not None:
            brought.setdefault("on_action", by_command(self.action))
        if self.echo_actions or (is_dry_run() and "on_action" in brought):
            brought["on_action"] = echo

        return brought

    def _inputs(self) -> Iterator[Path]:
        yield from load_quietly(self.file, self.components).files
        if self.context is not None:
            yield self.context

    def _writer(self, workflow: Workflow) -> tuple[BaseWriter, Recorded | None]:
        if isinstance(self.reasoner, ReplayOptions):
            log = recorded_log(self.reasoner)
            recorded = Recorded(log, self.agent_id, events_in(log), is_complete=True)
            writer = make_repeated_writer(self.reasoner, self.seed, chart=workflow.name)
            return writer or NobodyWriter(), recorded

        if self.reasoner is not None:
            return make_writer(self.reasoner, self.seed, chart=workflow.name), None

        asking = [step.name for step in workflow.steps if step.kind != "code"]
        if asking:
            names = ", ".join(asking[:5]) + (", ..." if len(asking) > 5 else "")
            raise InputError(
                f"asks a model in {names}: name the model (--model); prism replay repeats an "
                "earlier run without one",
                path=self.file,
            )

        return NobodyWriter(), None


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
