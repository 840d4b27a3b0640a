"""Runs of a single agent, whose rounds are its turns or cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Self

from prism._faults import note_place
from prism.errors import InputError
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock
from prism.runs._options import Repeats, digest, naming, read_decider
from prism.runs._services import Services
from prism.telemetry.events import (
    AGENT_JOINED,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
)
from prism.telemetry.loggers import EventLogger, counting_unheard
from prism.worlds._arguments import decider_of, require_seed
from prism.worlds._events import Events
from prism.worlds._loop import BaseLoop
from prism.worlds._run import Run

NOBODY = "nobody"
"""The entry of ``run.json`` for a run that asks no model."""


class AloneLoop(BaseLoop):
    """Runs a single agent, a turn or a cycle a round.

    Args:
        agent: The agent, which says what a round is, when the run is over, and what its results
            are.
        writer: Answers its prompts.
        rounds: Most rounds.
        seed: The run's seed.
        logger: Where events go.
        clock: The run's clock.

    Attributes:
        agent: The agent.
        world: The loop itself, as there is no other world.
        agents: The agent alone.
        rounds: Most rounds.
        ticks_per_round: Ticks in a round.
        finished: What came of each round so far.
        reasoner: None, as nobody decides.
        writer: Answers its prompts.
        clock: The run's clock.
    """

    ticks_per_round = 1
    reasoner = None

    def __init__(
        self,
        agent: Any,
        writer: BaseWriter,
        rounds: int,
        seed: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
    ) -> None:
        self.agent, self.writer, self.rounds = agent, writer, rounds
        self.clock = clock
        self.world = self
        self.agents: Sequence[Any] = (agent,)
        self.finished: list[Any] = []
        self._seed, self._events = seed, Events(logger)
        self._transitions = 0
        agent.join(Services(writer, logger, self._seconds, seed))

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run all rounds; the async twin of `run`."""
        self.has_run = True
        agent, clock = self.agent, self.clock
        with clock.bound(), closing(agent), counting_unheard():
            self._events.emit(
                RUN_STARTED,
                schema=SCHEMA_VERSION,
                chart=agent.chart.name,
                agents=1,
                rounds=self.rounds,
                ticks_per_round=1,
                seed=self._seed,
            )
            self._events.emit(AGENT_JOINED, agent_id=agent.agent_id, state=agent.state.value)
            for number in range(1, self.rounds + 1):
                if agent.reason_to_end(self.finished) is not None:
                    break
                self.finished.append(await self._round(number))
                if on_round is not None:
                    on_round(self.finished[-1])
            results = agent.results(self.finished)
            self._events.emit(RUN_ENDED, **results.totals())
        return results

    @property
    def round(self) -> int:
        """The round, counted from 1; 0 before the first."""
        return self.clock.round

    async def _round(self, number: int) -> Any:
        self.clock.begin_round(number)
        self._events.emit(ROUND_STARTED, round=number)
        self.clock.advance()
        self._transitions = 0
        try:
            result = await self.agent.take_round()
        except Exception as error:
            note_place(error, None, number, 1)
            raise
        self._events.emit(
            ROUND_ENDED,
            round=number,
            states={self.agent.state.value: 1},
            agent_ticks=1,
            transitions=self._transitions,
        )
        return result

    def _seconds(self) -> float:
        # a chart asks for the time exactly once for each transition
        self._transitions += 1
        return self.clock.moment.seconds


class AloneRun(Run[Any]):
    """A run of a single agent whose model only writes, made by `Run` for the agent's file.

    Args:
        world: The file that the agent is read from.
        agents: None, as there is one.
        model: The model that writes.
        given: The other arguments by name: those in ``takes``, and ``reasoner``.

    Attributes:
        key: The key of ``run.json`` that keeps the file.
        takes: The other arguments that it keeps, and their defaults.
        file: The file that the agent is read from.
        agent_id: Name of the agent.

    Raises:
        InputError: If an argument only applies to worlds, one is missing or out of range, or a
            value cannot be written as JSON.
    """

    key: ClassVar[str]
    takes: ClassVar[Mapping[str, Any]] = {"rounds": None, "agent_id": "agent", "seed": 0}

    is_alone = True
    writer = _logger = _clock = None
    treatments = ()
    _is_class, _agents = True, 1

    file: Path
    agent_id: str

    def __init__(self, world: Any, agents: Any = None, *, model: Any = None, **given: Any) -> None:
        """Store the arguments, and refuse those that do not fit together."""
        given |= {} if agents is None else {"agents": agents}
        if unknown := given.keys() - {*self.takes, "reasoner"}:
            problem = f"is for a world, and {world} is run alone: leave it out"
            raise InputError(problem, field=min(unknown))
        given["reasoner"] = decider_of(model, given.get("reasoner"))
        self._loop: Any = None
        self._arguments = {"world": world, **given}
        vars(self).update(self._arguments, **{**self.takes, **given})
        self.file = Path(world) if isinstance(world, str) else world
        self._check()

    def _check(self) -> None:
        """Refuse values that JSON cannot hold, and arguments that do not fit together."""
        if self.rounds < 1:
            raise InputError(f"must be 1 or more, got {self.rounds}", field="rounds")
        require_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")

    def __repr__(self) -> str:
        """Show the file."""
        return f"<Run of {self.file}, seed {self.seed}>"

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        named = {self.key: self.file, **{name: getattr(self, name) for name in self.takes}}
        kept = {key: str(each) if isinstance(each, Path) else each for key, each in named.items()}
        reasoner = {"reasoner": NOBODY} if self.reasoner is None else self.reasoner.to_config()
        repeats = {} if self.repeats is None else {"repeats": self.repeats.to_config()}
        return {**kept, **reasoner, **repeats, "inputs": self.digests()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: The file that it comes from, for messages.

        Raises:
            InputError: If it is not such data.
        """
        with naming(path):
            kept = {name: config[name] for name in cls.takes}
            run = cls(config[cls.key], reasoner=read_decider(config), **kept)
            run.repeats = Repeats.from_config(config)
            return run

    def _inputs(self) -> Sequence[Path]:
        """Return the files that the run only reads."""
        return [self.file]

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is only read, by its name."""
        return {str(file): digest(file) for file in self._inputs()}
