"""What runs of one agent have in common, whether it takes turns of a workflow or thinks."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

from prism.errors import InputError
from prism.files._durable import is_stream
from prism.llm import Model
from prism.runlog import SimulatedClock
from prism.runlog._reader import locate_log
from prism.runs._config import (
    MOST_SEED,
    check_config,
    digest,
    naming,
    read_reasoner,
    require_unchanged,
    require_writable,
    too_large_a_seed,
)
from prism.runs._folder import RunFolder
from prism.runs._options import ReasonerOptions, ReplayOptions, take_model
from prism.runs._runnable import RunResults
from prism.runs._running import Outcome, carry_out, run_to_end
from prism.statechart import Budget
from prism.statechart.reasoner._router import costs_told, models_told
from prism.statechart.reasoner._spending import Cost
from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
from prism.statechart.reasoner._writer import Writer
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import (
    AGENT_JOINED,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TEXT_WRITTEN,
)

DEFAULT_AGENT_ID = "agent"

NOBODY = "nobody"
"""What ``run.json`` says where no model is asked."""

Event = Mapping[str, Any]
RoundT = TypeVar("RoundT", bound="AgentRound")
ToldT = TypeVar("ToldT")
ResultsT = TypeVar("ResultsT", bound=RunResults)


@dataclass(frozen=True, kw_only=True)
class AgentOptions(Generic[ResultsT]):
    """What a run of one agent is, whose model only writes: what `prism.Run` makes of its file.

    Args:
        file: What the agent is read from.
        rounds: Number of rounds.
        agent_id: Name of the agent.
        seed: Seed of the model's sampling.
        reasoner: Whose texts are taken without a model: those of an earlier run.
        model: The model that writes: a `prism.llm.Model`, the text of one, or a client of another
            library. It is the ``reasoner`` from then on.
        application: What the application brings to the agent; no run keeps it.

    Attributes:
        names: The keys of ``run.json`` that are called otherwise than the fields, the first key
            among them, which stands for the file.
        kinds: What each key may hold.
        later_kinds: The same for keys that runs of earlier releases do not have.
        paths: The fields that are files or folders.
        brought: What an application may bring.

    Raises:
        InputError: If JSON has no room for a value, or one is out of its range.
    """

    names: ClassVar[Mapping[str, str]]
    kinds: ClassVar[Mapping[str, Any]]
    later_kinds: ClassVar[Mapping[str, Any]] = {}
    paths: ClassVar[Sequence[str]] = ("file",)
    brought: ClassVar[Sequence[str]] = ()

    file: Path
    rounds: int | None = None
    agent_id: str = DEFAULT_AGENT_ID
    seed: int = 0
    reasoner: ReasonerOptions = None
    model: Any = None
    application: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what JSON has no room for, or what no run can be."""
        if self.model is not None:
            take_model(self)
        for name in self.paths:
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, Path(given))
        self._require_count("rounds", self.rounds)
        if abs(self.seed) > MOST_SEED:
            raise too_large_a_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")
        if unknown := sorted(self.application.keys() - {*self.brought}):
            problem = f"has no {unknown[0]!r}: it has {', '.join(self.brought)}"
            raise InputError(problem, field="application")

        require_writable("agent_id", self.agent_id)

    def replace(self, **changes: Any) -> Self:
        """Return the same run with other arguments."""
        return replace(self, **changes)

    @property
    def number_of_rounds(self) -> int:
        """How many rounds it has, whether it says so or its file does."""
        assert self.rounds is not None
        return self.rounds

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again: if it copies what another measured."""
        return isinstance(self.reasoner, ReplayOptions)

    @property
    def deadline(self) -> float | None:
        """Seconds that the run may ask a model for; None without a limit."""
        return self.reasoner.deadline if isinstance(self.reasoner, Model) else None

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its texts, and all else it kept, taken from an earlier one."""
        return self.replace(reasoner=ReplayOptions(recorded))

    def run(self, on_round: Callable[[Any], object] | None = None) -> ResultsT:
        """Carry the run out, and keep nothing."""
        options: Any = self
        results: ResultsT = carry_out(options, None, on_round=on_round, told=False).results
        return results

    def keep(self, folder: Path | str, **how: Any) -> Outcome[ResultsT]:
        """Carry the run out, and keep it in a folder.

        Args:
            folder: Where. A folder that holds a run is refused.
            how: As for `prism.Run.keep`.
        """
        options: Any = self
        return carry_out(options, RunFolder.for_new(Path(folder)), **how)

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        fields = {key: getattr(self, name) for key, name in self._fields()}
        kept = {key: str(each) if isinstance(each, Path) else each for key, each in fields.items()}
        reasoner = {"reasoner": NOBODY} if self.reasoner is None else self.reasoner.to_config()

        return {**kept, **reasoner, "inputs": self._digests()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads has changed.
        """
        kind = next(iter(cls.names))
        if kind not in config:
            raise InputError(f"is not a run of {kind}", path=path)

        check_config(config, path, cls.kinds, cls.later_kinds)
        kept = {name: config[key] for key, name in cls._fields() if key in config}
        with naming(path):
            run = cls(**kept, reasoner=read_reasoner(config))

        # what was there is looked at first: a file that has changed may not even load
        inputs = config["inputs"]
        require_unchanged(inputs, {name: run._digest(name) for name in inputs}, path)
        require_unchanged(inputs, run._digests(), path)

        return run

    @classmethod
    def _fields(cls) -> Iterator[tuple[str, str]]:
        """Yield each key of ``run.json`` that is a field's, and the field."""
        for key in (*cls.kinds, *cls.later_kinds):
            if key not in ("reasoner", "inputs"):
                yield key, cls.names.get(key, key)

    def _inputs(self) -> Iterator[Path]:
        """Yield the files that the run reads and does not write, all but an earlier run's."""
        yield self.file

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read and not written, by its name."""
        files = list(self._inputs())
        if isinstance(self.reasoner, ReplayOptions):
            files.append(self.reasoner.run)

        return {str(file): self._digest(str(file)) for file in files}

    def _digest(self, name: str) -> str:
        is_run = isinstance(self.reasoner, ReplayOptions) and name == str(self.reasoner.run)
        return digest(locate_log(Path(name)) if is_run else Path(name))

    @staticmethod
    def _require_count(name: str, number: int | None) -> None:
        if number is not None and number < 1:
            raise InputError(f"must be 1 or more, got {number}", field=name)


def recorded_log(replay: ReplayOptions) -> Path:
    """Return the log of the run that another one repeats.

    Raises:
        InputError: If it is a pipe, which can be read only once.
    """
    if is_stream(replay.run):
        problem = "is a pipe, which a resumed run could not read again: give a file or folder"
        raise InputError(problem, path=replay.run)

    return locate_log(replay.run)


class AgentRound(Protocol):
    """What became of an agent in a round."""

    @property
    def transitions(self) -> int:
        """How often the agent came from one state to another in it."""


def tokens_of(costs: Iterable[Cost | None]) -> int:
    """Return the tokens that models read and wrote, as far as they are known."""
    told = (cost for cost in costs if cost is not None)
    return sum((cost.input_tokens or 0) + (cost.output_tokens or 0) for cost in told)


class AgentLoop(ABC, Generic[RoundT]):
    """The base of runs of one agent, whose rounds have one tick and whose model writes texts.

    Args:
        writer: Who writes.
        rounds: Number of rounds.
        seed: Seed of the run.
        logger: Where its events go.
        clock: The run's clock.

    Attributes:
        rounds: Number of rounds.
        ticks_per_round: 1.
        finished: The rounds that have ended.
        reasoner: Who writes.
        agent: The agent, while the run is under way.
    """

    agent: Any

    def __init__(
        self,
        writer: BaseWriter,
        *,
        rounds: int,
        seed: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
    ) -> None:
        self.rounds: int = rounds
        self.ticks_per_round: int = 1
        self.finished: list[RoundT] = []
        self.reasoner: BaseWriter = writer
        self.logger: EventLogger | None = logger
        self.clock: SimulatedClock = clock
        self._seed = seed

    def position(self) -> dict[str, Any]:
        """Return as plain data where the run is: its time, and what it has spent."""
        budget = getattr(self.reasoner, "budget", None)

        return {
            "moment": self.clock.to_list(),
            "spent": budget.to_dict() if isinstance(budget, Budget) else None,
        }

    def go_on_from(self, position: Mapping[str, Any]) -> None:
        """Go on where another run was.

        Args:
            position: What `position` returned there, among other things.
        """
        self.clock.go_on_at(position["moment"])

        budget = getattr(self.reasoner, "budget", None)
        if isinstance(budget, Budget) and position["spent"] is not None:
            budget.restore(**position["spent"])

    def remembered(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on; a writer that answers from a log takes note of its texts among them."""
        remember = getattr(self.reasoner, "remember", None)
        for event in events:
            if remember is not None and event["event"] == TEXT_WRITTEN:
                remember(event)

            yield event

    def run(self, on_round: Callable[[RoundT], object]) -> Any:
        """Run the rounds that are left, and call a function with every round as it ends."""
        return run_to_end(self._run_and_close(on_round))

    async def _run_and_close(self, on_round: Callable[[RoundT], object]) -> Any:
        try:
            with self.clock.bound():
                return await self._run(on_round)
        finally:
            await self.close()

    async def _run(self, on_round: Callable[[RoundT], object]) -> Any:
        self._begin()
        while len(self.finished) < self.rounds and self._goes_on():
            await self._next(on_round)
            # whoever writes may answer at once: let an interruption have a turn
            await asyncio.sleep(0)

        results = self._results()
        self.emit(RUN_ENDED, **self._activity(self.finished), **costs_told(self.reasoner))

        return results

    async def _next(self, on_round: Callable[[RoundT], object]) -> None:
        """Carry out the next round."""
        number = len(self.finished) + 1
        self.clock.begin_round(number)
        self.emit(ROUND_STARTED, round=number)
        self.clock.advance()

        done = await self._round()
        states = {self.agent.state.value: 1}
        self.emit(ROUND_ENDED, round=number, states=states, **self._activity([done]))
        self.finished.append(done)
        on_round(done)

    def _activity(self, rounds: Sequence[RoundT]) -> dict[str, Any]:
        """Return the counts that every run's log has at the end of a round, and of the run."""
        return {"agent_ticks": len(rounds), "transitions": sum(each.transitions for each in rounds)}

    @abstractmethod
    def _begin(self) -> None:
        """Announce the run, or go on where it was."""

    @abstractmethod
    def _goes_on(self) -> bool:
        """Return whether the agent has more to do."""

    @abstractmethod
    async def _round(self) -> RoundT:
        """Let the agent take its turn."""

    @abstractmethod
    def _results(self) -> Any:
        """Return what came of the run."""

    def announce_start(self, chart: str, agent: Any) -> None:
        """Announce the run, and its agent."""
        self.emit(
            RUN_STARTED,
            schema=SCHEMA_VERSION,
            chart=chart,
            agents=1,
            rounds=self.rounds,
            ticks_per_round=self.ticks_per_round,
            seed=self._seed,
            **models_told([agent], self.reasoner),
        )
        self.emit(AGENT_JOINED, agent_id=agent.agent_id, state=agent.state.value)

    def emit(self, event: str, **keys: Any) -> None:
        """Announce an event."""
        logger = active_logger(self.logger)
        if logger is not None:
            logger.info(event, **keys)

    async def close(self) -> None:
        """Close the connections of whoever writes, if it has any."""
        close = getattr(self.reasoner, "close", None)
        if close is not None:
            await close()


def told_by(kind: type[ToldT], event: Event, /, **others: Any) -> ToldT:
    """Return what an event tells of, whose keys are called as the fields.

    Args:
        kind: The dataclass.
        event: The event.
        others: Fields that it tells of in other words.
    """
    names = {each.name for each in fields(cast("Any", kind))} & event.keys() - others.keys()
    given = {name: event[name] for name in names}
    told = {key: tuple(one) if isinstance(one, list) else one for key, one in given.items()}

    return kind(**told, **others)


@dataclass(frozen=True, slots=True)
class Lent:
    """What a run lends an object that takes part in it.

    Args:
        writer: Answers its text calls, together with those of all others of the tick.
        logger: Where the run's events go.
        clock: Returns the run's time, in seconds since the epoch.
        seed: Seed of the run's random numbers.
    """

    writer: BaseWriter
    logger: EventLogger | None
    clock: Callable[[], float]
    seed: int


class NobodyWriter(BaseWriter):
    """Writes where there is no model: every call fails."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer that there is no model."""
        return [Written(None, "failed", reason="there is no model") for _ in calls]


def writer_of(client: Any) -> BaseWriter:
    """Return who answers the prompts of an agent.

    Args:
        client: A writer, a `prism.llm.Model` or the text of one, or any client that a `Writer`
            takes; None if there is nobody.
    """
    if isinstance(client, BaseWriter):
        return client
    if isinstance(client, str):
        return Writer(Model.of(client))
    return NobodyWriter() if client is None else Writer(client)
