"""Several reasoners or writers as one: each agent has its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from prism.errors import FieldValueError, ReasonerError
from prism.statechart._identity import name_or_address
from prism.statechart.reasoner._cost import Budget, Cost
from prism.statechart.reasoner._questions import BaseReasoner, Decision, Question
from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
from prism.telemetry._loggers import EventLogger

Choose = Callable[[Any], str]
"""Returns for an agent the name of who answers for it, always the same."""

PartT = TypeVar("PartT", BaseReasoner, BaseWriter)
ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")

_TOLD = ("model", "temperature", "think")
"""What a run tells of a client, besides its hosts."""


class CostsByModel:
    """What the decisions and texts of a run have cost, by model."""

    def __init__(self) -> None:
        self._costs: dict[str, Counter[str]] = {}

    def add(self, cost: Cost | None) -> None:
        """Count what one decision or text has cost, if a model was asked."""
        if cost is not None:
            self._add(cost.model, cost.attempts, cost.input_tokens, cost.output_tokens)

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Count what the event of a decision or text says of its cost, if it does."""
        if "attempts" in event:
            costs = (event[name] for name in ("attempts", "input_tokens", "output_tokens"))
            self._add(event["model"], *costs)

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return the costs as plain data, by the models' names."""
        return {model: dict(self._costs[model]) for model in sorted(self._costs)}

    def _add(self, model: str | None, calls: int, read: int | None, written: int | None) -> None:
        if model is None:
            return

        costs = self._costs.setdefault(
            model, Counter(answers=0, calls=0, input_tokens=0, output_tokens=0)
        )
        costs["answers"] += 1
        costs["calls"] += calls
        costs["input_tokens"] += read or 0
        costs["output_tokens"] += written or 0


class _ByAgent(Generic[PartT]):
    """What reasoners and writers by agent have in common."""

    asked_for: str

    def __init__(
        self,
        parts: Mapping[str, PartT],
        choose: Choose,
        on_start: Callable[[Mapping[str, int]], object] | None,
    ) -> None:
        if not parts:
            raise FieldValueError("there must be at least one to ask, got none")

        self.parts: dict[str, PartT] = dict(parts)
        self.concurrency: int = sum(part.concurrency for part in self.parts.values())
        self.budget: Budget | None = _shared_budget(self.parts)
        self.costs: CostsByModel = CostsByModel()
        self.choose: Choose = choose
        self._on_start = on_start
        self._is_checked = False

    def remember(self, event: Mapping[str, Any]) -> None:
        """Count the costs of a decision or text from before an interruption.

        Args:
            event: Its event.
        """
        self.costs.add_event(event)

    def check_agents(self, agents: Iterable[Any]) -> None:
        """Call ``on_start`` before the run begins, such as before models are loaded.

        Args:
            agents: All agents of the run.
        """
        self._check(Counter(map(self._name_for, agents)))

    def models_for(self, agents: Iterable[Any]) -> list[dict[str, Any]]:
        """Return who is asked for which of a run's agents, as the log tells it.

        Args:
            agents: All agents of the run.
        """
        counts = Counter(map(self._name_for, agents))
        self._check(counts)
        self._is_checked = False

        return [
            {"for": name, "agents": counts[name], "asked": self.asked_for, **_description(part)}
            for name, part in self.parts.items()
        ]

    async def close(self) -> None:
        """Close the connections of all that have any."""
        for part in self.parts.values():
            close = getattr(part, "close", None)
            if close is not None:
                await close()

    def _check(self, counts: Mapping[str, int]) -> None:
        if self._on_start is not None and not self._is_checked:
            self._on_start(counts)

        self._is_checked = True

    async def _answers(
        self,
        items: Sequence[ItemT],
        agent_of: Callable[[ItemT], Any],
        ask: Callable[[PartT, list[ItemT]], Awaitable[list[AnswerT]]],
    ) -> list[AnswerT]:
        """Give each item to its agent's part, all parts at once; return the answers in order."""
        shares: dict[str, list[int]] = {}
        for place, item in enumerate(items):
            shares.setdefault(self._name_for(agent_of(item)), []).append(place)

        if len(shares) == 1:
            return await ask(self.parts[next(iter(shares))], list(items))

        found = await _all_of(
            ask(self.parts[name], [items[place] for place in places])
            for name, places in shares.items()
        )
        answers = {
            place: answer
            for places, given in zip(shares.values(), found, strict=True)
            for place, answer in zip(places, given, strict=True)
        }

        return [answers[place] for place in range(len(items))]

    def _name_for(self, agent: Any) -> str:
        name = self.choose(agent)
        if name in self.parts:
            return name

        raise ReasonerError(
            f"agent {name_or_address(agent)!r} was given to {name!r}, which is not one of "
            f"{', '.join(self.parts)}"
        )


