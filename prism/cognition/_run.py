"""A run of cycles as options: everything that its events depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from prism.cognition._agent import CognitiveAgent, number_of_cycles
from prism.cognition._chart import CHART_NAME
from prism.cognition._config._config import Config, require_room
from prism.cognition._counters import ESTIMATE, counter_of, with_window
from prism.cognition._loop import (
    CognitiveLoop,
    CognitiveResults,
    Keeper,
    RepeatingKeeper,
)
from prism.cognition._memory._contents import StorageKind
from prism.cognition._memory._memory import Memory
from prism.cognition._memory._opening import kind_of
from prism.errors import FieldValueError, InputError
from prism.llm import Model
from prism.runlog import ReplayWriter, SimulatedClock
from prism.runlog._recorded import _events
from prism.runs._agent_loop import AgentOptions, recorded_log
from prism.runs._config import REASONER_KINDS, require_writable
from prism.runs._dry_run import is_dry_run
from prism.runs._makers import make_writer
from prism.statechart.reasoner._texts import BaseWriter
from prism.statechart.reasoner._tokens import TokenCounter
from prism.telemetry._loggers import EventLogger
from prism.telemetry.events import COGNITION_MEMORY_CHANGED

_STORAGES = ("json", "sqlite")

_KINDS: Mapping[str, Any] = {
    "cognition": str,
    "memory": str,
    "storage": _STORAGES,
    "cycles": int | None,
    "goal": str | None,
    "agent_id": str,
    "count": str,
    "seed": int,
    "reasoner": tuple(REASONER_KINDS),
    "inputs": dict,
}


@dataclass(frozen=True, kw_only=True)
class CognitiveOptions(AgentOptions[CognitiveResults]):
    """A run of an agent's cycles.

    The memory is changed where it is. What it was when the run began is kept in the run's folder,
    from which the run is repeated: a repeated run has a memory of its own there, and leaves that of
    the first one alone.

    Args:
        rounds: Number of cycles; ``iterate.max_iterations`` by default, which is also the most.
        memory: The agent's memory; a missing file is created.
        storage: How a new memory is stored: ``json`` or ``sqlite``; by default whatever the file
            is, and JSON for a new one.
        goal: What the agent is to achieve; the configuration's goal by default.
        count: Who counts tokens: ``estimate``, ``bytes``, or ``package.module:function``.
        application: ``count``, if anything: a token counter, as `CognitiveAgent` takes it.
    """

    names: ClassVar[Mapping[str, str]] = {"cognition": "file", "cycles": "rounds"}
    kinds: ClassVar[Mapping[str, Any]] = _KINDS
    paths: ClassVar[Sequence[str]] = ("file", "memory")
    brought: ClassVar[Sequence[str]] = ("count",)

    memory: Path
    storage: StorageKind | None = None
    goal: str | None = None
    count: str = ESTIMATE

    def __post_init__(self) -> None:
        """Refuse what JSON has no room for, or what no run can be."""
        super().__post_init__()
        if self.storage not in (None, *_STORAGES):
            problem = f"must be one of {', '.join(_STORAGES)}, got {self.storage!r}"
            raise InputError(problem, field="storage")
        require_writable("goal", self.goal)

    @property
    def number_of_rounds(self) -> int:
        """How many cycles it has, whether it says so or its file does."""
        return self._number_of_cycles(Config.load(self.file))

    @property
    def checkpoint_every(self) -> float:
        """Seconds between checkpoints: every cycle has one, since each is in the memory's file."""
        return 0.0

    def prepare(self, logger: EventLogger | None) -> CognitiveLoop:
        """Read and make all that the run needs.

        Args:
            logger: Where its events go.

        Raises:
            InputError: If something is wrong with a file or an option.
        """
        config = Config.load(self.file)
        count: TokenCounter = self.application.get("count") or counter_of(self.count)
        cycles = self._number_of_cycles(config)
        self._require_room(config, count)
        writer, keeper, changed = self._sources(config)

        clock = SimulatedClock()

        def make_agent(memory: Memory) -> CognitiveAgent:
            return CognitiveAgent(
                config,
                memory,
                writer,
                agent_id=self.agent_id,
                goal=self.goal,
                count=count,
                logger=logger,
                clock=clock,
            )

        return CognitiveLoop(
            make_agent,
            keeper,
            writer,
            cycles=cycles,
            seed=self.seed,
            logger=logger,
            clock=clock,
            changed=changed,
        )

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        # a repeated run stores its own memory alike
        return {**super().to_config(), "storage": self._stored_as()}

    def _number_of_cycles(self, config: Config) -> int:
        try:
            return number_of_cycles(config, self.rounds)
        except FieldValueError as error:
            raise InputError(str(error), field="rounds") from None

    def _require_room(self, config: Config, count: TokenCounter) -> None:
        """Refuse a goal with which no prompt would be within the limits."""
        try:
            require_room(config, goal=self.goal, count=count)
        except InputError as error:
            raise InputError(error.problem, path=self.file, field=error.field) from None

    def _require_memory(self) -> None:
        """Refuse a memory that cannot be opened, before a model is asked."""
        try:
            Memory.open(self.memory, storage=self.storage).close()
        except OSError as error:
            raise InputError(f"cannot be opened: {error.strerror}", path=self.memory) from None

    def _stored_as(self) -> str:
        """Return how the memory is stored."""
        if self.storage is not None:
            return self.storage
        return kind_of(self.memory) if self.memory.is_file() else "json"

    def _sources(
        self, config: Config
    ) -> tuple[BaseWriter, Keeper, Mapping[int, Mapping[str, Any]]]:
        """Return who writes, where the memory is, and what an earlier run found changed."""
        if isinstance(self.reasoner, Model):
            if not is_dry_run():
                self._require_memory()
            model = with_window(self.reasoner, config, counter_of(self.count))
            writer = make_writer(model, self.seed, chart=CHART_NAME)
            return writer, Keeper(self.memory, self.storage), {}
        if self.reasoner is None:
            raise InputError(
                "no model is named: add --model; prism replay repeats an earlier run without one",
                field="reasoner",
            )

        log = recorded_log(self.reasoner)
        changed = {
            int(event["round"]): event
            for event in _events(log)
            if event.get("event") == COGNITION_MEMORY_CHANGED
        }
        keeper = RepeatingKeeper(log.parent, self.storage)

        return ReplayWriter(self.reasoner.run, verbatim=True), keeper, changed
