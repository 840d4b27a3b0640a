"""A run of cycles as options: everything that its events depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from prism.cognition._agent import CognitiveAgent, number_of_cycles
from prism.cognition._chart import CHART_NAME
from prism.cognition._config._config import Config, require_room
from prism.cognition._keeping import Keeper, RepeatingKeeper
from prism.cognition._loop import CognitiveLoop
from prism.cognition._memory._contents import StorageKind
from prism.cognition._memory._memory import Memory
from prism.errors import FieldValueError, InputError
from prism.files._durable import is_stream
from prism.runlog import ReplayWriter, SimulatedClock
from prism.runlog._reader import locate_log
from prism.runlog._replay import _events
from prism.runs import ModelOptions, ReasonerOptions, ReplayOptions
from prism.runs._config import (
    MOST_SEED,
    REASONER_KINDS,
    check_config,
    digest,
    naming,
    read_reasoner,
    require_unchanged,
    require_writable,
    too_large_a_seed,
)
from prism.runs._makers import make_writer
from prism.statechart.reasoner._texts import BaseWriter
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens
from prism.telemetry._loggers import EventLogger
from prism.telemetry.events import COGNITION_MEMORY_CHANGED

DEFAULT_AGENT_ID = "agent"

_STORAGES = ("json", "sqlite")
_SQLITE_MAGIC = b"SQLite format 3\x00"

_KINDS: Mapping[str, Any] = {
    "cognition": str,
    "memory": str,
    "storage": _STORAGES,
    "cycles": int | None,
    "goal": str | None,
    "agent_id": str,
    "seed": int,
    "reasoner": tuple(REASONER_KINDS),
    "inputs": dict,
}


@dataclass(frozen=True, slots=True)
class CognitiveRun:
    """A run of an agent's cycles, for `prism.runs.begin`.

    The memory is changed where it is. What it was when the run began is kept in the run's folder,
    from which the run is repeated: a repeated run has a memory of its own there, and leaves that of
    the first one alone.

    An application with a token counter of its own overrides `host` in a class of its own, and gives
    that class to `prism.runs.resume` and `prism.runs.replay`, too.

    Args:
        config: The configuration, JSON.
        memory: The memory; a missing one is made.
        storage: How a new memory is stored: ``json`` or ``sqlite``; by default whatever the file
            is, and JSON for a new one.
        cycles: Number of cycles; ``iterate.max_iterations`` by default, which is also the most.
        goal: What the agent is to achieve; the configuration's goal by default.
        agent_id: Name of the agent.
        seed: Seed of the model's sampling.
        reasoner: Who writes: a model, or an earlier run.

    Raises:
        InputError: If JSON has no room for a value, or one is out of its range.
    """

    config: Path
    memory: Path
    storage: StorageKind | None = None
    cycles: int | None = None
    goal: str | None = None
    agent_id: str = DEFAULT_AGENT_ID
    seed: int = 0
    reasoner: ReasonerOptions = None

    def __post_init__(self) -> None:
        """Refuse what JSON has no room for, or what no run can be."""
        if self.cycles is not None and self.cycles < 1:
            raise InputError(f"must be 1 or more, got {self.cycles}", field="cycles")
        if self.storage not in (None, *_STORAGES):
            problem = f"must be one of {', '.join(_STORAGES)}, got {self.storage!r}"
            raise InputError(problem, field="storage")
        if abs(self.seed) > MOST_SEED:
            raise too_large_a_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")

        for name in ("agent_id", "goal"):
            require_writable(name, getattr(self, name))

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again: if it copies what another measured."""
        return isinstance(self.reasoner, ReplayOptions)

    @property
    def deadline(self) -> float | None:
        """Seconds that the run may ask a model for; None without a limit."""
        return self.reasoner.deadline if isinstance(self.reasoner, ModelOptions) else None

    @property
    def checkpoint_every(self) -> float:
        """Seconds between checkpoints: every cycle has one, since each is in the memory's file."""
        return 0.0

    def host(self) -> Mapping[str, Any]:
        """Return what the application brings; by default nothing.

        Returns:
            ``count``, if any, as `CognitiveAgent` takes it.
        """
        return {}

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its texts and its memory taken from an earlier one."""
        return replace(self, reasoner=ReplayOptions(recorded))

    def prepare(self) -> Callable[[EventLogger | None, SimulatedClock | None], CognitiveLoop]:
        """Read and make all that the run needs.

        Returns:
            A function that makes the run, given a logger for its events and a clock.

        Raises:
            InputError: If something is wrong with a file or an option.
        """
        config, host = Config.load(self.config), dict(self.host())
        cycles = self._number_of_cycles(config)
        self._require_room(config, host.get("count", count_tokens))
        writer, keeper, changed = self._sources()

        def make(logger: EventLogger | None, clock: SimulatedClock | None) -> CognitiveLoop:
            clock = clock or SimulatedClock()
            settings = {**host, "goal": self.goal, "agent_id": self.agent_id}

            def make_agent(memory: Memory) -> CognitiveAgent:
                return CognitiveAgent(
                    config, memory, writer, logger=logger, clock=clock, **settings
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

        return make

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        reasoner = {} if self.reasoner is None else self.reasoner.to_config()

        return {
            "cognition": str(self.config),
            "memory": str(self.memory),
            "storage": self._stored_as(),
            "cycles": self.cycles,
            "goal": self.goal,
            "agent_id": self.agent_id,
            "seed": self.seed,
            **reasoner,
            "inputs": self._digests(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads has changed.
        """
        if "cognition" not in config:
            raise InputError("holds a run of something else than cycles", path=path)

        check_config(config, path, _KINDS)
        with naming(path):
            run = cls(
                config=Path(config["cognition"]),
                memory=Path(config["memory"]),
                storage=config["storage"],
                cycles=config["cycles"],
                goal=config["goal"],
                agent_id=config["agent_id"],
                seed=config["seed"],
                reasoner=read_reasoner(config),
            )

        require_unchanged(config["inputs"], run._digests(), path)

        return run

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read and not written, by its name."""
        found = {str(self.config): digest(self.config)}
        if isinstance(self.reasoner, ReplayOptions):
            found[str(self.reasoner.run)] = digest(locate_log(self.reasoner.run))

        return found

    def _number_of_cycles(self, config: Config) -> int:
        try:
            return number_of_cycles(config, self.cycles)
        except FieldValueError as error:
            raise InputError(str(error), field="cycles") from None

    def _require_room(self, config: Config, count: TokenCounter) -> None:
        """Refuse a goal with which no prompt would be within the limits."""
        try:
            require_room(config, goal=self.goal, count=count)
        except InputError as error:
            raise InputError(error.problem, path=self.config, field=error.field) from None

    def _require_memory(self) -> None:
        """Refuse a memory that cannot be opened, before a model is asked."""
        try:
            Memory.open(self.memory, storage=self.storage).close()
        except OSError as error:
            raise InputError(f"cannot be opened: {error.strerror}", path=self.memory) from None

    def _stored_as(self) -> str:
        """Return how the memory is stored, so that a repeated run stores its own alike."""
        if self.storage is not None:
            return self.storage
        if not self.memory.is_file():
            return "json"

        with self.memory.open("rb") as file:
            return "sqlite" if file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC else "json"

    def _sources(self) -> tuple[BaseWriter, Keeper, Mapping[int, Mapping[str, Any]]]:
        """Return who writes, where the memory is, and what an earlier run found changed."""
        if isinstance(self.reasoner, ModelOptions):
            self._require_memory()
            writer = make_writer(self.reasoner, self.seed, chart=CHART_NAME)
            return writer, Keeper(self.memory, self.storage), {}
        if self.reasoner is None:
            raise InputError(
                "nobody would write: name the model, or an earlier run to take its texts from "
                "(--model, --replay)",
                field="reasoner",
            )

        recorded = self.reasoner.run
        if is_stream(recorded):
            problem = "is a pipe: the run has to find it again, so give a folder"
            raise InputError(problem, path=recorded)

        log = locate_log(recorded)
        changed = {
            int(event["round"]): event
            for event in _events(log)
            if event.get("event") == COGNITION_MEMORY_CHANGED
        }
        keeper = RepeatingKeeper(log.parent, self.storage)

        return ReplayWriter(recorded, verbatim=True), keeper, changed
