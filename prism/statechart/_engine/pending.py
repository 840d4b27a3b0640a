"""What waits: fires during a transition, and questions that a reasoner has not answered yet.

An agent may have moved before the answer to its question comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple, Protocol

from prism.errors import RunawayError
from prism.statechart._definition import Definition
from prism.statechart._engine.writing import Reporter
from prism.statechart._identity import awaiting_announcement, name_or_address
from prism.statechart.states import state_text


class Decider(Protocol):
    """What `Statechart.afire` asks, such as a `Reasoner` or a `PolicyReasoner`.

    The decision of a reasoner that has only this method is announced for it, with the source
    ``policy``; derive from `BaseReasoner` to say another one.
    """

    async def decide(
        self, agent: Any, current_state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        """Choose one of the options."""


class OpenQuestions:
    """The questions of a chart that wait for an answer.

    Args:
        reporter: Where to announce decisions that nobody else announces.
        chart: The chart's definition.

    Attributes:
        by_agent: Open questions by the agent's address; empty while no question is open.
    """

    __slots__ = ("_chart", "_reporter", "by_agent")

    def __init__(self, reporter: Reporter, chart: Definition[Any]) -> None:
        self._reporter = reporter
        self._chart = chart
        self.by_agent: dict[int, set[object]] = {}

    def drop(self, agent: Any) -> None:
        """Note that an agent has moved: answers to its questions come too late."""
        self.by_agent.pop(id(agent), None)

    async def ask(
        self, reasoner: Decider, agent: Any, trigger: str, options: list[Any], context: Any
    ) -> tuple[Any, bool]:
        """Return a reasoner's choice, and whether the agent has stayed where it was meanwhile."""
        state, last_record, question = agent.state, _last_record(agent), object()
        self.by_agent.setdefault(id(agent), set()).add(question)

        try:
            with awaiting_announcement(agent, trigger, self._chart) as announced:
                chosen = await reasoner.decide(agent, state, trigger, options, context)

            # an answer outside the options is no decision, and an error of its own
            if not announced.already and chosen in options:
                self._reporter.decided(agent, state, trigger, options, chosen, context)

            # three signs, since another chart may have moved the agent, which shows only in its
            # state or its history, and an agent without a history may have come back
            is_open = question in self.by_agent.get(id(agent), ())
            has_stayed = agent.state == state and _last_record(agent) is last_record

            return chosen, is_open and has_stayed
        finally:
            others = self.by_agent.pop(id(agent), set()) - {question}
            if others:
                self.by_agent[id(agent)] = others


def _last_record(agent: Any) -> Any:
    history = getattr(agent, "state_history", None)
    return history[-1] if history else None


MOST_QUEUED_FIRES = 1000
"""Fires that an agent's own actions may queue behind one fire before the engine stops them."""

_MOST_NAMED = 20


class Answer(NamedTuple):
    """A reasoner's choice, for `Statechart.fire_to`.

    Args:
        target: The target that was chosen.
        asked_in: State in which the agent was asked; None for the one that it is in.
        is_quiet: Whether the caller says itself that it no longer applied.
    """

    target: Any
    asked_in: Any
    is_quiet: bool = False


class QueuedFire(NamedTuple):
    """A fire that waits.

    Args:
        trigger: Name of the event.
        context: What it is about.
        answer: The target that it must lead to; None for the first match.
    """

    trigger: str
    context: Any
    answer: Answer | None

    def __str__(self) -> str:
        """Return trigger and wanted target, as messages name them."""
        if self.answer is None:
            return repr(self.trigger)
        return f"{self.trigger!r} to {state_text(self.answer.target)!r}"


def runaway(chart: str, agent: object, trigger: str) -> RunawayError:
    """Return the error for actions that go on firing without end."""
    return RunawayError(
        f"chart {chart!r}: the actions of agent {name_or_address(agent)!r} "
        f"fired {MOST_QUEUED_FIRES} more events without coming to rest; the last was "
        f"{trigger!r}: let an action end the chain"
    )


def note_dropped(
    error: BaseException, chart: str, agent: object, queue: Iterable[QueuedFire]
) -> None:
    """Name the fires that are dropped with an exception in a note of it; none, no note."""
    waiting = iter(queue)
    named = [str(fire) for fire in islice(waiting, _MOST_NAMED)]
    if not named:
        return

    more = sum(1 for _ in waiting)
    listing = ", ".join(named) + (f" and {more} more" if more else "")
    error.add_note(
        f"chart {chart!r} dropped what agent {name_or_address(agent)!r} had queued behind this: "
        f"{listing}"
    )
