"""A calibrated policy: its file, and the reasoner that uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from prism.files import write_durably
from prism.files._source import Source
from prism.statechart import BaseReasoner, Decision, PolicyReasoner, Question
from prism.statechart.reasoner._own_prompts import in_words
from prism.statechart.social import ACTS
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger

ARCHETYPE = "archetype"

_POOLED = "pooled over all groups"
_UNIDENTIFIED = "not identified"


@dataclass(frozen=True, slots=True)
class Cell:
    """The choices of one group of agents at one decision point.

    Args:
        state: The state of the agent.
        event: The event that opens the question.
        options: The options, in the chart's order.
        group: The group; None for all agents together.
        counts: How often each option was chosen.
        probabilities: Their shares, which are the maximum-likelihood estimates of a multinomial;
            None if they are not identified.
        agents: Number of agents that decided.
    """

    state: str
    event: str
    options: tuple[str, ...]
    group: str | None
    counts: tuple[int, ...]
    probabilities: tuple[float, ...] | None = None
    agents: int = 0

    @property
    def n(self) -> int:
        """Number of decisions."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Unidentified:
    """Something that the decisions do not identify.

    Args:
        what: ``state``, ``option`` or ``cell``.
        reason: Why it is not identified.
        state: The state in which it would be decided.
        event: The event that opens the question.
        group: The group of agents.
        name: The option.
        n: Number of decisions.
    """

    what: Literal["state", "option", "cell"]
    reason: str
    state: str | None = None
    event: str | None = None
    group: str | None = None
    name: str | None = None
    n: int = 0


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A run from which a policy was calibrated.

    Args:
        run: Its label.
        log_sha256: SHA-256 of its log.
        decisions: Number of its decisions that were used.
        left_out: Number of the other decisions, by the reason for leaving them out.
    """

    run: str
    log_sha256: str
    decisions: int
    left_out: Mapping[str, int] = field(default_factory=dict)


_Point = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True)
class Policy:
    """Probabilities of decisions, estimated from those of runs; see `prism.science.calibrate`.

    A question is looked up by state, event and options. The shares of the agent's group answer, or
    if these are not identified, those of all groups together. If nothing is identified, the policy
    has no answer. A run then uses the built-in policy, and logs the decision as a fallback.

    Args:
        by: How to group agents: by ``archetype``, or by an attribute.
        least: Fewest decisions that identify a cell.
        cells: The shares, by group and for all groups together.
        unidentified: What could not be identified.
        sources: The runs.
    """

    by: str
    least: int
    cells: tuple[Cell, ...]
    unidentified: tuple[Unidentified, ...] = ()
    sources: tuple[PolicySource, ...] = ()
    _cells: dict[tuple[_Point, str | None], Cell] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Index the cells."""
        for cell in self.cells:
            self._cells[(cell.state, cell.event, cell.options), cell.group] = cell

    def look_up(
        self, state: str, event: str, options: Sequence[str], group: str
    ) -> tuple[tuple[float, ...], bool] | None:
        """Return the probabilities of the options.

        Args:
            state: The state of the agent.
            event: The event that opens the question.
            options: The options, in their order.
            group: The agent's group.

        Returns:
            The probability of every option, and whether they are those of all groups together; None
            if they are not identified.
        """
        point = state, event, tuple(options)
        for key in (group, None):
            cell = self._cells.get((point, key))
            if cell is not None and cell.probabilities is not None:
                return cell.probabilities, key is None

        return None

    @property
    def knows_acts(self) -> bool:
        """Whether it was fitted to decisions in which a reply or a reshare could be chosen."""
        return any(not ACTS.isdisjoint(each.options) for each in self.cells)

    def reasoner(self, seed: int = 0, *, logger: EventLogger | None = None) -> BaseReasoner:
        """Return a reasoner that decides by this policy.

        It draws one number per decision from the same stream as `PolicyReasoner`, so runs of one
        seed can be compared.

        Args:
            seed: Seed of the streams of agents without their own.
            logger: A structlog logger for the decisions.
        """
        return CalibratedReasoner(self, seed, logger=logger)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain data, as in the file."""
        lists = ("cells", "unidentified", "sources")
        return {
            "format": "prism.policy",
            "version": 1,
            "by": self.by,
            "least": self.least,
            **{name: [asdict(each) for each in getattr(self, name)] for name in lists},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], path: Path | None = None) -> Self:
        """Read what `to_dict` returned.

        Args:
            document: The plain data.
            path: The file that it comes from, for messages.

        Raises:
            InputError: If it is not such data; the message lists all problems by key.
        """
        return cls._of(Source.of(document, path))

    @classmethod
    def _of(cls, source: Source) -> Self:
        # pydantic is slow to import, and most runs read no policy
        from prism.runs._policy_schema import read_policy

        document = read_policy(source)
        kinds = {"cells": Cell, "unidentified": Unidentified, "sources": PolicySource}
        made: Any = {
            name: tuple(kind(**dict(each)) for each in getattr(document, name))
            for name, kind in kinds.items()
        }

        return cls(document.by, document.least, **made)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a policy file.

        Args:
            path: The file.

        Raises:
            InputError: If it cannot be read or is invalid; the message lists all problems by line
                and key.
        """
        return cls._of(Source.read(path, "json"))

    def to_file(self, path: Path | str) -> None:
        """Write a policy file, which replaces an earlier one once it is complete.

        Args:
            path: The file.

        Raises:
            OSError: If it cannot be written.
        """
        write_durably(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """Return the text of the policy's file."""
        return json.dumps(self.to_dict(), indent=1) + "\n"


class CalibratedReasoner(PolicyReasoner):
    """Decides by a calibrated policy, and by the built-in one if that has no answer.

    The source of a decision is ``policy``; its reason says if the probabilities are those of all
    groups together. A decision for which the policy has no answer is a ``fallback``.

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
        """Whether agents of the feed choose among all acts, as in the fitted runs."""
        return self._policy.knows_acts

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Draw an option for every question."""
        return [self._answer(question) for question in questions]

    def probabilities(self, question: Question) -> list[float]:
        """Return the probability of every option, in the options' order; they sum to one."""
        found = self._look_up(question)
        return super().probabilities(question) if found is None else list(found[0])

    def _answer(self, question: Question) -> Decision:
        found = self._look_up(question)
        if found is None:
            decision = self._draw(question, super().probabilities(question))
            return replace(decision, source="fallback", reason=_UNIDENTIFIED)

        probabilities, is_pooled = found
        decision = self._draw(question, probabilities)
        return replace(decision, reason=_POOLED) if is_pooled else decision

    def _look_up(self, question: Question) -> tuple[tuple[float, ...], bool] | None:
        policy = self._policy
        return policy.look_up(
            state_text(question.state),
            question.trigger,
            tuple(map(state_text, question.options)),
            group_of(question.agent, policy.by),
        )


def group_of(agent: Any, by: str) -> str:
    """Return the group of an agent, as in the log of a run."""
    value = _found(agent, by)
    return in_words(getattr(value, "name", value) if by == ARCHETYPE else value)


def _found(source: Any, name: str) -> Any:
    if isinstance(source, Mapping):
        return source.get(name)

    own = getattr(source, "attributes", None)
    if isinstance(own, Mapping) and name in own:
        return own[name]

    return getattr(source, name, None)
