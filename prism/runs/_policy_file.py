"""A calibrated policy: its file, and the reasoner that uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from math import exp
from pathlib import Path
from typing import Any, Literal, Self

from prism.files import write_durably
from prism.files._source import Source
from prism.randomness._stream import total_of
from prism.statechart import BaseReasoner, Decision, PolicyReasoner, Question
from prism.statechart.reasoner._own_prompts import in_words
from prism.statechart.social import ACTS
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger

ARCHETYPE = "archetype"
RELEVANCE = "relevance"

_POOLED = "pooled over all groups"
_INSTEAD = "shares of the group, as its logit does not answer"
_UNIDENTIFIED = "not identified"


Basis = Literal["logit", "markov", "pooled"]
"""The basis of a probability: a logit, the frequencies of a group, or those of all groups."""

ModelKind = Literal["markov", "logit"]


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
        standard_errors: ``sqrt(p (1 - p) / n)``, as if all decisions were independent; None if not
            identified.
        clustered_errors: Standard errors clustered by agent (Liang and Zeger 1986); None if not
            identified, and for a single agent.
        agents: Number of agents that decided.
    """

    state: str
    event: str
    options: tuple[str, ...]
    group: str | None
    counts: tuple[int, ...]
    probabilities: tuple[float, ...] | None = None
    standard_errors: tuple[float, ...] | None = None
    clustered_errors: tuple[float, ...] | None = None
    agents: int = 0

    @property
    def n(self) -> int:
        """Number of decisions."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Logit:
    """A multinomial logit of one decision point (McFadden 1974).

    The utility of an option is its intercept, plus the coefficient of the agent's group, plus each
    covariate times its coefficient; that of the base is 0.

    Args:
        state: The state of the agent.
        event: The event that opens the question.
        options: The options, in the chart's order. Those that were never chosen have no
            coefficients, and probability 0.
        base: The option whose utility is 0, the one most often chosen.
        groups: The groups; the intercepts are those of the first.
        covariates: The other variables on which the choice depends.
        coefficients: By option: the intercept, one for each further group, one for each covariate.
        standard_errors: The standard errors of the coefficients, in the same form.
        covariance: Covariance matrix of all coefficients, option by option.
        n: Number of decisions.
        log_likelihood: The log-likelihood of the fit.
        clustered_errors: Standard errors by option, clustered by agent (Liang and Zeger 1986); none
            unless there are more agents than coefficients.
        agents: Number of agents that decided.
    """

    state: str
    event: str
    options: tuple[str, ...]
    base: str
    groups: tuple[str, ...]
    covariates: tuple[str, ...]
    coefficients: Mapping[str, tuple[float, ...]]
    standard_errors: Mapping[str, tuple[float, ...]]
    covariance: tuple[tuple[float, ...], ...]
    n: int
    log_likelihood: float
    clustered_errors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    agents: int = 0

    def probabilities(self, group: str, values: Sequence[float]) -> tuple[float, ...]:
        """Return the probability of every option.

        Args:
            group: One of the groups.
            values: The covariates.
        """
        place = self.groups.index(group)
        row = [1.0, *(float(place == number) for number in range(1, len(self.groups))), *values]
        utilities = {
            option: total_of(map(float.__mul__, row, weights))
            for option, weights in self.coefficients.items()
        }
        utilities[self.base] = 0.0
        highest = max(utilities.values())
        weights = {option: exp(utility - highest) for option, utility in utilities.items()}
        total = total_of(weights.values())

        return tuple(weights.get(option, 0.0) / total for option in self.options)


@dataclass(frozen=True, slots=True)
class RatioTest:
    """A likelihood-ratio test of two nested models (Wilks 1938).

    Args:
        state: The state in which it is decided; None for all points of decision together.
        event: The event that opens the question; None for all decision points.
        options: The options; none for all decision points.
        null: The smaller model.
        alternative: The larger one.
        statistic: Twice the difference of their log-likelihoods.
        df: Difference of their numbers of parameters.
        p: Upper tail of chi-square.
        least_expected: The smallest count that the smaller model expects in any cell. Below 5, the
            approximation by chi-square is poor (Cochran 1954).
    """

    state: str | None
    event: str | None
    options: tuple[str, ...]
    null: str
    alternative: str
    statistic: float
    df: int
    p: float
    least_expected: float | None = None


@dataclass(frozen=True, slots=True)
class Unidentified:
    """Something that the decisions do not identify.

    Args:
        what: ``state``, ``group``, ``option``, ``cell``, ``covariate`` or ``logit``.
        reason: Why it is not identified.
        state: The state in which it would be decided.
        event: The event that opens the question.
        group: The group of agents.
        name: The option or covariate.
        n: Number of decisions.
        upper: For an option that was offered but never chosen, the upper end of the exact 95 %
            interval of its probability (Clopper and Pearson 1934, one-sided).
    """

    what: Literal["state", "group", "option", "cell", "covariate", "logit"]
    reason: str
    state: str | None = None
    event: str | None = None
    group: str | None = None
    name: str | None = None
    n: int = 0
    upper: float | None = None


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a policy to one question.

    Args:
        probabilities: Probability of every option, in the options' order.
        basis: Their basis.
        is_instead: Whether they replace a logit that lacks the agent's group or a covariate.
    """

    probabilities: tuple[float, ...]
    basis: Basis
    is_instead: bool = False


