"""A router for the questions and texts of a run's agents, and what it counts.

The part that answers at present is asked. Places in the list of options and fallbacks are counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

from prism.errors import BudgetSpentError, TooManyFallbacksError
from prism.reasoner._questions import BaseReasoner, Decision, Question
from prism.reasoner._texts import BaseWriter, Effect
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger

_FIRST = 20
"""Number of first decisions of which at least one has to be answered."""

WINDOW = 200
"""Number of latest decisions that are checked for too many fallbacks."""

_LEAST_EXPECTED = 5
"""Expected choices of each place, from which a chi-square test is meant to be used."""

_SIGNIFICANT = 0.001


class Router(BaseReasoner, BaseWriter):
    """Sends the questions, or the text calls, of a run to a part: the first, until it is switched.

    Args:
        parts: Reasoners, or writers for texts, by name. Those that ask a model share one `Budget`.
        stop_at: The share of fallbacks among the last 200 decisions, above 0 and up to 1, that ends
            the run; None for never.
        counts_budget: Whether fallbacks because of a spent budget count.
        logger: A structlog logger for decisions and texts.

    Attributes:
        parts: The parts by name.
        concurrency: Number of simultaneous questions that are worthwhile.
        places: How often a model chose each place in its list of options.
        stop_at: The share of fallbacks that ends the run; None for never.
    """

    def __init__(
        self,
        parts: Mapping[str, BaseReasoner] | Mapping[str, BaseWriter],
        *,
        stop_at: float | None = None,
        counts_budget: bool = True,
        logger: EventLogger | None = None,
    ) -> None:
        super().__init__(logger)
        self.parts: dict[str, Any] = dict(parts)
        self.concurrency: int = max(part.concurrency for part in self.parts.values())
        self.places: Places = Places()
        self.stop_at: float | None = stop_at
        self._name = next(iter(self.parts))
        self._fallbacks = None if stop_at is None else _Fallbacks(stop_at, counts_budget)

    @property
    def part(self) -> Any:
        """The part that answers at present."""
        return self.parts[self._name]

    def switch(self, name: str) -> None:
        """Let another part answer from now on."""
        self._name = name

    # Answers

    async def answer(self, requests: Sequence[Any], /) -> list[Any]:
        """Answer everything concurrently; return the answers in order."""
        answers: list[Any] = await self.part.answer(requests)
        for each, answer in zip(requests, answers, strict=True):
            if isinstance(each, Question):
                self.places.add(each, answer)
            if self._fallbacks is not None:
                self._fallbacks.count(answer)
        return answers

    @property
    def sends_schemas(self) -> bool:
        """Whether the schemas of texts go to all servers."""
        return all(getattr(part, "sends_schemas", False) for part in self.parts.values())

    @property
    def is_repeating(self) -> bool:
        """Whether answers come from a journal."""
        return any(getattr(part, "is_repeating", False) for part in self.parts.values())

    async def window(self) -> int | None:
        """Return the smallest window of any part's servers; None if unknown."""
        windows = [await part.window() for part in self.parts.values()]
        return min((each for each in windows if each is not None), default=None)

    async def once(self, key: str, effect: Effect, interrupted: Any = None) -> Any:
        """Carry out an effect on the outside world; all parts have the same journal."""
        return await self.part.once(key, effect, interrupted)

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

    # Other methods of reasoners

    @property
    def memory(self) -> int:
        """How many things an agent remembers in prompts, with the part that has most."""
        return max(getattr(part, "memory", 0) for part in self.parts.values())

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed choose among all acts, now or after a switch."""
        return any(part.chooses_acts for part in self.parts.values())

    def skip(self, request: Any, answer: Any = None) -> None:
        """Let the part know of a question or text call that was answered elsewhere."""
        self.part.skip(request, answer)

    async def close(self) -> None:
        """Close the connections of all parts."""
        for part in self.parts.values():
            close = getattr(part, "close", None)
            if close is not None:
                await close()


class Places:
    """How often a model chose each place in its list of options, by the number of options.

    If it gave probabilities, the likeliest option counts as its choice. Only lists whose order was
    drawn count, since in a fixed order a place cannot be told from its option.
    """

    def __init__(self) -> None:
        self._counts: dict[int, Counter[int]] = {}

    def add(self, question: Question, answer: Decision) -> None:
        """Count the place of a choice, if a model made it."""
        options = [*map(state_text, question.options)]
        chances = answer.probabilities or {state_text(answer.chosen): 1.0}
        likeliest = max(chances, key=chances.__getitem__)
        if answer.source == "model" and answer.rotation is not None and likeliest in options:
            size = len(options)
            position = (options.index(likeliest) - answer.rotation) % size
            self._counts.setdefault(size, Counter())[position] += 1

    def to_dict(self) -> dict[str, list[int]]:
        """Return the choices of each place, by the number of options, as plain data."""
        return {
            str(size): [counts[position] for position in range(size)]
            for size, counts in sorted(self._counts.items())
        }


def place_effect(places: Mapping[str, Sequence[int]]) -> str | None:
    """Return in words how many choices the place in the list explains; None if by chance.

    If the order of the options is drawn, and a choice depends on the options alone, each place is
    equally likely. That is tested at p < .001: by Pearson's chi-square, over all numbers of options
    together, where each place is expected five times; and by the exact binomial probability of the
    place that was chosen most, for all places, where it is not.

    Args:
        places: What `Places.to_dict` returns.
    """
    lists = [counts for counts in places.values() if len(counts) > 1 and any(counts)]
    many = [counts for counts in lists if sum(counts) >= _LEAST_EXPECTED * len(counts)]
    few = [counts for counts in lists if counts not in many]
    explained: list[Sequence[int]] = []
    if many and _chance_of_all(many) < _SIGNIFICANT:
        explained += many
    explained += [counts for counts in few if _chance_of_most(counts) * len(few) < _SIGNIFICANT]
    if not explained:
        return None
    most, total = sum(map(max, explained)), sum(map(sum, explained))
    return f"the place in the list explains {most:,} of {total:,} choices (p < .001)"


def _chance_of_all(lists: Sequence[Sequence[int]]) -> float:
    """Return the probability of Pearson's chi-square, as Wilson and Hilferty (1931) have it."""
    statistic, freedom = 0.0, sum(len(counts) - 1 for counts in lists)
    for counts in lists:
        expected = sum(counts) / len(counts)
        statistic += sum((count - expected) ** 2 / expected for count in counts)
    spread = 2 / (9 * freedom)
    return NormalDist().cdf(-((statistic / freedom) ** (1 / 3) - (1 - spread)) / sqrt(spread))


