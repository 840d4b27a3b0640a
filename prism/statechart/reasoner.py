"""Deciding with a language model, and what happens when it does not answer.

The contract is ``spec/reasoner-contract.md``; the prompt is in `prompts`, the reading of replies in `replies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from prism.errors import BudgetSpentError, DecisionsUnsupportedError, FieldValueError, ReasonerError, TimedOutError
from prism.statechart.budget import Budget
from prism.statechart.cache import AnswerStore, KeptReplies
from prism.statechart.clients import Reply, ask_chat, ask_decision, check_client, offers_decisions
from prism.statechart.decisions import BaseReasoner, Call, Decision, Question, Source
from prism.statechart.events import EventLogger, describe
from prism.statechart.prompts import (
    STATE_DESCRIPTIONS,
    build_reasoner_prompt,
    format_context,
)
from prism.statechart.replies import parse_reasoner_response, read_probabilities
from prism.statechart.requests import MOST_DECISION_BYTES, Kind, Request, chat_requests, decision_requests
from prism.statechart.sharing import SharedCalls
from prism.statechart.streams import AgentStreams

if TYPE_CHECKING:
    from asyncio import Semaphore

__all__ = [
    "STATE_DESCRIPTIONS",
    "Reasoner",
    "build_reasoner_prompt",
    "format_context",
    "parse_reasoner_response",
]

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_CONCURRENCY = 16
_WORKERS_PER_SLOT = 2
"""Workers that take requests: some may wait for the answer to the same question of another."""

LONGEST_LOOK_SECONDS = 10.0
"""How long to wait for a server to say whether it takes decisions, which it knows without the model."""

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]

_MAKERS = {"chat": chat_requests, "decision": decision_requests}


@dataclass(frozen=True, slots=True)
class _Odds:
    """A decision model's answer, before an option is drawn from it."""

    chances: Mapping[str, float]
    source: Source
    call: Call | None


