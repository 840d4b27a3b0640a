"""Deciding without a model, and random numbers for agents without a stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from prism.errors import FieldValueError
from prism.randomness import RandomStream, Taken, index_at, total_of
from prism.reasoner._questions import BaseReasoner, Decision, Question
from prism.statechart.names import given_name
from prism.statechart.reporting import announce
from prism.statechart.states import AgentState, state_text
from prism.telemetry.loggers import EventLogger, is_heard


class AgentStreams:
    """The random numbers of agents' decisions, for reasoners that draw.

    Args:
        seed: Seed of the streams of agents without their own.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._named: dict[str, RandomStream] = {}

    def of(self, agent: Any) -> RandomStream:
        """Return ``agent.random`` if it is a stream, or else a stream kept for the agent.

        An agent that also draws for itself has ``decision_random``, which takes precedence.

        A kept stream belongs to the agent's id or name; agents without either share one.
        """
        stream = getattr(agent, "decision_random", None)
        if not isinstance(stream, RandomStream):
            stream = getattr(agent, "random", None)
        if isinstance(stream, RandomStream):
            return stream

        name = given_name(agent) or ""
        if name not in self._named:
            self._named[name] = RandomStream(self._seed, name)

        return self._named[name]


SEEDS = 2**31
"""Number of seeds to draw from, since servers store them in 32 bits."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The random number that is drawn for a question before it is asked.

    Args:
        stream: The stream of the number; None if nothing is drawn.
        drawn: The number, for drawing an option or for the model's sampling.
        fault: Why the question cannot be asked.
    """

    stream: RandomStream | None = None
    drawn: Taken = (0, 0.0)
    fault: Exception | None = None

    @property
    def variation(self) -> int:
        """The number in a form to add to a seed."""
        return int(self.drawn[1] * SEEDS)

    def put_back(self) -> None:
        """Restore the stream as if the question had not been asked."""
        if self.stream is not None:
            self.stream.put_back(self.drawn)


_PULLED: Collection[str] = {
    AgentState.COMPOSING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
}
"""Options that a post's relevance favours."""

_PULL = 2.0
"""What a relevance of 1 adds to the utility of engaging."""

_NEUTRAL: Mapping[str, float] = {}


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

    def choose(self, asked: Sequence[Any], logger: EventLogger | None = None) -> list[Any]:
        """Draw an option for every question, and log the decisions if they are wanted.

        Args:
            asked: Questions, or objects with the same agents, states, triggers, options, contexts
                and weights.
            logger: Logger for the decisions; by default this reasoner's own.
        """
        listens = is_heard(logger or self._logger)
        chosen = []
        for question in asked:
            weights = self._weights(question)
            number = self._streams.of(question.agent).random()
            choice = question.options[index_at(number, weights)]
            chosen.append(choice)
            if listens:
                chances = _rounded([*map(state_text, question.options)], weights)
                how = {"reason": None, "probabilities": chances}
                announce(logger or self._logger, question, choice, "policy", how, _NEUTRAL)
        return chosen

    def skip(self, question: Question, decision: Decision | None = None) -> None:  # noqa: ARG002
        """Draw the random numbers of a question that was answered elsewhere."""
        self._streams.of(question.agent).random()

    def _draw(self, question: Question, weights: Sequence[float]) -> Decision:
        chosen = question.options[self._streams.of(question.agent).weighted_index(weights)]
        probabilities = _rounded([*map(state_text, question.options)], weights)
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
        inclinations = value if isinstance(value, Mapping) else _NEUTRAL
        relevance = agent.relevance(question.context) if hasattr(agent, "relevance") else 0.0
        pull = _PULL * relevance if isinstance(relevance, int | float) else 0.0
        return [
            inclinations.get(text, 0.0) + (pull if text in _PULLED else 0.0)
            for text in map(state_text, question.options)
        ]


def _rounded(texts: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """Return the probabilities of options for a log, rounded to six digits."""
    total = total_of(weights)
    return {text: round(part / total, 6) for text, part in zip(texts, weights, strict=True)}
