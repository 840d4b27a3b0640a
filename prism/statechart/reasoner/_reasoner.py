"""Deciding with a language model, and what happens when it does not answer.

The contract is ``spec/reasoner-contract.md``; the prompt is in `prompts`, the reading of replies in
`replies`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic, perf_counter
from typing import Any, Literal, TypeVar

from prism.errors import (
    DecisionsUnsupportedError,
    FieldValueError,
    LeftAloneError,
    ReasonerError,
    TimedOutError,
)
from prism.randomness import RandomStream, Taken, index_at
from prism.statechart._identity import agent_name
from prism.statechart.reasoner._agent_streams import AgentStreams
from prism.statechart.reasoner._answer_store import AnswerStore, KeptReplies
from prism.statechart.reasoner._budget import Budget
from prism.statechart.reasoner._clients import Reply, check_client, check_model, offers_decisions
from prism.statechart.reasoner._dispatch import Asker, cost_of
from prism.statechart.reasoner._prompts import STATE_DESCRIPTIONS
from prism.statechart.reasoner._questions import BaseReasoner, Call, Decision, Question, Source
from prism.statechart.reasoner._replies import parse_reasoner_response, read_probabilities
from prism.statechart.reasoner._requests import Kind, Request, chat_requests, decision_requests
from prism.statechart.reasoner._single_flight import Outcome, SharedCalls
from prism.telemetry._loggers import EventLogger, describe, report_warning
from prism.telemetry.events import MODE_UNKNOWN

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_CONCURRENCY = 16
_WORKERS_PER_SLOT = 2
"""Workers that take requests: some may wait for the answer to the same question of another."""

LONGEST_LOOK_SECONDS = 10.0
"""How long to wait for a server to say whether it takes decisions, which it knows without the model."""

_REST_AFTER_LOOK = 10
"""How many times as long as a look took that failed, not to look again."""

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]

ResultT = TypeVar("ResultT")

_MAKERS = {"chat": chat_requests, "decision": decision_requests}


@dataclass(frozen=True, slots=True)
class _Odds:
    """A decision model's answer, before an option is drawn from it."""

    chances: Mapping[str, float]
    source: Source
    call: Call | None


@dataclass(frozen=True, slots=True)
class _Lot:
    """What belongs to a question before it is asked.

    Args:
        stream: Where its number was taken; None if nothing will be drawn.
        taken: That number, which decides between the odds.
        fault: What keeps the question from being asked.
    """

    stream: RandomStream | None = None
    taken: Taken = (0, 0.0)
    fault: Exception | None = None

    def put_back(self) -> None:
        """Leave the stream as if the question had not been asked."""
        if self.stream is not None:
            self.stream.put_back(self.taken)


