"""What runs of one agent have in common, whether it takes turns of a workflow or thinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from prism.errors import InputError
from prism.files._durable import is_stream
from prism.llm import Model
from prism.runlog import SimulatedClock
from prism.runlog._reader import locate_log
from prism.runs._config import MOST_SEED, require_writable, too_large_a_seed
from prism.runs._folder import RunFolder
from prism.runs._options import ReasonerOptions, ReplayOptions
from prism.runs._runnable import RunResults
from prism.runs._running import Outcome, carry_out
from prism.statechart import Budget
from prism.statechart.reasoner._router import costs_told, models_told
from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
from prism.statechart.reasoner._writer import Writer
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import (
    AGENT_JOINED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TEXT_WRITTEN,
)

Event = Mapping[str, Any]
RoundT = TypeVar("RoundT")
ResultsT = TypeVar("ResultsT", bound=RunResults)


class WritingOptions(Generic[ResultsT]):
    """What the options of a run of one agent say of whom it asks, which only writes."""

    __slots__ = ()

    agent_id: str
    seed: int
    reasoner: ReasonerOptions

    def _with(self, **changes: Any) -> Self:
        same: Any = self
        changed: Self = replace(same, **changes)
        return changed

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
        same: Any = self
        found: Self = replace(same, reasoner=ReplayOptions(recorded))
        return found

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

    def _require_possible(self) -> None:
        """Refuse an agent or a seed that no run can have."""
        if abs(self.seed) > MOST_SEED:
            raise too_large_a_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")

        require_writable("agent_id", self.agent_id)


def recorded_log(replay: ReplayOptions) -> Path:
    """Return the log of the run that another one repeats.

    Raises:
        InputError: If it is a pipe, which can be read only once.
    """
    if is_stream(replay.run):
        problem = "is a pipe: the run has to find it again, so give a file or folder"
        raise InputError(problem, path=replay.run)

    return locate_log(replay.run)


class AgentLoop(Generic[RoundT]):
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
    """

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

    def announce_end(self, **counts: Any) -> None:
        """Announce that the run is over, with what there is to count, and what models cost."""
        self.emit(RUN_ENDED, **counts, **costs_told(self.reasoner))

    def begin_round(self) -> int:
        """Begin the next round and its tick; return its number."""
        number = len(self.finished) + 1
        self.clock.begin_round(number)
        self.emit(ROUND_STARTED, round=number)
        self.clock.advance()

        return number

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
