"""A router for the questions and texts of a run's agents.

An earlier answer takes precedence, such as one in the log of a run that was stopped or is repeated.
Otherwise, the part that answers for the agent is asked.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, overload

from prism.errors import BudgetSpentError, FieldValueError, ReasonerError, TooManyFallbacksError
from prism.reasoner._order import Places
from prism.reasoner._questions import BaseReasoner, Decision, Question
from prism.reasoner._spending import Budget
from prism.reasoner._texts import BaseWriter, Effect, TextCall, Written
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger

Choose = Callable[[Any], str]
"""Returns the name of the part for an agent or an agent's id, always the same."""

_FIRST = 20
"""Number of first decisions of which at least one has to be answered."""

WINDOW = 200
"""Number of latest decisions that are checked for too many fallbacks."""


class Journal(Protocol):
    """Answers that need not be requested, such as those of a run that was stopped."""

    def answer_to(
        self, asked: Question | TextCall, prompt_hash: Callable[[], str | None]
    ) -> Decision | Written | None:
        """Return the answer to a question or a text call, if known.

        Args:
            asked: The question or the text call.
            prompt_hash: Returns the hash of its prompt; None if it has none.
        """


class CostsByModel:
    """The cost of a run's decisions and texts by model."""

    def __init__(self) -> None:
        self._costs: dict[str, Counter[str]] = {}

    def add(self, answer: Decision | Written) -> None:
        """Add the cost of one decision or text, if a model was asked."""
        cost = answer.cost
        if cost is None or cost.model is None:
            return

        new = Counter(answers=0, calls=0, input_tokens=0, output_tokens=0)
        costs = self._costs.setdefault(cost.model, new)
        # a useless reply is not an answer, but costs
        costs["answers"] += answer.source not in ("fallback", "failed")
        costs["calls"] += cost.attempts
        costs["input_tokens"] += cost.input_tokens or 0
        costs["output_tokens"] += cost.output_tokens or 0

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return the costs as plain data, by the models' names."""
        return {model: dict(self._costs[model]) for model in sorted(self._costs)}


class Router(BaseReasoner, BaseWriter):
    """Sends each question, or each text call, to the part that answers for its agent.

    ::

        budget = Budget(max_calls=10_000)
        small, large = Model("llama3.2"), Model("llama3.3", temperature=0.7)
        reasoner = Router(
            {"buyers": Reasoner(small, budget=budget), "sellers": Reasoner(large, budget=budget)},
            lambda agent: "sellers" if isinstance(agent, Seller) else "buyers",
        )

    All parts are asked at the same time. Each model has its own limit of questions to a server.

    Args:
        parts: Reasoners, or writers for texts, by name. Those that ask a model share one `Budget`.
        choose: Returns the name of the part that answers for an agent, always the same. None if the
            first part answers for all.
        stop_at: The share of fallbacks among the last 200 decisions, above 0 and up to 1, that ends
            the run; None for never.
        counts_budget: Whether fallbacks because of a spent budget count.
        logger: A structlog logger for decisions and texts.

    Attributes:
        parts: The parts by name.
        concurrency: Number of simultaneous questions that are worthwhile.
        budget: The shared budget, or None.
        costs: The cost of the answers so far, by model.
        places: How often a model chose each place in its list of options.
        stop_at: The share of fallbacks that ends the run; None for never.
        journal: Answers that need not be requested, or None.

    Raises:
        FieldValueError: If there are no parts, or they have different budgets.
    """

    def __init__(
        self,
        parts: Mapping[str, BaseReasoner] | Mapping[str, BaseWriter],
        choose: Choose | None = None,
        *,
        stop_at: float | None = None,
        counts_budget: bool = True,
        logger: EventLogger | None = None,
    ) -> None:
        if not parts:
            raise FieldValueError("there must be at least one reasoner, got none")

        super().__init__(logger)
        self.parts: dict[str, Any] = dict(parts)
        self.concurrency: int = sum(part.concurrency for part in self.parts.values())
        self.budget: Budget | None = _shared_budget(self.parts)
        self.costs: CostsByModel = CostsByModel()
        self.places: Places = Places()
        self.stop_at: float | None = stop_at
        self.journal: Journal | None = None
        self._choose = choose
        self._switched: str | None = None
        self._fallbacks = None if stop_at is None else _Fallbacks(stop_at, counts_budget)

    # Parts

    def name_for(self, agent: Any) -> str:
        """Return the name of the part that answers for an agent, or for an agent's id.

        Raises:
            ReasonerError: If the agent is assigned to an unknown reasoner.
        """
        if self._switched is not None:
            return self._switched
        if self._choose is None:
            return next(iter(self.parts))

        name = self._choose(agent)
        if name in self.parts:
            return name

        raise ReasonerError(
            f"agent {_id_of(agent)!r} was given to {name!r}, which is not one of "
            f"{', '.join(self.parts)}"
        )

    def switch(self, name: str) -> None:
        """Let one part answer for all agents from now on."""
        self._switched = name

    def _part_for(self, agent: Any) -> Any:
        return self.parts[self.name_for(agent)]

    # Answers

    @overload
    async def answer(self, asked: Sequence[Question], /) -> list[Decision]: ...

    @overload
    async def answer(self, asked: Sequence[TextCall], /) -> list[Written]: ...

    async def answer(self, asked: Sequence[Any], /) -> list[Any]:
        """Answer everything without an earlier answer concurrently; return the answers in order.

        Raises:
            ReasonerError: If an agent is assigned to an unknown reasoner.
        """
        answers = self._earlier_answers(asked)
        shares: dict[str, list[int]] = {}
        for place, each in enumerate(asked):
            if place not in answers:
                shares.setdefault(self.name_for(each.agent), []).append(place)

        asking = [
            self.parts[name].answer([asked[place] for place in places])
            for name, places in shares.items()
        ]
        # usually there is only one part, which needs no separate task
        found = [await asking[0]] if len(asking) == 1 else await all_of(asking)
        new = {
            place: answer
            for places, given in zip(shares.values(), found, strict=True)
            for place, answer in zip(places, given, strict=True)
        }

        return [self._counted(each, answers, new, place) for place, each in enumerate(asked)]

    def _counted(
        self, asked: Any, earlier: Mapping[int, Any], new: Mapping[int, Any], place: int
    ) -> Any:
        """Return an answer after counting its cost and, if it is new, whether it fell back."""
        answer = new[place] if place in new else earlier[place]
        self.costs.add(answer)
        if isinstance(asked, Question):
            options = [*map(state_text, asked.options)]
            chosen = state_text(answer.chosen)
            self.places.add(options, chosen, answer.rotation, answer.source)
        if self._fallbacks is not None and place in new:
            self._fallbacks.count(answer)

        return answer

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
        return await next(iter(self.parts.values())).once(key, effect, interrupted)

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
        self._require_answers()

        return decisions

    def _require_answers(self) -> None:
        """End the run if too many of the last decisions fell back, here or in a router of a part.

        Raises:
            TooManyFallbacksError: If too many did.
        """
        if self._fallbacks is not None:
            self._fallbacks.check()
        for part in self.parts.values():
            if isinstance(part, Router):
                part._require_answers()

    def _earlier_answers(self, asked: Sequence[Any]) -> dict[int, Any]:
        """Return the answers of the journal by index."""
        if self.journal is None:
            return {}

        found: dict[int, Any] = {}
        for place, each in enumerate(asked):
            answer = self.journal.answer_to(each, partial(self._hash_of, each))
            if answer is not None:
                found[place] = answer
                self.skip(each, answer)

        return found

    def _hash_of(self, asked: Question | TextCall) -> str | None:
        return asked.prompt_hash if isinstance(asked, TextCall) else self.prompt_hash(asked)

    # Other methods of reasoners

    def prompt_hash(self, question: Question) -> str | None:
        """Return the beginning of the SHA-256 of a question's prompt; None if it has none."""
        found: str | None = self._part_for(question.agent).prompt_hash(question)
        return found

    @property
    def memory(self) -> Any:
        """The memory of agents in prompts, if one of the parts includes it."""
        memories = (getattr(part, "memory", None) for part in self.parts.values())
        return next((each for each in memories if each is not None), None)

    @property
    def chooses_acts(self) -> bool:
        """Whether any part makes agents of the feed choose among all acts."""
        return any(part.chooses_acts for part in self.parts.values())

    def chooses_acts_for(self, agent: Any) -> bool:
        """Return whether an agent chooses among all acts in its next decision."""
        return bool(self._part_for(agent).chooses_acts_for(agent))

    def skip(self, asked: Any, answer: Any = None) -> None:
        """Let a part know of a question or text call that was answered elsewhere."""
        self._part_for(asked.agent).skip(asked, answer)

    async def close(self) -> None:
        """Close the connections of all parts."""
        for part in self.parts.values():
            close = getattr(part, "close", None)
            if close is not None:
                await close()


