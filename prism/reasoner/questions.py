"""A question to a reasoner, its answer, the base of all reasoners, and the router of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from prism.errors import BudgetSpentError, ReasonerError, TooManyFallbacksError
from prism.randomness import RandomStream, Taken
from prism.reasoner.requests import COST_KEYS, OPTIONAL_COST_KEYS, Cost, known_of
from prism.statechart import Definition
from prism.statechart.names import agent_name, declared_name
from prism.statechart.reporting import Options, announce
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger, is_heard, synchronous

_HASH_DIGITS = 16

QUESTION_KEYS = ("question_kind", "option_mass", "rotation", "rotations_apart", "sampling_seed")
"""What a decision of a model says about how it was asked."""

Kind = Literal["letter", "name"]
"""What a model is asked for: a letter, or the name of an option."""

Mode = Literal["auto", "chat"]
"""``chat`` asks for the name of an option, ``auto`` for probabilities if server and model give
them."""

Rotations = Literal["none", "drawn", "all"]
"""The order of options: that of the chart, a rotation of it, or all rotations, averaged."""

Source = Literal["model", "cache", "policy", "fallback"]
"""What chose an option."""

FAILURES = ("failed", "fallback")
"""The sources of decisions and texts that a model should have given."""


@dataclass(frozen=True)
class Question:
    """The question which of several enabled transitions an agent takes.

    Args:
        agent: The agent that is asked.
        state: The agent's state.
        trigger: The event that opened the question.
        options: The targets to choose from, distinct, in the chart's order.
        context: The event's context, such as the post being evaluated.
        weights: Relative probabilities of the options if no model decides, 0 or more. A missing
            option has 0.
        prompt: Describes the situation to a model, instead of state, event and context.
        chart: The chart's definition, if known.
        parameters: The parameters of the world, if it has any.
        recall: Takes a number, and returns at most that many of the last things that happened to
            the agent, oldest first. By default, these are the transitions in its ``state_history``.

    Raises:
        ReasonerError: (a ValueError) if there are no options.
    """

    agent: Any
    state: Any
    trigger: str
    options: tuple[Any, ...]
    context: Any = None
    weights: Mapping[Any, float] | None = None
    prompt: str | None = None
    chart: Definition[Any] | None = field(default=None, compare=False, repr=False)
    parameters: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    recall: Callable[[int], Sequence[str]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a question without options."""
        if not self.options:
            problem = f"was asked what to do on {self.trigger!r} with no options"
            cure = "ask only when chart.enabled_targets() is not empty"
            raise ReasonerError(f"agent {agent_name(self.agent)!r} {problem}: {cure}")


@dataclass(frozen=True)
class Decision:
    """An answer to a `Question`, and where it came from.

    Args:
        chosen: One of the question's options.
        source: What chose: a ``model``, a ``cache`` of one, the ``policy``, or the
            ``fallback`` if nothing did.
        reason: Why the fallback was taken, in words.
        probabilities: Probability of every option by its text, if known.
        cost: Its cost, if a model was asked.
        failure: The name of the exception by which the fallback was taken.
        decision_id: Its id in the journal of a kept run.
        prompt_hash: The beginning of the SHA-256 of the prompt, if there is one.
        question_kind: How the model was asked: for a ``letter`` or for the ``name`` of an option.
        option_mass: Probability of the letters of all options together, if the server gave
            log-probabilities. The rest belongs to other replies; if it is more than a half, the
            model was asked for a name.
        rotation: How many options were moved from the beginning of the list to its end in the
            prompt; None for the chart's order, or if unknown.
        sampling_seed: The number drawn for the question and added to the model's seed, if the model
            samples its answers.
        rotations_apart: The largest distance between the answers in two rotations of the options (0
            to 1, total variation), if the model was asked in all of them.
        prompt: The prompt, if a model was asked.
        reply: Its reply; None if there was none.
    """

    chosen: Any
    source: Source
    reason: str | None = None
    probabilities: Mapping[str, float] | None = None
    cost: Cost | None = None
    failure: str | None = field(default=None, compare=False)
    decision_id: str | None = field(default=None, compare=False)
    prompt_hash: str | None = field(default=None, compare=False)
    question_kind: Kind | None = None
    option_mass: float | None = None
    rotation: int | None = None
    sampling_seed: int | None = None
    rotations_apart: float | None = None
    prompt: str | None = field(default=None, compare=False, repr=False)
    reply: str | None = field(default=None, compare=False, repr=False)


