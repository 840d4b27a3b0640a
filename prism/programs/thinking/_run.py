"""A run of cycles: a world with one agent, and everything that its events depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from prism.errors import InputError
from prism.programs.thinking._agent import CognitiveAgent, number_of_cycles, with_window
from prism.programs.thinking._config import Config
from prism.programs.thinking._cycle import CognitiveResults, Cycle, reason_to_stop
from prism.programs.thinking._memory import Memory
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock
from prism.runs._makers import make_writer
from prism.runs._options import naming
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, report
from prism.worlds._addresses import address_of, file_of, found_at
from prism.worlds._alone import AloneLoop, AloneRun

_KEYS = ("cognition", "memory", "cycles", "agent_id", "seed")


class Cycles(AloneLoop):
    """The run of one agent that thinks; a cycle is a round.

    The memory's own file changes cycle by cycle. The folder keeps a copy of what it was at the
    beginning, with which a resumed or repeated run carries its cycles out again.
    """

    agent: CognitiveAgent

    async def act(self) -> Cycle:
        """Run a cycle."""
        return await self.agent.cycle()

    def is_over(self) -> bool:
        """Return whether the last cycles were useless."""
        return reason_to_stop(self.finished) is not None

    def results(self) -> CognitiveResults:
        """Return the results of the run."""
        agent, stopped = self.agent, reason_to_stop(self.finished)
        if stopped is not None:
            about = {"agent_id": agent.agent_id, "cycle": agent.memory.cycle}
            report(self._logger, "warning", events.COGNITION_STOPPED, **about, reason=stopped)
        return CognitiveResults.of(agent, self.finished, stopped)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Close the memory in the end."""
        with self.agent.memory:
            yield


@dataclass(init=False, repr=False, kw_only=True)
class CognitiveRun(AloneRun):
    """A run of an agent's cycles.

    The run changes the memory's own file; a repeated run has a memory of its own in its folder.

    Args:
        rounds: Number of cycles; ``iterate.max_iterations`` by default, which is also the most.
        memory: The agent's memory; a missing file is created.
    """

    names: ClassVar[Mapping[str, str]] = {"cognition": "file", "cycles": "rounds"}
    keys: ClassVar[Sequence[str]] = _KEYS
    paths: ClassVar[Sequence[str]] = ("file", "memory")

    memory: Path

    def _check(self) -> None:
        super()._check()
        if isinstance(self.file, type):
            self.file = Path(address_of(self.file))

    @property
    def number_of_rounds(self) -> int:
        """How many cycles it has, whether it says so or its file does."""
        return number_of_cycles(self._agent()[1], self.rounds)

    def _make(self, logger: EventLogger | None) -> Cycles:
        """Read and make all that the run needs.

        Args:
            logger: Where its events go.

        Raises:
            InputError: If something is wrong with a file or an option.
        """
        thinker, config = self._agent()
        cycles, writer = number_of_cycles(config, self.rounds), self._writer_of(config)
        clock = SimulatedClock()
        try:
            memory = Memory.open(self.memory)
        except OSError as error:
            raise InputError(f"cannot be opened: {error.strerror}", path=self.memory) from None
        with naming(self.file):
            agent = thinker(config, memory, agent_id=self.agent_id, logger=logger)
        return Cycles(agent, writer, cycles, self.seed, logger, clock)

    def _own_class(self) -> type[CognitiveAgent] | None:
        """Return the agent's class; None if it has only a configuration."""
        if self.file.suffix.lower() == ".json":
            return None
        found = found_at(str(self.file))
        if not (isinstance(found, type) and issubclass(found, CognitiveAgent)):
            raise InputError(f"{self.file} is no thinking agent", field="world")
        return found

    def _agent(self) -> tuple[type[CognitiveAgent], Config]:
        """Return the class of the agent in this run, and its configuration."""
        own = self._own_class()
        return (CognitiveAgent, Config.load(self.file)) if own is None else (own, own.config)

    def _inputs(self) -> Iterator[Path]:
        own = self._own_class()
        place = str(self.file).rpartition(":")[0]
        yield self.file if own is None else Path(place if place.endswith(".py") else file_of(own))

    def _writer_of(self, config: Config) -> BaseWriter:
        if self.reasoner is None:
            raise InputError(
                "no model is named: add --model; prism replay repeats an earlier run without one",
                field="reasoner",
            )
        return make_writer(with_window(self.reasoner, config), self.seed)