class Reasoner(BaseReasoner):
    """Asks a language model which of several open moves an agent makes.

    Whatever goes wrong with the model, a decision is made: the fallback, with a warning that says
    why.

    Args:
        client: Anything with an async ``chat``, ``get_response`` or ``run``: prism's
            `OllamaChatClient` and `OllamaPool`, ``ollama.AsyncClient`` (then give ``model``), an
            agent-framework client or agent.
        mode: ``decision`` asks a decision model for the options' probabilities, ``chat`` has a
            model write its choice, ``auto`` takes decisions where server and model offer them.
        pick: What to do with probabilities: ``draw`` an option by a number of the agent's own
            random stream, which a question takes when it is put, whenever and whatever the answer
            is; or take the likeliest (``argmax``).
        fallback: The state to take when the model gives no valid answer, if it is among the
            options; otherwise, and by default, the first option.
        model: Model name, for clients that must be told with every call.
        descriptions: Meaning of each state for the prompt, by state; `STATE_DESCRIPTIONS` by
            default.
        timeout: Seconds to wait for one answer, retries included.
        concurrency: Questions under way at once; a client's own ``concurrency`` takes its place.
        seed: Seed of the draws of agents without a stream, and of sampling where the client takes
            one.
        cache: Where to keep answers from one run to the next, by model, options, prompt and seed.
            One that raises is reported once and used no more; what it holds but cannot be read is
            asked anew. For an agent, whose answers depend on its instructions, too, give a
            ``model`` that is a name for both.
        budget: What the run may spend; decisions fall back when it is spent.
        logger: A structlog logger for decisions.

    Raises:
        ReasonerError: If the client has none of the three methods, in mode ``decision`` no
            ``systemone``, or blocks the event loop; if it has to be told a model and there is none;
            or if there is a cache and neither the client nor ``model`` names a model.
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
        _require_positive(timeout=timeout, concurrency=slots)
        check_client(client, only_decides=mode == "decision")
        check_model(client, model, only_decides=mode == "decision")
        if cache is not None:
            _require_model(client, model)

        super().__init__(logger)
        self._client = client
        self._mode = mode
        self._kind: Kind | None = _kind_by(mode, client)
        self._pick = pick
        self._fallback = fallback
        self._model = model
        self._descriptions = descriptions
        self.concurrency = slots
        self._cache = cache
        self._kept = KeptReplies(cache, logger)
        self._asked_of = _asked_of(client, model, seed)
        self.budget: Budget = budget or Budget()
        self._streams = AgentStreams(seed)
        self._asker = Asker(client, slots, timeout, self.budget, model=model, seed=seed)
        self._finding: SharedCalls[Kind] = SharedCalls()
        self._next_look = 0.0
        self._has_told_of_look = False

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask the model every question, as many at once as the client may be asked.

        What a draw will need is taken before anything is awaited, so that no draw depends on which
        answer comes first.
        """
        lots = [self._lot(question) for question in questions]
        readable = [
            question for question, lot in zip(questions, lots, strict=True) if lot.fault is None
        ]
        try:
            found = iter(await self._find(readable) if readable else ())
        except BaseException:
            for lot in lots:
                lot.put_back()

            raise

        return [
            self._settle(question, lot, next(found))
            if lot.fault is None
            else self._without_asking(question, lot.fault)
            for question, lot in zip(questions, lots, strict=True)
        ]

    async def _find(self, questions: Sequence[Question]) -> list[Decision | _Odds]:
        """Find what the model says to each question."""
        kind = self._kind or await self._find_kind()
        requests = iter(_MAKERS[kind](questions, self._descriptions))
        placed: dict[int, Decision | _Odds] = {}
        answered: dict[str, Outcome[Reply]] = {}

        async def work() -> None:
            # shared: the first requests are under way before the last are made
            for request in requests:
                placed.update(
                    zip(request.places, await self._decide(request, answered), strict=True)
                )

        await _in_parallel(
            [work() for _ in range(min(len(questions), _WORKERS_PER_SLOT * self.concurrency))]
        )

        return [placed[place] for place in range(len(questions))]

    def _lot(self, question: Question) -> _Lot:
        """Take what a question needs besides an answer: an agent that can be named, and a number to draw with."""
        try:
            agent_name(question.agent)
            if self._pick == "argmax" or self._kind == "chat":
                return _Lot()

            stream = self._streams.of(question.agent)
            return _Lot(stream, stream.take())
        except Exception as error:  # of the user's agent; the other questions must not suffer
            return _Lot(fault=error)

    @property
    def client(self) -> Any:
        """The client that is asked."""
        return self._client

    @property
    def cache(self) -> AnswerStore | None:
        """Where answers are kept; whoever opened it closes it."""
        return self._cache

    async def close(self) -> None:
        """Close the client's connections, if it says (``client.reopens``) that a later question makes new ones."""
        if getattr(self._client, "reopens", False):
            await self._client.close()

    async def _find_kind(self) -> Kind:
        """Find out whether server and model decide; one that cannot say is asked again after a while."""
        if self.budget.spent() is not None or monotonic() < self._next_look:
            return "chat"

        began = monotonic()
        looked = await self._finding.get("kind", self._look)
        if looked.result is not None:
            self._kind = looked.result
            return looked.result

        ended = monotonic()
        self._next_look = max(self._next_look, ended + _REST_AFTER_LOOK * (ended - began))
        if looked.error is not None and not self._has_told_of_look:
            self._has_told_of_look = True
            report_warning(self._logger, MODE_UNKNOWN, error=describe(looked.error))

        return "chat"

    async def _look(self) -> Kind:
        import asyncio

        limit = min(self._asker.seconds_allowed(), LONGEST_LOOK_SECONDS)
        try:
            async with asyncio.timeout(limit) as timer:
                return "decision" if await offers_decisions(self._client, self._model) else "chat"
        except Exception as error:
            if timer.expired():
                raise TimedOutError(f"no answer within {limit:g} s") from error
            raise

    async def _decide(
        self, request: Request, answered: dict[str, Outcome[Reply]], made: int = 0
    ) -> Sequence[Decision | _Odds]:
        """Get the answers to one request; a failure becomes a fallback for each of its questions.

        Args:
            request: What to ask.
            answered: What came of other requests that were made together with it.
            made: Requests that were made in vain before, to ask the same in another way.
        """
        began = perf_counter()
        if request.fault is not None:
            return [self._without_asking(question, request.fault) for question in request.questions]

        identity = request.identity()
        key = self._kept.key(self._asked_of, identity)
        kept = self._kept.get(key)
        if kept is not None:
            found = self._read_all(request, kept, "cache", None)
            if _all_valid(found):
                return found

        outcome = await self._outcome(request, identity, answered)
        call = self._call(outcome, perf_counter() - began)
        if not outcome.claim():
            call = call.shared()
        if made:
            call = replace(call, attempts=call.attempts + made)
        if outcome.result is None:
            return await self._do_without(request, outcome.error, call, answered)

        found = self._read_all(request, outcome.result, "model", call)
        if _all_valid(found):
            self._kept.put(key, outcome.result)

        return found

    async def _do_without(
        self,
        request: Request,
        error: Exception | None,
        call: Call,
        answered: dict[str, Outcome[Reply]],
    ) -> Sequence[Decision | _Odds]:
        """Fall back after a failure, or chat if that may help: for good where nobody decides, else this once."""
        assert error is not None
        instead = isinstance(error, (DecisionsUnsupportedError, LeftAloneError))
        if not instead or self._mode != "auto" or request.kind != "decision":
            return self._fall_back(request, error, call)
        if isinstance(error, DecisionsUnsupportedError):
            self._kind = "chat"

        chats = enumerate(chat_requests(request.questions, self._descriptions))
        found = await _in_parallel(
            [
                self._decide(chat, answered, made=0 if number else call.attempts)
                for number, chat in chats
            ]
        )

        return [item for items in found for item in items]

    async def _outcome(
        self, request: Request, identity: str, answered: dict[str, Outcome[Reply]]
    ) -> Outcome[Reply]:
        """Get what comes of a request; what was asked together before is not asked again, also if it failed."""
        if identity not in answered:
            answered[identity] = await self._asker.ask(request, identity)
        return answered[identity]

    def _read_all(
        self, request: Request, reply: Reply, source: Source, call: Call | None
    ) -> list[Decision | _Odds]:
        return [
            self._read(request.kind, question, reply, number, source, cost)
            for number, (question, cost) in enumerate(_costs(request, call))
        ]

    def _read(
        self,
        kind: Kind,
        question: Question,
        reply: Reply,
        number: int,
        source: Source,
        call: Call | None,
    ) -> Decision | _Odds:
        options = list(question.options)
        try:
            if kind == "chat":
                return Decision(parse_reasoner_response(reply.text, options), source, call=call)
            return _Odds(read_probabilities(reply.answers.get(f"q{number}"), options), source, call)
        except ReasonerError as error:
            return self._fallback_to(question, error, call)

    def _settle(self, question: Question, lot: _Lot, found: Decision | _Odds) -> Decision:
        """Choose by the odds, where those came."""
        if isinstance(found, Decision):
            return found

        weights = list(found.chances.values())
        number = (
            weights.index(max(weights))
            if self._pick == "argmax"
            else index_at(lot.taken[1], weights)
        )
        rounded = {text: round(chance, 6) for text, chance in found.chances.items()}

        return Decision(
            question.options[number], found.source, probabilities=rounded, call=found.call
        )

    def _call(self, outcome: Outcome[Reply], latency: float) -> Call:
        reply, error = outcome.result, outcome.error
        if reply is None:
            attempts, host = cost_of(error)
            return self._call_without_reply(latency, host, attempts)

        return Call(
            round(latency, 6),
            reply.model,
            reply.host,
            reply.attempts,
            reply.input_tokens,
            reply.output_tokens,
        )

    def _call_without_reply(self, latency: float, host: str | None, attempts: int) -> Call:
        return Call(
            round(latency, 6), self._model or getattr(self._client, "model", None), host, attempts
        )

    def _without_asking(self, question: Question, fault: Exception) -> Decision:
        return self._fallback_to(question, fault, self._call_without_reply(0.0, None, 0))

    def _fall_back(self, request: Request, error: Exception, call: Call) -> list[Decision | _Odds]:
        return [
            self._fallback_to(question, error, cost) for question, cost in _costs(request, call)
        ]

    def _fallback_to(self, question: Question, error: Exception, call: Call | None) -> Decision:
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        return Decision(chosen, "fallback", reason=describe(error), call=call)


