"""A policy file: probabilities of decisions, and the reasoner that uses them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError
from prism.files import parse_json, write_durably
from prism.statechart import BaseReasoner, Decision, PolicyReasoner, Question
from prism.statechart.social import ACTS
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger


@dataclass(frozen=True)
class Policy:
    """Probabilities of decisions, such as those of `prism.science.calibrate`.

    The options that are open share the probability among them. Where none has any, the policy has
    no answer: a run then uses the built-in policy, and logs the decision as a fallback.

    Args:
        probabilities: The probability of each option, by state and event.
    """

    probabilities: Mapping[str, Mapping[str, Mapping[str, float]]]

    def look_up(self, state: str, event: str, options: Sequence[str]) -> list[float] | None:
        """Return the probabilities of the options, which add up to 1.

        Args:
            state: The state of the agent.
            event: The event that opens the question.
            options: The options.

        Returns:
            None if none of them has any.
        """
        known = self.probabilities.get(state, {}).get(event, {})
        weights = [known.get(option, 0.0) for option in options]
        total = sum(weights)
        return [weight / total for weight in weights] if total else None

    @property
    def knows_acts(self) -> bool:
        """Whether it has decisions in which a reply or a reshare could be chosen."""
        events = (each for of_state in self.probabilities.values() for each in of_state.values())
        return any(not ACTS.isdisjoint(options) for options in events)

    def reasoner(self, seed: int = 0, *, logger: EventLogger | None = None) -> BaseReasoner:
        """Return a reasoner that decides by this policy.

        It draws one number per decision from the same stream as `PolicyReasoner`, so runs of one
        seed can be compared.

        Args:
            seed: Seed of the streams of agents without their own.
            logger: A structlog logger for the decisions.
        """
        return CalibratedReasoner(self, seed, logger=logger)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a policy file: JSON, ``{state: {event: {option: probability}}}``.

        Raises:
            InputError: If it cannot be read, or holds anything else.
        """
        file = Path(path)
        try:
            found = parse_json(file.read_text(encoding="utf-8"), path=file)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", path=file) from None

        if not _maps(found, lambda events: _maps(events, lambda each: _maps(each, _is_share))):
            problem = "must be {state: {event: {option: probability}}}"
            raise InputError(problem, path=file)

        return cls(found)

    def to_file(self, path: Path | str) -> None:
        """Write a policy file, which replaces an earlier one once it is complete.

        Raises:
            OSError: If it cannot be written.
        """
        write_durably(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """Return the text of the policy's file."""
        return json.dumps(self.probabilities, indent=1) + "\n"


class CalibratedReasoner(PolicyReasoner):
    """Decides by a policy, and by the built-in one if that has no answer.

    The source of a decision is ``policy``, or ``fallback`` if the policy has no answer.

    Args:
        policy: The policy.
        seed: Seed of the streams of agents without their own.
        logger: A structlog logger for the decisions.
    """

    def __init__(self, policy: Policy, seed: int = 0, *, logger: EventLogger | None = None) -> None:
        super().__init__(seed, logger=logger)
        self._policy = policy

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed choose among all acts."""
        return self._policy.knows_acts

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Draw an option for every question."""
        return [self._answer(question) for question in questions]

    def probabilities(self, question: Question) -> list[float]:
        """Return the probability of every option, in the options' order; they sum to one."""
        return self._look_up(question) or super().probabilities(question)

    def _answer(self, question: Question) -> Decision:
        found = self._look_up(question)
        if found is None:
            decision = self._draw(question, super().probabilities(question))
            return replace(decision, source="fallback", reason="not in the policy")

        return self._draw(question, found)

    def _look_up(self, question: Question) -> list[float] | None:
        options = list(map(state_text, question.options))
        return self._policy.look_up(state_text(question.state), question.trigger, options)


def _maps(found: Any, is_right: Callable[[Any], bool]) -> bool:
    return isinstance(found, dict) and all(map(is_right, found.values()))


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= 1