class Reasoner(BaseReasoner):
    """Asks a language model which of several open moves an agent makes.

    Whatever goes wrong with the model, a decision is made: the fallback, with a warning that says why.

    Args:
        client: Anything with an async ``chat``, ``get_response`` or ``run``: prism's `OllamaChatClient` and
            `OllamaPool`, ``ollama.AsyncClient`` (then give ``model``), an agent-framework client or agent.
        mode: ``decision`` asks a decision model for the options' probabilities, ``chat`` has a model write
            its choice, ``auto`` takes decisions where server and model offer them.
        pick: What to do with probabilities: ``draw`` an option from the agent's own random stream, or take the
            likeliest (``argmax``).
        fallback: The state to take when the model gives no valid answer, if it is among the options;
            otherwise, and by default, the first option.
        model: Model name, for clients that must be told with every call.
        descriptions: Meaning of each state for the prompt, by state; `STATE_DESCRIPTIONS` by default.
        timeout: Seconds to wait for one answer, retries included.
        concurrency: Questions under way at once; a client's own ``concurrency`` takes its place.
        seed: Seed of the draws of agents without a stream, and of sampling where the client takes one.
        cache: Where to keep answers from one run to the next, by model, options, prompt and seed. One that
            raises is reported once and used no more; what it holds but cannot be read is asked anew.
        budget: What the run may spend; decisions fall back when it is spent.
        logger: A structlog logger for decisions.

    Raises:
        ReasonerError: If the client has none of the three methods, or in mode ``decision`` no ``systemone``.
        FieldValueError: If mode or pick is unknown, or the time-out or the concurrency not above 0.
    """

    def __init__(
        self,
        client: Any,
        *,
        mode: Mode = "auto",
        pick: Pick = "draw",
        fallback: Any = None,
        model: str | None = None,
        descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        concurrency: int | None = None,
        seed: int = 0,
        cache: AnswerStore | None = None,
        budget: Budget | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        _require_one_of("mode", mode, ("auto", "decision", "chat"))
        _require_one_of("pick", pick, ("draw", "argmax"))
        offered = getattr(client, "concurrency", None) or DEFAULT_CONCURRENCY
        slots = offered if concurrency is None else concurrency
        for name, value in (("timeout", timeout), ("concurrency", slots)):
            if not value > 0:
                raise FieldValueError(f"{name} must be above 0, got {value!r}")
        check_client(client, only_decides=mode == "decision")
        super().__init__(logger)
        self._client = client
        self._mode = mode
        self._kind: Kind | None = None if mode == "auto" else mode
        self._pick = pick
        self._fallback = fallback
        self._model = model
        self._descriptions = descriptions
        self._timeout = timeout
        self.concurrency = slots
        self._seed = seed
        self._kept = KeptReplies(cache, logger)
        self._asked_of = _asked_of(client, model, seed)
        self.budget = budget or Budget()
        self._streams = AgentStreams(seed)
        self._shared: SharedCalls[Reply] = SharedCalls()
        self._finding: SharedCalls[Kind] = SharedCalls()
        self._slots: tuple[Any, Semaphore] | None = None

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask the model every question, as many at once as the client may be asked."""
        import asyncio  # costs a third of importing the engine, and is loaded already where this runs

        kind = self._kind or await self._find_kind()
        requests = iter(_MAKERS[kind](questions, self._descriptions))
        placed: dict[int, Decision | _Odds] = {}
        answered: dict[str, Reply | Exception] = {}

        async def work() -> None:
            for request in requests:  # shared: the first requests are under way before the last are made
                placed.update(zip(request.places, await self._decide(request, answered), strict=True))

        await asyncio.gather(*(work() for _ in range(min(len(questions), _WORKERS_PER_SLOT * self.concurrency))))
        return [self._settle(question, placed[place]) for place, question in enumerate(questions)]

    @property
    def client(self) -> Any:
        """The client that is asked."""
        return self._client

    async def close(self) -> None:
        """Close the client's connections, if it says (``client.reopens``) that a later question makes new ones."""
        if getattr(self._client, "reopens", False):
            await self._client.close()

    async def _find_kind(self) -> Kind:
        """Find out whether server and model decide; an unreachable server is asked again the next time."""
        import asyncio

        async def find() -> Kind:
            async with asyncio.timeout(min(self._seconds_allowed(), LONGEST_LOOK_SECONDS)):
                return "decision" if await offers_decisions(self._client, self._model) else "chat"

        if self.budget.spent() is not None:
            return "chat"
        try:
            self._kind = await self._finding.get("kind", find)
        except Exception:  # the question itself will meet the same fault, and its fallback tells of it
            return "chat"
        return self._kind

    async def _decide(self, request: Request, answered: dict[str, Reply | Exception]) -> Sequence[Decision | _Odds]:
        """Get the answers to one request; a failure becomes a fallback for each of its questions."""
        began = perf_counter()
        identity = request.identity()
        key = self._kept.key(self._asked_of, identity)
        kept = self._kept.get(key)
        if kept is not None:
            found = self._read_all(request, kept, "cache")
            if _all_valid(found):
                return found
        is_first = identity not in self._shared and identity not in answered
        try:
            reply = await self._reply(request, identity, answered)
        except Exception as error:
            if isinstance(error, DecisionsUnsupportedError) and self._mode == "auto" and request.kind == "decision":
                self._kind = "chat"
                return await self.answer(request.questions)
            call = self._failed_call(error, perf_counter() - began)
            return [self._fall_back(question, error, cost) for question, cost in _costs(request, call, is_first)]
        call = Call(
            round(perf_counter() - began, 6),
            reply.model,
            reply.host,
            reply.attempts,
            reply.input_tokens,
            reply.output_tokens,
        )
        found = self._read_all(request, reply, "model", call, is_first)
        if _all_valid(found):
            self._kept.put(key, reply)
        return found

    async def _reply(self, request: Request, identity: str, answered: dict[str, Reply | Exception]) -> Reply:
        """Get what the model replies; what was asked together before is not asked again, also if it failed."""
        if identity not in answered:
            try:
                answered[identity] = await self._shared.get(identity, lambda: self._ask(request))
            except Exception as error:
                answered[identity] = error
        known = answered[identity]
        if isinstance(known, Exception):
            raise known
        return known

    async def _ask(self, request: Request) -> Reply:
        """Ask the client, within the limits of slots, time and budget."""
        import asyncio

        if request.size > MOST_DECISION_BYTES:
            raise ReasonerError(f"not asked: {request.size} bytes, of {MOST_DECISION_BYTES} that a request may have")
        async with self._slot():
            spent = self.budget.take()
            if spent is not None:
                raise _spent_error(spent, attempts=0)
            limit = self._seconds_allowed()
            try:
                async with asyncio.timeout(limit) as timer:
                    reply = await self._put(request)
            except Exception as error:
                attempts = getattr(error, "attempts", 1)
                self.budget.add(retries=attempts - 1)
                if not timer.expired():
                    raise
                if limit < self._timeout:
                    raise _spent_error(self.budget.spent() or "budget spent", attempts) from error
                raise TimedOutError(f"no answer within {limit:g} s") from error
            self.budget.add(retries=reply.attempts - 1, tokens=(reply.input_tokens or 0) + (reply.output_tokens or 0))
            return reply

    def _seconds_allowed(self) -> float:
        left = self.budget.seconds_left()
        return self._timeout if left is None else min(left, self._timeout)

    async def _put(self, request: Request) -> Reply:
        if request.kind == "decision":
            return await ask_decision(self._client, request.text, request.choices, model=self._model)
        options = request.questions[0].options
        return await ask_chat(self._client, request.text, options, model=self._model, seed=self._seed)

    def _slot(self) -> Semaphore:
        """Give this event loop's limit on questions under way."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self.concurrency))
        return self._slots[1]

    def _read_all(
        self, request: Request, reply: Reply, source: Source, call: Call | None = None, is_first: bool = True
    ) -> list[Decision | _Odds]:
        return [
            self._read(request.kind, question, reply, number, source, cost)
            for number, (question, cost) in enumerate(_costs(request, call, is_first))
        ]

    def _read(
        self, kind: Kind, question: Question, reply: Reply, number: int, source: Source, call: Call | None
    ) -> Decision | _Odds:
        options = list(question.options)
        try:
            if kind == "chat":
                return Decision(parse_reasoner_response(reply.text, options), source, call=call)
            return _Odds(read_probabilities(reply.answers.get(f"q{number}"), options), source, call)
        except ReasonerError as error:
            return self._fall_back(question, error, call)

    def _settle(self, question: Question, found: Decision | _Odds) -> Decision:
        """Choose by the odds; done in the order of the questions, whichever answer came first."""
        if isinstance(found, Decision):
            return found
        weights = list(found.chances.values())
        if self._pick == "argmax":
            number = weights.index(max(weights))
        else:
            number = self._streams.of(question.agent).weighted_index(weights)
        rounded = {text: round(chance, 6) for text, chance in found.chances.items()}
        return Decision(question.options[number], found.source, probabilities=rounded, call=found.call)

    def _failed_call(self, error: Exception, latency: float) -> Call:
        return Call(
            round(latency, 6),
            model=self._model or getattr(self._client, "model", None),
            host=getattr(error, "host", None),
            attempts=0 if isinstance(error, ReasonerError) else getattr(error, "attempts", 1),
        )

    def _fall_back(self, question: Question, error: Exception, call: Call | None) -> Decision:
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        return Decision(chosen, "fallback", reason=describe(error), call=call)


def _costs(request: Request, call: Call | None, is_first: bool) -> Iterator[tuple[Question, Call | None]]:
    """Give each question its call; the cost stands with the first of those who asked."""
    for number, question in enumerate(request.questions):
        yield question, call if call is None or (is_first and number == 0) else call.shared()


def _all_valid(found: Sequence[Decision | _Odds]) -> bool:
    return all(item.source != "fallback" for item in found)


def _spent_error(spent: str, attempts: int) -> BudgetSpentError:
    error = BudgetSpentError(spent)
    error.attempts = attempts
    return error


def _asked_of(client: Any, model: str | None, seed: int) -> list[Any]:
    """Give what a reply depends on besides the question, as far as the client tells."""
    told = [getattr(client, name, None) for name in ("model", "temperature", "seed", "think")]
    return [model, seed, *(value if isinstance(value, (str, int, float)) else None for value in told)]


def _require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise FieldValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