async def _in_parallel(works: Sequence[Coroutine[Any, Any, ResultT]]) -> list[ResultT]:
    """Do several things at once; if one raises, the others are cancelled and over before that is raised on."""
    import asyncio

    if len(works) == 1:
        return [await works[0]]

    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()

        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _costs(request: Request, call: Call | None) -> Iterator[tuple[Question, Call | None]]:
    """Give each question its call; the cost stands with the first."""
    for number, question in enumerate(request.questions):
        yield question, call if call is None or number == 0 else call.shared()


def _all_valid(found: Sequence[Decision | _Odds]) -> bool:
    return all(item.source != "fallback" for item in found)


def _kind_by(mode: Mode, client: Any) -> Kind | None:
    """Tell what is asked in a mode, or None if the server has to say."""
    if mode != "auto":
        return mode
    return None if callable(getattr(client, "systemone", None)) else "chat"


def _asked_of(client: Any, model: str | None, seed: int) -> list[Any]:
    """Return what a reply depends on besides the question, as far as the client tells."""
    told = [getattr(client, name, None) for name in ("model", "temperature", "seed", "think")]
    return [
        model,
        seed,
        *(value if isinstance(value, (str, int, float)) else None for value in told),
    ]


def _require_positive(**limits: float) -> None:
    for name, value in limits.items():
        if not value > 0:
            raise FieldValueError(f"{name} must be above 0, got {value!r}")


def _require_model(client: object, model: str | None) -> None:
    """Refuse to keep answers of nobody knows which model."""
    if model is None and not isinstance(getattr(client, "model", None), str):
        raise ReasonerError(
            f"a cache keeps answers by model, and {type(client).__name__} names none: give Reasoner a model, any "
            "name that stands for the model and for what else the answers depend on"
        )


def _require_one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise FieldValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