class ReasonerByAgent(_ByAgent[BaseReasoner], BaseReasoner):
    """Hands each question to the reasoner of its agent, such as a model for its kind.

    ::

        budget, slots = Budget(max_calls=10_000), Slots()
        small = OllamaPool(["http://127.0.0.1:11434"], "llama3.2", slots=slots)
        large = OllamaPool(["http://127.0.0.1:11434"], "llama3.3", temperature=0.7, slots=slots)
        reasoner = ReasonerByAgent(
            {"buyers": Reasoner(small, budget=budget), "sellers": Reasoner(large, budget=budget)},
            lambda agent: "sellers" if isinstance(agent, Seller) else "buyers",
        )

    A run tells in its log who is asked for how many agents, and in the end what each model cost.

    Args:
        reasoners: Who decides, by name; those that ask a model share one `Budget`.
        choose: Returns for an agent the name of its reasoner, the same as long as it lives.
        on_start: Called when a run begins, with the number of its agents by name.
        logger: A structlog logger for the decisions.

    Attributes:
        parts: The reasoners by name.
        concurrency: How many questions it pays to have under way at once.
        budget: What may be spent by all together; None if nobody has a budget.
        choose: Who answers for an agent.
        costs: What the decisions have cost so far, by model.
        memory: What agents remember where one of the reasoners tells it; None if none does.

    Raises:
        FieldValueError: If there is no reasoner, or they have budgets of their own.
    """

    asked_for: str = "decisions"

    def __init__(
        self,
        reasoners: Mapping[str, BaseReasoner],
        choose: Choose,
        *,
        on_start: Callable[[Mapping[str, int]], object] | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        BaseReasoner.__init__(self, logger)
        _ByAgent.__init__(self, reasoners, choose, on_start)
        memories = (getattr(part, "memory", None) for part in self.parts.values())
        self.memory: Any = next((each for each in memories if each is not None), None)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Have each question answered by the reasoner of its agent, all at once.

        Raises:
            ReasonerError: If an agent is given to a reasoner that there is not.
        """
        decisions = await self._answers(
            questions, lambda question: question.agent, lambda part, share: part.answer(share)
        )
        for decision in decisions:
            self.costs.add(decision.cost)

        return decisions

    def prompt_hash(self, question: Question) -> str | None:
        """Return the beginning of the SHA-256 of a question's prompt; None if it has none."""
        return self.parts[self._name_for(question.agent)].prompt_hash(question)

    def skip(self, question: Question) -> None:
        """Draw what a question takes of random numbers, as somebody else has answered it."""
        self.parts[self._name_for(question.agent)].skip(question)


class WriterByAgent(_ByAgent[BaseWriter], BaseWriter):
    """Hands each text call to the writer of its agent, as `ReasonerByAgent` does with questions.

    Args:
        writers: Who writes, by name; those that ask a model share one `Budget`.
        choose: Returns for an agent, as `TextCall` has it, the name of its writer.
        on_start: Called when a run begins, with the number of its agents by name.
        logger: A structlog logger for the texts.

    Attributes:
        parts: The writers by name.
        concurrency: How many calls it pays to have under way at once.
        budget: What may be spent by all together; None if nobody has a budget.
        choose: Who answers for an agent.
        costs: What the texts have cost so far, by model.

    Raises:
        FieldValueError: If there is no writer, or they have budgets of their own.
    """

    asked_for: str = "texts"

    def __init__(
        self,
        writers: Mapping[str, BaseWriter],
        choose: Choose,
        *,
        on_start: Callable[[Mapping[str, int]], object] | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        BaseWriter.__init__(self, logger)
        _ByAgent.__init__(self, writers, choose, on_start)

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Have each text written by the writer of its agent, all at once.

        Raises:
            ReasonerError: If an agent is given to a writer that there is not.
        """
        texts = await self._answers(
            calls, lambda call: call.agent, lambda part, share: part.answer(share)
        )
        for written in texts:
            self.costs.add(written.cost)

        return texts


def models_told(agents: Iterable[Any], *askers: Any) -> dict[str, Any]:
    """Return what a run's first event says of its models: nothing unless agents have their own.

    Args:
        agents: All agents of the run.
        askers: Its reasoner and its writer, as far as it has them.
    """
    everybody = list(agents)
    told = [
        entry
        for asker in askers
        if (models_for := getattr(asker, "models_for", None)) is not None
        for entry in models_for(everybody)
    ]

    return {"models": told} if told else {}


def costs_told(*askers: Any) -> dict[str, Any]:
    """Return what a run's last event says of the costs by model: as `models_told` does."""
    costs = [each for asker in askers if (each := getattr(asker, "costs", None)) is not None]
    summed: dict[str, Counter[str]] = {}
    for each in costs:
        for model, counts in each.to_dict().items():
            summed.setdefault(model, Counter()).update(counts)

    return {"costs": {model: dict(summed[model]) for model in sorted(summed)}} if costs else {}


def _shared_budget(parts: Mapping[str, Any]) -> Budget | None:
    budgets = [budget for part in parts.values() if (budget := getattr(part, "budget", None))]
    if any(budget is not budgets[0] for budget in budgets):
        raise FieldValueError(
            f"{', '.join(parts)} must share one budget, as a run has one: make a Budget, and give "
            "it to each of them as budget="
        )

    return budgets[0] if budgets else None


def _description(part: Any) -> dict[str, Any]:
    """Return what is known of the model that a reasoner or writer asks; nothing if it asks none."""
    client = getattr(part, "client", None)
    told = {name: getattr(client, name, None) for name in _TOLD}
    hosts = getattr(client, "hosts", None)

    return {
        **{name: value for name, value in told.items() if isinstance(value, (str, int, float))},
        **({"hosts": list(hosts)} if isinstance(hosts, (list, tuple)) else {}),
    }


async def _all_of(awaitables: Iterable[Awaitable[AnswerT]]) -> list[AnswerT]:
    """Await several things at once; if one raises, the others are cancelled, and over."""
    # costs a third of importing the engine, and is loaded already where this runs
    import asyncio

    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()

        await asyncio.gather(*tasks, return_exceptions=True)
