"""Deciding with a language model, and what happens when it does not answer.

The contract is ``spec/reasoner-contract.md``; the prompt is in `prompts`, the reading of replies in `replies`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

from prism.errors import BudgetSpentError, DecisionsUnsupportedError, FieldValueError, ReasonerError, TimedOutError
from prism.statechart.bookkeeping import agent_name
from prism.statechart.budget import Budget
from prism.statechart.clients import Reply, ask_chat, ask_decision, check_client, offers_decisions
from prism.statechart.decisions import BaseReasoner, Call, Decision, Question, Source
from prism.statechart.events import EventLogger, describe
from prism.statechart.prompts import (
    STATE_DESCRIPTIONS,
    build_reasoner_prompt,
    chat_prompt,
    decision_question,
    decision_state,
    format_context,
)
from prism.statechart.replies import parse_reasoner_response, read_probabilities
from prism.statechart.sharing import SharedCalls
from prism.statechart.states import state_text
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
MOST_DECISION_BYTES = 48_000
"""How large a decision request may grow; servers refuse a state beyond 64 KiB."""

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]
Kind = Literal["decision", "chat"]


class AnswerStore(Protocol):
    """Keeps replies by what was asked; `prism.llm.AnswerCache` keeps them on disk."""

    def get(self, key: str) -> str | None:
        """Give what was put under a key, or None."""

    def put(self, key: str, value: str) -> None:
        """Keep something under a key."""


@dataclass(frozen=True, slots=True)
class _Request:
    """Questions that go to the model together: one in chat, those of one agent in decision mode."""

    kind: Kind
    questions: Sequence[Question]
    state: str
    choices: Mapping[str, Mapping[str, Any]]


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
        cache: Where to keep answers from one run to the next.
        budget: What the run may spend; decisions fall back when it is spent.
        logger: A structlog logger for decisions.

    Raises:
        ReasonerError: If the client has none of the three methods.
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
        slots = concurrency or getattr(client, "concurrency", None) or DEFAULT_CONCURRENCY
        for name, value in (("timeout", timeout), ("concurrency", slots if concurrency is None else concurrency)):
            if not value > 0:
                raise FieldValueError(f"{name} must be above 0, got {value!r}")
        check_client(client)
        super().__init__(logger)
        self._client = client
        self._mode = mode
        self._kind: Kind | None = None if mode == "auto" else mode
        self._pick = pick
        self._fallback = fallback
        self._model = model
        self._descriptions = descriptions
        self._timeout = timeout
        self._concurrency = slots
        self._seed = seed
        self._cache = cache
        self.budget = budget or Budget()
        self._streams = AgentStreams(seed)
        self._shared: SharedCalls[Reply] = SharedCalls()
        self._finding: SharedCalls[Kind] = SharedCalls()
        self._slots: tuple[Any, Semaphore] | None = None

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask the model every question, as many at once as the client may be asked."""
        import asyncio  # costs a third of importing the engine, and is loaded already where this runs

        kind = self._kind or await self._find_kind()
        requests = list(self._requests(questions, kind))
        decided = await asyncio.gather(*(self._decide(request) for request in requests))
        found = {
            id(question): decision
            for request, decisions in zip(requests, decided, strict=True)
            for question, decision in zip(request.questions, decisions, strict=True)
        }
        return [found[id(question)] for question in questions]

    async def _find_kind(self) -> Kind:
        """Find out whether server and model decide; an unreachable server is asked again the next time."""
        import asyncio

        async def find() -> Kind:
            async with asyncio.timeout(self._seconds_allowed()):
                return "decision" if await offers_decisions(self._client, self._model) else "chat"

        try:
            self._kind, _ = await self._finding.get("kind", find)
        except Exception:  # the question itself will meet the same fault, and its fallback tells of it
            return "chat"
        return self._kind

    def _requests(self, questions: Sequence[Question], kind: Kind) -> Iterator[_Request]:
        """Put questions into requests; in decision mode those of one agent share its description."""
        if kind == "chat":
            for question in questions:
                yield _Request(kind, [question], chat_prompt(question, self._descriptions), {})
            return
        by_agent: dict[int, list[Question]] = {}
        for question in questions:
            by_agent.setdefault(id(question.agent), []).append(question)
        for asked in by_agent.values():
            choices = [decision_question(question, self._descriptions) for question in asked]
            for start, end in _portions([len(json.dumps(choice)) for choice in choices], MOST_DECISION_BYTES):
                named = {f"q{number}": choice for number, choice in enumerate(choices[start:end])}
                yield _Request(kind, asked[start:end], decision_state(asked[0].agent), named)

    async def _decide(self, request: _Request) -> list[Decision]:
        """Get the answers to one request; a failure becomes a fallback for each of its questions."""
        began = perf_counter()
        key = self._key(request)
        try:
            kept = None if self._cache is None else self._cache.get(key)
            if kept is not None:
                return self._read_all(request, Reply(**json.loads(kept)), "cache", None)
            reply, asked = await self._shared.get(key, lambda: self._ask(request))
        except DecisionsUnsupportedError as error:
            if self._mode == "auto":
                self._kind = "chat"
                return await self.answer(request.questions)
            return self._fall_back_all(request, error, began)
        except Exception as error:
            return self._fall_back_all(request, error, began)
        decisions = self._read_all(request, reply, "model", _call_of(reply, perf_counter() - began, asked))
        if self._cache is not None and asked and all(decision.source == "model" for decision in decisions):
            self._cache.put(key, json.dumps(asdict(reply)))
        return decisions

    async def _ask(self, request: _Request) -> Reply:
        import asyncio

        async with self._slot():
            spent = self.budget.take()
            if spent is not None:
                raise BudgetSpentError(spent)
            limit = self._seconds_allowed()
            try:
                async with asyncio.timeout(limit) as timer:
                    reply = await self._put(request)
            except Exception as error:
                self.budget.add(retries=getattr(error, "attempts", 1) - 1)
                if timer.expired():
                    raise TimedOutError(f"no answer within {limit:g} s") from error
                raise
            self.budget.add(retries=reply.attempts - 1, tokens=(reply.input_tokens or 0) + (reply.output_tokens or 0))
            return reply

    def _seconds_allowed(self) -> float:
        left = self.budget.seconds_left()
        return self._timeout if left is None else min(left, self._timeout)

    async def _put(self, request: _Request) -> Reply:
        if request.kind == "decision":
            return await ask_decision(self._client, request.state, request.choices, model=self._model)
        options = request.questions[0].options
        return await ask_chat(self._client, request.state, options, model=self._model, seed=self._seed)

    def _slot(self) -> Semaphore:
        """Give this event loop's limit on questions under way."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self._concurrency))
        return self._slots[1]

    def _key(self, request: _Request) -> str:
        """Name a request by all that its answer depends on."""
        model = self._model or getattr(self._client, "model", None)
        options = [[state_text(option) for option in question.options] for question in request.questions]
        asked = [request.kind, str(model), request.state, request.choices, options, self._seed]
        return sha256(json.dumps(asked).encode()).hexdigest()

    def _read_all(self, request: _Request, reply: Reply, source: Source, call: Call | None) -> list[Decision]:
        return [
            self._read(request.kind, question, reply, f"q{number}", source, call)
            for number, question in enumerate(request.questions)
        ]

    def _read(
        self, kind: Kind, question: Question, reply: Reply, name: str, source: Source, call: Call | None
    ) -> Decision:
        options = list(question.options)
        try:
            if kind == "chat":
                return Decision(parse_reasoner_response(reply.text, options), source, call=call)
            chances = read_probabilities(reply.answers.get(name), options)
        except ReasonerError as error:
            return self._fall_back(question, error, call)
        weights = list(chances.values())
        if self._pick == "argmax":
            chosen = options[weights.index(max(weights))]
        else:
            chosen = options[self._streams.of(question.agent, agent_name(question.agent)).weighted_index(weights)]
        return Decision(chosen, source, probabilities={text: round(p, 6) for text, p in chances.items()}, call=call)

    def _fall_back_all(self, request: _Request, error: Exception, began: float) -> list[Decision]:
        call = Call(
            round(perf_counter() - began, 6),
            model=self._model or getattr(self._client, "model", None),
            host=getattr(error, "host", None),
            attempts=0 if isinstance(error, BudgetSpentError) else getattr(error, "attempts", 1),
        )
        return [self._fall_back(question, error, call) for question in request.questions]

    def _fall_back(self, question: Question, error: Exception, call: Call | None) -> Decision:
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        return Decision(chosen, "fallback", reason=describe(error), call=call)


def _call_of(reply: Reply, latency: float, asked: bool) -> Call:
    call = Call(round(latency, 6), reply.model, reply.host, reply.attempts, reply.input_tokens, reply.output_tokens)
    return call if asked else replace(call, attempts=0, input_tokens=0, output_tokens=0)


def _portions(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Cut a sequence into runs whose sizes stay below a limit; one that is too large stands alone."""
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if number > start and total + size > most:
            yield start, number
            start, total = number, 0
        total += size
    yield start, len(sizes)


def _require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise FieldValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
