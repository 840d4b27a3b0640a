"""The seam between the loop and what it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from prism.statechart import Decision, Question
from prism.telemetry._loggers import EventLogger

Event = Mapping[str, Any]
"""One line of a run's log."""


class BatchDecider(Protocol):
    """Who decides the open questions of a run; every reasoner built on `BaseReasoner` can.

    One that has a ``concurrency`` above 0 is asked about so many questions at the same time.
    """

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions, in their order."""


@runtime_checkable
class Remembering(Protocol):
    """A decider whose later answers depend on its earlier ones, such as one that replays a log."""

    def remember(self, decision: Event) -> None:
        """Take note of a decision that was made before the run was interrupted."""


class Summary(Protocol):
    """Something that a log and ``run.json`` can hold."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


class WorldResults(Summary, Protocol):
    """What came of a whole run."""

    @property
    def totals(self) -> Summary:
        """What ``run.ended`` says in the log."""


SummaryT = TypeVar("SummaryT", bound=Summary)
ResultsT_co = TypeVar("ResultsT_co", bound=WorldResults, covariant=True)


class World(Protocol[SummaryT, ResultsT_co]):
    """What a `Loop` runs: agents, what they share, and what each of their states calls for.

    The loop knows rounds, ticks, the order of the agents, and when decisions are applied. Which
    agents there are, which states they have and what happens in a step is known to the world only.

    A reasoner with a ``concurrency`` is asked while other agents already take their next steps. For
    its run to be the same as any other, a step reads no other agent's state, and `apply` changes no
    other agent.
    """

    @property
    def agents(self) -> Sequence[Any]:
        """The agents, in the order in which they act."""

    def describe(self) -> dict[str, Any]:
        """Return what ``run.started`` says about the world."""

    def begin(self) -> None:
        """Begin a run; one that is resumed has begun already."""

    def begin_round(self, number: int) -> None:
        """Begin a round, counted from 1."""

    def step(self, agent: Any) -> Question | None:
        """Let an agent take its step of a tick: its time-out if due, else what its state calls for.

        Returns:
            What the agent has to decide, if its step leads to a decision.
        """

    def apply(self, question: Question, decision: Decision) -> None:
        """Carry out a decision, which is one of the question's options.

        `Statechart.fire_to` does, given ``asked_in=question.state``: it evaluates guards again, and
        logs an answer that no longer applies as discarded.
        """

    def end_round(self, number: int) -> SummaryT:
        """End a round; all its questions are settled."""

    def results(self, rounds: Sequence[SummaryT]) -> ResultsT_co:
        """Return what came of the run."""

    def snapshot(self) -> dict[str, Any]:
        """Return as plain data, between two rounds, what the log does not tell."""

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> list[SummaryT]:
        """Make a new world what another one was.

        Args:
            snapshot: What `snapshot` returned.
            events: The log until then.

        Returns:
            The rounds that had ended.

        Raises:
            SimulationError: If the snapshot does not fit the world.
        """
