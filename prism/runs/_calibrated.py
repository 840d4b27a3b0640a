"""Deciding by a calibrated policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from prism.statechart import Decision, PolicyReasoner, Question
from prism.statechart.reasoner._attributes import in_words
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger

ARCHETYPE = "archetype"
RELEVANCE = "relevance"

_POOLED = "pooled over all groups"
_INSTEAD = "shares of the group, as its logit does not answer"
_UNIDENTIFIED = "not identified"


Basis = Literal["logit", "markov", "pooled"]
"""What a probability rests on: a logit, the frequencies of a group, or those of all groups."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy says of one question.

    Args:
        probabilities: Probability of every option, in the options' order.
        basis: What they rest on.
        is_instead: Whether they are in place of a logit, which does not know the agent's group or
            a covariate.
    """

    probabilities: tuple[float, ...]
    basis: Basis
    is_instead: bool = False


class LooksUp(Protocol):
    """A policy, as far as deciding by it goes."""

    @property
    def by(self) -> str:
        """What agents are grouped by."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """What its answers depend on, besides groups."""

    def look_up(
        self,
        state: str,
        event: str,
        options: Sequence[str],
        group: str,
        values: Mapping[str, float | None],
    ) -> Answer | None:
        """Return the probabilities of the options; None if they are not identified."""


class CalibratedReasoner(PolicyReasoner):
    """Decides by a calibrated policy, and by the built-in one where that has no answer.

    The source of a decision is ``policy``; its reason says where probabilities are of all groups
    together. A decision that the policy says nothing of is a ``fallback``.

    Args:
        policy: The policy.
        seed: Seed of the streams of agents that have none.
        logger: A structlog logger for the decisions.
    """

    def __init__(
        self, policy: LooksUp, seed: int = 0, *, logger: EventLogger | None = None
    ) -> None:
        super().__init__(seed, logger=logger)
        self._policy = policy

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Draw an option for every question."""
        return [self._answer(question) for question in questions]

    def probabilities(self, question: Question) -> list[float]:
        """Return the probability of every option, in the options' order; they sum to one."""
        found = self._look_up(question)
        return super().probabilities(question) if found is None else list(found.probabilities)

    def _answer(self, question: Question) -> Decision:
        found = self._look_up(question)
        if found is None:
            decision = self._draw(question, super().probabilities(question))
            return replace(decision, source="fallback", reason=_UNIDENTIFIED)

        decision = self._draw(question, found.probabilities)
        if found.basis == "pooled":
            return replace(decision, reason=_POOLED)

        return replace(decision, reason=_INSTEAD) if found.is_instead else decision

    def _look_up(self, question: Question) -> Answer | None:
        policy = self._policy
        return policy.look_up(
            state_text(question.state),
            question.trigger,
            tuple(map(state_text, question.options)),
            group_of(question.agent, policy.by),
            {name: covariate_of(question, name) for name in policy.covariates},
        )


def group_of(agent: Any, by: str) -> str:
    """Return the group of an agent, as the log of a run tells it."""
    value = _found(agent, by)
    return in_words(getattr(value, "name", value) if by == ARCHETYPE else value)


def covariate_of(question: Question, name: str) -> float | None:
    """Return what a question's choice may depend on; None if it is not known or no number."""
    agent, context = question.agent, question.context
    details = getattr(question, "details", {})
    if name in details:
        return float(details[name])
    if name == RELEVANCE and hasattr(agent, RELEVANCE) and context is not None:
        return float(agent.relevance(context))

    value = _found(context, name)
    value = _found(agent, name) if value is None else value

    return float(value) if isinstance(value, (int, float)) else None


def _found(source: Any, name: str) -> Any:
    if isinstance(source, Mapping):
        return source.get(name)

    own = getattr(source, "attributes", None)
    if isinstance(own, Mapping) and name in own:
        return own[name]

    return getattr(source, name, None)