def _chance_of_most(counts: Sequence[int]) -> float:
    """Return the most probability that any place is chosen as often as the one chosen most."""
    size, total = len(counts), sum(counts)
    times = range(max(counts), total + 1)
    ways: int = sum(comb(total, each) * (size - 1) ** (total - each) for each in times)
    return float(size * ways / size**total)


class _Fallbacks:
    """Counts the fallbacks among the last decisions, and ends a run with too many."""

    def __init__(self, stop_at: float, counts_budget: bool) -> None:
        self._stop_at, self._counts_budget = stop_at, counts_budget
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._has_answered = False
        self._problem: str | None = None

    def count(self, decision: Decision) -> None:
        """Count a decision; the first one above the limit provides the reason for the end."""
        fell_back, reason = decision.source == "fallback", decision.reason or ""
        is_by_budget = decision.failure == BudgetSpentError.__name__
        if is_by_budget and not self._counts_budget:
            return

        self._last.append(fell_back)
        self._has_answered |= not fell_back or is_by_budget
        count, size = sum(self._last), len(self._last)
        # a model that never answers at all is found out sooner
        never = size == _FIRST and not self._has_answered
        if self._problem is None and (
            never or (size == WINDOW and count >= self._stop_at * WINDOW)
        ):
            self._problem = (
                f"stopped, as {count} of the last {size} decisions fell back, and "
                f"{self._stop_at:.4g} of them is the limit; the last one: {reason}"
            )

    def check(self) -> None:
        """Raise the error that ends the run, if there were too many."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise TooManyFallbacksError(problem)


async def all_of(awaitables: Iterable[Awaitable[Any]]) -> list[Any]:
    """Await several things at once; if one raises, the others are cancelled and awaited."""
    # costs a third of importing the engine, and is loaded already where this runs
    import asyncio

    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()

        await asyncio.gather(*tasks, return_exceptions=True)
