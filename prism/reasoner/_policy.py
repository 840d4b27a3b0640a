"""Deciding without a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import exp
from typing import Any

from prism.errors import FieldValueError
from prism.randomness import index_at, total_of
from prism.reasoner.questions import AgentStreams, BaseReasoner, Decision, Question
from prism.statechart.reporting import announce
from prism.statechart.states import AgentState, state_text
from prism.telemetry.loggers import EventLogger, is_heard

_PULLED: Collection[str] = {
    AgentState.COMPOSING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
}
"""Options that a post's relevance favours."""

_PULL = 2.0
"""What a relevance of 1 adds to the utility of engaging."""


class PolicyReasoner(BaseReasoner):
    """Decides by a seeded softmax over the options; needs no model and no server.

    The utility of an option is the inclination of the agent's archetype towards it. For options
    that engage with a post, twice the post's relevance is added.
    Options are drawn with probability proportional to ``exp(utility / temperature)`` (the
    multinomial logit model, McFadden 1974). An agent is read by duck type:
    ``agent.archetype.inclinations`` and ``agent.relevance(context)``; without them every option is
    equally likely.

    A question with its own weights is drawn by these.

    Draws come from ``agent.random`` if the agent has its own stream, as in a simulation. Otherwise
    they come from a stream keyed by this reasoner's seed and the agent's id.

    Args:
        seed: Seed of the streams.
        temperature: Above 0; low values make the most likely option nearly certain, high values
            even out the odds.
        logger: A structlog logger for the decisions.

    Raises:
        FieldValueError: If the temperature is not above 0.
    """

    def __init__(
        self, seed: int = 0, *, temperature: float = 1.0, logger: EventLogger | None = None
    ) -> None:
        if not temperature > 0:
            raise FieldValueError(f"temperature must be above 0, got {temperature!r}")

        super().__init__(logger)
        self._temperature = temperature
        self._streams = AgentStreams(seed)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Draw an option for every question."""
        return [self._draw(question, self._weights(question)) for question in questions]

    def probabilities(self, question: Question) -> list[float]:
        """Return the probability of every option, in the options' order; they sum to one."""
        weights = self._weights(question)
        total = total_of(weights)
        return [weight / total for weight in weights]

    def choose(self, questions: Sequence[Any], logger: EventLogger | None = None) -> list[Any]:
        """Draw an option for every question, and log the decisions if they are wanted.

        Args:
            questions: Questions, or objects with the same agents, states, triggers, options,
                contexts and weights.
            logger: Logger for the decisions; by default this reasoner's own.
        """
        listens = is_heard(logger or self._logger)
        chosen = []
        for question in questions:
            weights = self._weights(question)
            # as `weighted_index` draws, but the weights of a world are checked already
            number = self._streams.of(question.agent).random()
            choice = question.options[index_at(number, weights)]
            chosen.append(choice)
            if listens:
                how = {"reason": None, "probabilities": _rounded(question.options, weights)}
                announce(logger or self._logger, question, choice, "policy", how)
        return chosen

    def skip(self, question: Question, decision: Decision | None = None) -> None:  # noqa: ARG002
        """Draw the random numbers of a question that was answered elsewhere."""
        self._streams.of(question.agent).random()

    def _draw(self, question: Question, weights: Sequence[float]) -> Decision:
        chosen = question.options[self._streams.of(question.agent).weighted_index(weights)]
        probabilities = _rounded(question.options, weights)
        return Decision(chosen, "policy", probabilities=probabilities)

    def _weights(self, question: Question) -> list[float]:
        """Return the unnormalised probabilities of the options."""
        weights = question.weights
        if weights is not None:
            return [weights.get(option, 0.0) for option in question.options]

        utilities = self._utilities(question)
        highest = max(utilities)
        return [exp((utility - highest) / self._temperature) for utility in utilities]

    def _utilities(self, question: Question) -> list[float]:
        agent = question.agent
        value = getattr(getattr(agent, "archetype", None), "inclinations", None)
        # a mock's are none
        inclinations = value if isinstance(value, Mapping) else {}
        relevance = agent.relevance(question.context) if hasattr(agent, "relevance") else 0.0
        pull = _PULL * relevance if isinstance(relevance, int | float) else 0.0
        return [
            inclinations.get(text, 0.0) + (pull if text in _PULLED else 0.0)
            for text in map(state_text, question.options)
        ]


def _rounded(options: Sequence[Any], weights: Sequence[float]) -> dict[str, float]:
    """Return the probabilities of options for a log, rounded to six digits."""
    total = total_of(weights)
    return {state_text(each): round(weights[at] / total, 6) for at, each in enumerate(options)}
