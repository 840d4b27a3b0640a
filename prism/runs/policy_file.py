"""A policy file: probabilities of decisions, and the reasoner that uses them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

from prism.files import write_durably
from prism.files.source import Source
from prism.reasoner import BaseReasoner, Decision, PolicyReasoner, Question
from prism.statechart.social import ACTS
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger

Probabilities = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Policy:
    """Probabilities of decisions, such as those of `prism.science.calibrate`.

    The options that are open share the probability among them. Where none has any, the policy has
    no answer: a run then uses the built-in policy, and logs the decision as a fallback.

    Args:
        probabilities: The probability of each option, by state and event.
    """

    probabilities: Probabilities

    def reasoner(self, seed: int = 0, *, logger: EventLogger | None = None) -> BaseReasoner:
        """Return a reasoner that decides by this policy.

        It draws one number per decision from the same stream as `PolicyReasoner`, so runs of one
        seed can be compared. The source of a decision is ``policy``, or ``fallback`` if the policy
        has no answer.

        Args:
            seed: Seed of the streams of agents without their own.
            logger: A structlog logger for the decisions.
        """
        return _CalibratedReasoner(self.probabilities, seed, logger=logger)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a policy file: JSON, ``{state: {event: {option: probability}}}``.

        Raises:
            InputError: If it cannot be read, or holds anything else.
        """
        # pydantic takes a tenth of a second to load, which few runs need
        from pydantic import Field

        from prism.files.declarations import read_document

        share = Annotated[float, Field(ge=0, le=1, strict=True)]
        kind: Any = dict[str, dict[str, dict[str, share]]]
        return cls(read_document(kind, Source.read(path, "json")))

    def to_file(self, path: Path | str) -> None:
        """Write a policy file, which replaces an earlier one once it is complete.

        Raises:
            OSError: If it cannot be written.
        """
        write_durably(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """Return the text of the policy's file."""
        return json.dumps(self.probabilities, indent=1) + "\n"


class _CalibratedReasoner(PolicyReasoner):
    """Decides by a policy, and by the built-in one if that has no answer."""

    def __init__(
        self, probabilities: Probabilities, seed: int, *, logger: EventLogger | None
    ) -> None:
        super().__init__(seed, logger=logger)
        self._probabilities = probabilities
        events = (event for of_state in probabilities.values() for event in of_state.values())
        self.chooses_acts: bool = any(not ACTS.isdisjoint(options) for options in events)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Draw an option for every question."""
        return [self._answer(question) for question in questions]

    def probabilities(self, question: Question) -> list[float]:
        """Return the probability of every option, in the options' order; they sum to one."""
        return self._look_up(question) or super().probabilities(question)

    def _answer(self, question: Question) -> Decision:
        decision = self._draw(question, self.probabilities(question))
        if self._look_up(question) is None:
            return replace(decision, source="fallback", reason="not in the policy")
        return decision

    def _look_up(self, question: Question) -> list[float] | None:
        shares = self._probabilities.get(state_text(question.state), {}).get(question.trigger, {})
        weights = [shares.get(state_text(option), 0.0) for option in question.options]
        total = sum(weights)
        return [weight / total for weight in weights] if total else None
