"""Runs of a single agent, whose rounds are its turns or cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from prism._faults import note_place, shortened
from prism.errors import InputError
from prism.llm import Model
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock
from prism.runs._loops import run_to_end
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
from prism.telemetry.loggers import EventLogger
from prism.worlds._arguments import decider_of, require_seed
from prism.worlds._events import Events
from prism.worlds._run import Run

DEFAULT_AGENT_ID = "agent"

NOBODY = "nobody"
"""The entry of ``run.json`` for a run that asks no model."""


class AloneLoop:
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
    reasoner: ClassVar[None] = None

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
        self.clock, self.has_run = clock, False
        self.agents: Sequence[Any] = (agent,)
        self.finished: list[Any] = []
        self._seed, self._events = seed, Events(logger)
        self._transitions = 0
        agent.join(Services(writer, logger, self._seconds, seed))

    @property
    def world(self) -> Any:
        """The loop itself, as there is no other world."""
        return self

    def run(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run all rounds in an event loop of their own."""
        try:
            return run_to_end(self._run_and_close(on_round))
        except Exception as error:
            error.__traceback__ = shortened(error)
            raise

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Run all rounds; the async twin of `run`."""
        self.has_run = True
        agent, clock = self.agent, self.clock
        with clock.bound(), closing(agent):
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
            totals = results.totals
            counts = totals() if callable(totals) else totals.to_dict()
            self._events.emit(RUN_ENDED, **counts)
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

    async def _run_and_close(self, on_round: Callable[[Any], object] | None) -> Any:
        try:
            return await self.arun(on_round)
        finally:
            close = getattr(self.writer, "close", None)
            if close is not None:
                await close()


@dataclass(init=False, repr=False, kw_only=True)
class AloneRun(Run[Any]):
    """A run of a single agent whose model only writes, made by `Run` for the agent's file.

    Args:
        world: The file that the agent is read from.
        agents: None, as there is one.
        given: The other arguments by name: the fields of the class.

    Attributes:
        names: The keys of ``run.json`` whose names differ from the fields. The first stands for the
            file.
        keys: The keys of ``run.json`` that belong to a field.
        paths: The fields that are files or folders.
        brought: Names of what an application may provide.
        file: The file that the agent is read from.
        rounds: Number of rounds.
        agent_id: Name of the agent.
        seed: Seed of the model's sampling.
        reasoner: The model that writes.
        application: What the application provides. No run keeps it.

    Raises:
        InputError: If an argument only applies to worlds, one is missing or out of range, or a
            value cannot be written as JSON.
    """

    names: ClassVar[Mapping[str, str]]
    keys: ClassVar[Sequence[str]]
    paths: ClassVar[Sequence[str]] = ("file",)
    brought: ClassVar[Sequence[str]] = ()

    # what every run has
    writer = _logger = _clock = None
    writes_at_once = True
    treatments = ()
    _is_class, _agents = True, 1

    file: Path
    rounds: int | None = None  # type: ignore[assignment] # a file may say it
    agent_id: str = DEFAULT_AGENT_ID
    seed: int = 0
    reasoner: Model | None = None
    application: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, world: Any, agents: Any = None, *, model: Any = None, **given: Any) -> None:
        """Store the arguments, and refuse those that do not fit together."""
        self._loop: Any = None
        self._take({"file": world, **given, **({} if agents is None else {"agents": agents})})
        self.reasoner = decider_of(model, self.reasoner)
        self._arguments = {"world": world, **given, "reasoner": self.reasoner}
        self._check()

    def _take(self, given: Mapping[str, Any]) -> None:
        """Set the fields to their given values or their defaults."""
        taken = {each.name: each for each in fields(self)}
        if unknown := [name for name in given if name not in taken]:
            problem = f"is for a world, and {given['file']} is run alone: leave it out"
            raise InputError(problem, field=unknown[0])

        for name, each in taken.items():
            value = given[name] if name in given else _default_of(each, given["file"])
            is_file = name in self.paths and isinstance(value, str)
            setattr(self, name, Path(value) if is_file else value)

    def _check(self) -> None:
        """Refuse values that JSON cannot hold, and arguments that do not fit together."""
        self._require_count("rounds", self.rounds)
        require_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")
        if unknown := sorted(self.application.keys() - {*self.brought}):
            problem = f"has no {unknown[0]!r}: it has {', '.join(self.brought)}"
            raise InputError(problem, field="application")

    def __repr__(self) -> str:
        """Show the file."""
        return f"<Run of {self.file}, seed {self.seed}>"

    @property
    def number_of_rounds(self) -> int:
        """The number of rounds, given here or in the file."""
        assert self.rounds is not None
        return self.rounds

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        fields = {key: getattr(self, name) for key, name in self._fields()}
        kept = {key: str(each) if isinstance(each, Path) else each for key, each in fields.items()}
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
        kind = next(iter(cls.names))
        if kind not in config:
            raise InputError(f"is not a run of {kind}", path=path)

        with naming(path):
            kept = {name: config[key] for key, name in cls._fields()}
            run = cls(kept.pop("file"), reasoner=read_decider(config), **kept)
            run.repeats = Repeats.from_config(config)
            return run

    @classmethod
    def _fields(cls) -> Iterator[tuple[str, str]]:
        """Yield each key of ``run.json`` that belongs to a field, and the field."""
        for key in cls.keys:
            yield key, cls.names.get(key, key)

    def _inputs(self) -> Iterator[Path]:
        """Yield the files that the run only reads."""
        yield self.file

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is only read, by its name."""
        return {str(file): digest(Path(file)) for file in self._inputs()}

    @staticmethod
    def _require_count(name: str, number: int | None) -> None:
        if number is not None and number < 1:
            raise InputError(f"must be 1 or more, got {number}", field=name)


def _default_of(each: Any, file: Any) -> Any:
    """Return the default of a field.

    Raises:
        InputError: If the field is required.
    """
    if each.default_factory is not MISSING:
        return each.default_factory()
    if each.default is MISSING:
        named = file.__name__ if isinstance(file, type) else file
        raise InputError(f"is needed to run {named}: name it", field=each.name)

    return each.default
