"""Runs of one agent: everything that their events depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import InputError
from prism.programs._layer import ProgramAgent
from prism.programs.thinking import CognitiveAgent, Config, Memory
from prism.programs.thinking._config import with_window
from prism.programs.thinking._cycle import number_of_cycles
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.programs.yaml._sandbox import as_context
from prism.runs.makers import make_writer
from prism.runs.options import naming
from prism.telemetry.loggers import EventLogger, warn_standard
from prism.worlds.addresses import address_of, file_of, object_at
from prism.worlds.alone import Alone, AloneLoop, AloneRun
from prism.worlds.decisions import TemplateWriter


class WorkflowRun(AloneRun):
    """A run of a workflow's turns.

    Attributes:
        parameters: Variables to begin with.
    """

    takes: ClassVar[Mapping[str, Any]] = {**AloneRun.takes, "rounds": 10, "parameters": {}}

    parameters: Mapping[str, Any]

    def _check(self) -> None:
        self.parameters = as_context(self.parameters)

    @cached_property
    def _workflow(self) -> Workflow:
        return Workflow.load(self.file)

    def _make(self, logger: EventLogger | None) -> AloneLoop:
        text = "\n".join(file.read_text(encoding="utf-8") for file in self._workflow.files)
        if unused := [name for name in self.parameters if name not in text]:
            warn_standard(f"{self.file}: unused variables: {', '.join(unused)}")
        agent = WorkflowAgent(
            self._workflow, None, self.parameters, agent_id=self.agent_id, turns=self.rounds
        )
        return _loop_of(self, agent, logger)

    def _inputs(self) -> Sequence[Path]:
        return [*self._workflow.files]


class CognitiveRun(AloneRun):
    """A run of an agent's cycles.

    The run changes the memory's own file; a repeated run has a memory of its own in its folder.
    It has ``iterate.max_iterations`` cycles by default, which is also the most.

    Attributes:
        memory: The agent's memory; a missing file is created.
    """

    takes: ClassVar[Mapping[str, Any]] = {**AloneRun.takes, "memory": None}

    memory: Path

    def _check(self) -> None:
        if self.memory is None:
            raise InputError("is needed to run a thinking agent: name its file", field="memory")
        self.memory = Path(self.memory)
        if isinstance(self.file, type):
            self.file = Path(address_of(self.file))
        self.rounds = number_of_cycles(self._agent()[1], self.rounds)

    def _make(self, logger: EventLogger | None) -> AloneLoop:
        thinker, config = self._agent()
        memory = Memory.open(self.memory)
        with naming(self.file):
            agent = thinker(config, memory, agent_id=self.agent_id, logger=logger)
        return _loop_of(self, agent, logger)

    def _agent(self) -> tuple[type[CognitiveAgent], Config]:
        """Return the class of the agent in this run, and its configuration."""
        if self.file.suffix.lower() == ".json":
            return CognitiveAgent, Config.load(self.file)
        cls = object_at(str(self.file))
        if not issubclass(cls, CognitiveAgent):
            raise InputError(f"{self.file} is no thinking agent", field="world")
        return cls, cls.config

    def _inputs(self) -> Sequence[Path]:
        cls, _ = self._agent()
        file = str(self.file).rpartition(":")[0] or str(self.file)
        return [Path(file if file.endswith((".py", ".json")) else file_of(cls))]


def _loop_of(run: AloneRun, agent: ProgramAgent[Any], logger: EventLogger | None) -> AloneLoop:
    """Return the loop of a run.

    Raises:
        InputError: If nobody would answer the agent's prompts.
    """
    asking = [step.name for step in agent.steps if step.asks]
    if run.reasoner is not None:
        config = getattr(agent, "config", None)
        model = run.reasoner if config is None else with_window(run.reasoner, config)
        writer = make_writer(model, run.seed)
    elif asking:
        problem = f"asks a model in {', '.join(asking)}: name the model (--model)"
        raise InputError(f"{problem}; prism replay repeats an earlier run", path=run.file)
    else:
        writer = TemplateWriter()
    return AloneLoop(run, Alone(agent=agent), None, writer, logger)