class BaseReasoner(ABC):
    """Base class of reasoners: answers one question or many, and logs every decision.

    Args:
        logger: A structlog logger for the decisions. None means structlog's own, once it is
            configured.

    Attributes:
        concurrency: Number of questions to ask at once; 0 if answers are immediate.
        chooses_acts: Whether agents of the feed choose among all acts, including replying and
            resharing.
    """

    concurrency: int = 0
    chooses_acts: bool = False

    def __init__(self, logger: EventLogger | None = None) -> None:
        self._logger = synchronous(logger)

    @abstractmethod
    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Answer questions, in order. A model's failure is a fallback, never an exception."""

    def skip(self, question: Question, decision: Decision | None = None) -> None:
        """Draw the random numbers of a question that was answered elsewhere.

        Args:
            question: The question.
            decision: The answer, so that an equal question need not be asked.
        """
        del question, decision  # nothing is drawn

    async def decide(
        self, agent: Any, current_state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        """Choose one of several enabled targets (specification, reasoner contract).

        Args:
            agent: The agent that decides.
            current_state: Its state.
            trigger: The event that opened the question.
            options: The targets to choose from.
            context: The event's context, such as a post.

        Returns:
            One of the options.

        Raises:
            ReasonerError: (a ValueError) if there are no options.
        """
        offered = options if isinstance(options, Options) else Options(options)
        question = Question(
            agent, current_state, trigger, tuple(options), context, chart=offered.chart
        )
        (decision,) = await self.decide_many([question])
        offered.are_announced = True
        return decision.chosen

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions at once, and log the decisions in the same order.

        Args:
            questions: The questions; the answers come in the same order.
            logger: Logger for the decisions; by default this reasoner's own.
        """
        decisions = await self.answer(questions)
        logger = logger or self._logger
        for question, decision in to_log(logger, questions, decisions):
            how = _keys_of(decision)
            announce(logger, question, decision.chosen, decision.source, how)

        return decisions


def to_log(
    logger: EventLogger | None, questions: Iterable[Any], answers: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield questions with answers to log: all if somebody listens, otherwise failures alone."""
    are_heard = is_heard(logger)
    for question, answer in zip(questions, answers, strict=True):
        if are_heard or answer.source in FAILURES:
            yield question, answer


def _keys_of(decision: Decision) -> dict[str, Any]:
    """Return the keys in the log that say how a decision was made."""
    how = {"reason": decision.reason, "probabilities": decision.probabilities}
    how |= known_of(decision, QUESTION_KEYS)
    cost = {} if decision.cost is None else keys_of_cost(decision.cost)
    return {**how, **cost, **known_of(decision, ("prompt_hash", "decision_id"))}


def hash_of(prompt: str) -> str:
    """Return the beginning of a prompt's SHA-256, which identifies it in a log."""
    # the user's texts may contain characters that UTF-8 cannot encode
    return sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def keys_of_cost(cost: Cost) -> dict[str, Any]:
    """Return the cost for a decision's event; unknown parts may be left out."""
    return {name: getattr(cost, name) for name in COST_KEYS} | known_of(cost, OPTIONAL_COST_KEYS)


# Random numbers of decisions


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
        for name in ("decision_random", "random"):
            if isinstance(stream := getattr(agent, name, None), RandomStream):
                return stream

        name = declared_name(agent) or ""
        return self._named.setdefault(name, RandomStream(self._seed, name))


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


# The decisions of a run

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
        if decision.source != "model" or decision.rotation is None:
            return
        options, size = [*map(state_text, question.options)], len(question.options)
        chances = decision.probabilities or {state_text(decision.chosen): 1.0}
        likeliest = max(chances, key=chances.__getitem__)
        if likeliest in options:
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
            limit = f"with stop_at_fallbacks = {self._stop_at:.4g}"
            self._problem = f"stopped, as {many} fell back, {limit}; the last one: {reason}"

    def check(self) -> None:
        """Raise the error that ends the run, if there were too many."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise TooManyFallbacksError(problem)
