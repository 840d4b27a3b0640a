"""The decisions of a run: who makes them, and whether a model's are of use."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import comb, erfc, sqrt
from typing import Any

from prism.errors import BudgetSpentError, TooManyFallbacksError
from prism.reasoner.questions import BaseReasoner, Decision, Question
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger

_IN_A_ROW = 20
"""Fallbacks in a row that end a run, such as those of a server that has died."""

WINDOW = 200
"""Number of latest decisions that are checked for too many fallbacks."""


class Parts:
    """Several reasoners, or writers, of which one answers at a time.

    Args:
        parts: The parts by name; the first answers until another is chosen.

    Attributes:
        parts: The parts by name.
        concurrency: Number of simultaneous requests that are worthwhile.
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.parts: dict[str, Any] = dict(parts)
        self.concurrency: int = max(part.concurrency for part in self.parts.values())
        self._name = next(iter(self.parts))

    @property
    def part(self) -> Any:
        """The part that answers at present."""
        return self.parts[self._name]

    def switch(self, name: str) -> None:
        """Let another part answer from now on."""
        self._name = name

    def skip(self, request: Any, answer: Any = None) -> None:
        """Let the part know of a request that was answered elsewhere."""
        self.part.skip(request, answer)


class Router(Parts, BaseReasoner):
    """Sends the questions of a run to a part: the first, until it is switched.

    It counts the fallbacks, and how often a model chose each position in its list of options. If a
    model gave probabilities, the likeliest option counts as its choice. Only lists whose order was
    drawn count, since a fixed order does not separate a position from its option.

    Args:
        parts: Reasoners by name. Those that ask a model share one `Budget`.
        stop_at: The share of fallbacks among the last 200 decisions, above 0 and up to 1, that ends
            the run; None for never.
        counts_budget: Whether fallbacks because of a spent budget count.
        logger: A structlog logger for decisions.

    Attributes:
        parts: The parts by name.
        concurrency: Number of simultaneous questions that are worthwhile.
        chooses_acts: Whether agents of the feed choose among all acts, now or after a switch.
        memory: How many things an agent remembers in prompts: the most of any part.
        positions: How often a model chose each position, by the number of options.
        stop_at: The share of fallbacks that ends the run; None for never.
    """

    def __init__(
        self,
        parts: Mapping[str, Any],
        *,
        stop_at: float | None = None,
        counts_budget: bool = True,
        logger: EventLogger | None = None,
    ) -> None:
        BaseReasoner.__init__(self, logger)
        Parts.__init__(self, parts)
        self.chooses_acts: bool = any(part.chooses_acts for part in self.parts.values())
        self.memory: int = max(getattr(part, "memory", 0) for part in self.parts.values())
        self.positions: dict[str, list[int]] = {}
        self.stop_at: float | None = stop_at
        self._fallbacks = None if stop_at is None else _Fallbacks(stop_at, counts_budget)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Answer questions concurrently; return the decisions in their order."""
        decisions: list[Decision] = await self.part.answer(questions)
        for question, decision in zip(questions, decisions, strict=True):
            self._count_position(question, decision)
            if self._fallbacks is not None:
                self._fallbacks.count(decision)
        return decisions

    def _count_position(self, question: Question, decision: Decision) -> None:
        options = [*map(state_text, question.options)]
        chances = decision.probabilities or {state_text(decision.chosen): 1.0}
        likeliest = max(chances, key=chances.__getitem__)
        if decision.source == "model" and decision.rotation is not None and likeliest in options:
            size = len(options)
            counts = self.positions.setdefault(str(size), [0] * size)
            counts[(options.index(likeliest) - decision.rotation) % size] += 1

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions at once, and log the decisions in the same order.

        Args:
            questions: The questions; the answers come in the same order.
            logger: Logger for the decisions; by default this router's own.

        Raises:
            TooManyFallbacksError: If too many of the last decisions, including these, fell back.
        """
        decisions = await super().decide_many(questions, logger=logger)
        if self._fallbacks is not None:
            self._fallbacks.check()
        return decisions


class _Fallbacks:
    """Counts the fallbacks among the last decisions, and ends a run with too many."""

    def __init__(self, stop_at: float, counts_budget: bool) -> None:
        self._stop_at, self._counts_budget = stop_at, counts_budget
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._in_a_row = 0
        self._problem: str | None = None

    def count(self, decision: Decision) -> None:
        """Count a decision; the first one above the limit provides the reason for the end."""
        fell_back, reason = decision.source == "fallback", decision.reason or ""
        is_by_budget = decision.failure == BudgetSpentError.__name__
        if is_by_budget and not self._counts_budget:
            return

        self._last.append(fell_back)
        self._in_a_row = self._in_a_row + 1 if fell_back and not is_by_budget else 0
        is_above = len(self._last) == WINDOW and sum(self._last) >= self._stop_at * WINDOW
        if self._problem is None and (is_above or self._in_a_row == _IN_A_ROW):
            many = f"{_IN_A_ROW} decisions in a row"
            if is_above:
                many = f"{sum(self._last)} of the last {WINDOW} decisions"
            self._problem = (
                f"stopped, as {many} fell back, with "
                f"stop_at_fallbacks = {self._stop_at:.4g}; the last one: {reason}"
            )

    def check(self) -> None:
        """Raise the error that ends the run, if there were too many."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise TooManyFallbacksError(problem)


# Whether the position of an option in its list explains what a model chose

_LEAST_EXPECTED = 5
"""Expected choices of each position, from which a chi-square test is meant to be used."""

_SIGNIFICANT = 0.001


def position_effect(positions: Mapping[str, Sequence[int]]) -> str | None:
    """Return in words how many choices the position in the list explains; None if by chance.

    If the order of the options is drawn, and a choice depends on the options alone, each position
    is equally likely. That is tested at p < .001: by Pearson's chi-square, over all numbers of
    options together, where each position is expected five times; elsewhere by the exact binomial
    probability of the position that was chosen most.

    Args:
        positions: How often each position was chosen, by the number of options; see `Router`.
    """
    lists = [counts for counts in positions.values() if len(counts) > 1 and any(counts)]
    many = [counts for counts in lists if sum(counts) >= _LEAST_EXPECTED * len(counts)]
    few = [counts for counts in lists if counts not in many]
    explained: list[Sequence[int]] = []
    if many and _chance_of_all(many) < _SIGNIFICANT:
        explained += many
    explained += [counts for counts in few if _chance_of_most(counts) * len(few) < _SIGNIFICANT]
    if not explained:
        return None
    most, total = sum(map(max, explained)), sum(map(sum, explained))
    return f"the position in the list explains {most:,} of {total:,} choices (p < .001)"


def _chance_of_all(lists: Sequence[Sequence[int]]) -> float:
    """Return the probability of Pearson's chi-square, as Wilson and Hilferty (1931) have it."""
    statistic, freedom = 0.0, sum(len(counts) - 1 for counts in lists)
    for counts in lists:
        expected = sum(counts) / len(counts)
        statistic += sum((count - expected) ** 2 / expected for count in counts)
    spread = 2 / (9 * freedom)
    deviation = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / sqrt(spread)
    return erfc(deviation / sqrt(2)) / 2


def _chance_of_most(counts: Sequence[int]) -> float:
    """Return the most probability that any position is chosen as often as the one chosen most."""
    size, total = len(counts), sum(counts)
    times = range(max(counts), total + 1)
    cases: int = sum(comb(total, each) * (size - 1) ** (total - each) for each in times)
    return float(size * cases / size**total)