class _Fallbacks:
    """Counts the fallbacks among the last decisions, and ends a run with too many."""

    def __init__(self, stop_at: float, counts_budget: bool) -> None:
        self._stop_at = stop_at
        self._counts_budget = counts_budget
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._has_answered = False
        self._problem: str | None = None

    def count(self, decision: Decision) -> None:
        """Count a decision; the first one above the limit provides the reason for the end."""
        fell_back, reason = decision.source == "fallback", decision.reason or ""
        is_by_budget = fell_back and reason.startswith(BudgetSpentError.__name__)
        if self._problem is not None or (is_by_budget and not self._counts_budget):
            return

        self._last.append(fell_back)
        count, size = sum(self._last), len(self._last)
        if not fell_back or is_by_budget:
            self._has_answered = True
        # a model that never answers at all is found out sooner
        never = size == _FIRST and not self._has_answered
        if never or (size == WINDOW and count >= self._stop_at * WINDOW):
            why = f"; the last one: {reason}" if reason else ""
            self._problem = (
                f"stopped, as {count} of the last {size} decisions fell back, and "
                f"{self._stop_at:.4g} of them is the limit{why}"
            )

    def check(self) -> None:
        """Raise the error that ends the run, if there were too many."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise TooManyFallbacksError(problem)


def costs_by_model(*askers: Any) -> dict[str, dict[str, int]]:
    """Return the cost of a run's answers by the names of models.

    Args:
        askers: Its reasoner and its writer. Only a `Router` or a replay counts costs.
    """
    summed: dict[str, Counter[str]] = {}
    for asker in askers:
        costs = getattr(asker, "costs", None)
        for model, counts in ({} if costs is None else costs.to_dict()).items():
            summed.setdefault(model, Counter()).update(counts)

    return {model: dict(summed[model]) for model in sorted(summed)}


def _shared_budget(parts: Mapping[str, Any]) -> Budget | None:
    budgets = [budget for part in parts.values() if (budget := getattr(part, "budget", None))]
    if any(budget is not budgets[0] for budget in budgets):
        raise FieldValueError(
            f"{', '.join(parts)} must share one budget, as a run has only one: make a Budget, "
            "and pass it to each of them as budget="
        )

    return budgets[0] if budgets else None


def _id_of(agent: Any) -> str:
    return agent if isinstance(agent, str) else agent_name(agent)


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