_Point = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True)
class Policy:
    """Probabilities of decisions, estimated from those of runs; see `prism.science.calibrate`.

    A question is looked up by state, event and options. A policy of kind ``logit`` answers by its
    logit. A policy of the other kind, or without an identified logit for the agent's group, answers
    by the shares of the group, or if these are not identified, by those of all groups together. If
    nothing is identified, the policy has no answer. A run then uses the built-in policy, and logs
    the decision as a fallback.

    Args:
        model: ``markov`` or ``logit``.
        by: How to group agents: by ``archetype``, or by an attribute.
        least: Fewest decisions that identify a cell.
        cells: The shares, by group and for all groups together.
        logits: The logits.
        tests: The likelihood-ratio tests.
        unidentified: What could not be identified.
        sources: The runs.
    """

    model: ModelKind
    by: str
    least: int
    cells: tuple[Cell, ...]
    logits: tuple[Logit, ...] = ()
    tests: tuple[RatioTest, ...] = ()
    unidentified: tuple[Unidentified, ...] = ()
    sources: tuple[PolicySource, ...] = ()
    _cells: dict[tuple[_Point, str | None], Cell] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _logits: dict[_Point, Logit] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Index the cells and logits."""
        for cell in self.cells:
            self._cells[(cell.state, cell.event, cell.options), cell.group] = cell
        for logit in self.logits:
            self._logits[logit.state, logit.event, logit.options] = logit

    @property
    def covariates(self) -> tuple[str, ...]:
        """The covariates of its logits."""
        return tuple(dict.fromkeys(name for each in self.logits for name in each.covariates))

    def look_up(
        self,
        state: str,
        event: str,
        options: Sequence[str],
        group: str,
        values: Mapping[str, float | None],
    ) -> Answer | None:
        """Return the probabilities of the options.

        Args:
            state: The state of the agent.
            event: The event that opens the question.
            options: The options, in their order.
            group: The agent's group.
            values: The covariates by name; None if unknown.

        Returns:
            None if they are not identified.
        """
        point = state, event, tuple(options)
        logit = self._logits.get(point)
        if logit is not None and group in logit.groups:
            known = [values.get(name) for name in logit.covariates]
            numbers = [float(value) for value in known if value is not None]
            if len(numbers) == len(known):
                return Answer(logit.probabilities(group, numbers), "logit")

        bases: tuple[tuple[str | None, Basis], ...] = ((group, "markov"), (None, "pooled"))
        for key, basis in bases:
            cell = self._cells.get((point, key))
            if cell is not None and cell.probabilities is not None:
                return Answer(cell.probabilities, basis, is_instead=logit is not None)

        return None

    @property
    def knows_acts(self) -> bool:
        """Whether it was fitted to decisions in which a reply or a reshare could be chosen."""
        offered = chain(
            (each.options for each in self.cells), (each.options for each in self.logits)
        )
        return any(not ACTS.isdisjoint(options) for options in offered)

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
        lists = ("cells", "logits", "tests", "unidentified", "sources")
        return {
            "format": "prism.policy",
            "version": 1,
            "model": self.model,
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

        document = read_policy(source, cls)
        kinds = {
            "cells": Cell,
            "logits": Logit,
            "tests": RatioTest,
            "unidentified": Unidentified,
            "sources": PolicySource,
        }
        made: Any = {
            name: tuple(kind(**dict(each)) for each in getattr(document, name))
            for name, kind in kinds.items()
        }

        return cls(document.model, document.by, document.least, **made)

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
    """Return the group of an agent, as in the log of a run."""
    value = _found(agent, by)
    return in_words(getattr(value, "name", value) if by == ARCHETYPE else value)


def covariate_of(question: Question, name: str) -> float | None:
    """Return a covariate of a question; None if it is unknown or not a number."""
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
