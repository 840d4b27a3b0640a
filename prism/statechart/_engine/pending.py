"""Asking a reasoner on behalf of an agent that may have moved before the answer comes."""

from __future__ import annotations

from typing import Any, Protocol

from prism.statechart._definition import Definition
from prism.statechart._engine.writing import Reporter
from prism.statechart._identity import awaiting_announcement


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
