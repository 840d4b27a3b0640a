"""Deciding with a language model, and what happens when it does not answer.

The contract is the specification's; the prompts are in `_prompts`, the reading of replies
in `_replies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from prism.errors import (
    CircuitOpenError,
    DecisionsUnsupportedError,
    FieldValueError,
    ReasonerError,
)
from prism.randomness import index_at
from prism.statechart._identity import agent_name
from prism.statechart.reasoner._attributes import attribute_names
from prism.statechart.reasoner._clients import (
    adapt,
    check_client,
    check_model,
    depends_on,
    has_slots,
    require_model,
)
from prism.statechart.reasoner._cost import Budget, Cost, costs_of, require_one_of, require_positive
from prism.statechart.reasoner._decision_requests import decision_requests
from prism.statechart.reasoner._dispatch import (
    Dispatcher,
    Flight,
    ModeFinder,
    Outcome,
    chances_in,
    chosen_in,
    kind_by,
    reason_in,
)
from prism.statechart.reasoner._model_client import Reply
from prism.statechart.reasoner._own_prompts import PROMPT_LOGGER, OwnPrompts, Prompts
from prism.statechart.reasoner._policy import AgentStreams, Draw
from prism.statechart.reasoner._prompts import (
    STATE_DESCRIPTIONS,
    Kind,
    PromptSettings,
    Request,
    chat_requests,
    hashed,
    prompt_hash,
)
from prism.statechart.reasoner._questions import BaseReasoner, Decision, Question, Source
from prism.statechart.reasoner._recollection import Recollection, recollection_of
from prism.statechart.reasoner._recording import AnswerStore, PromptRecord, Recording, ReplyCache
from prism.telemetry._loggers import EventLogger, describe

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_CONCURRENCY = 16
DEFAULT_ATTEMPTS = 3

_STARTS_PER_TURN = 32

Mode = Literal["auto", "decision", "chat"]
Pick = Literal["draw", "argmax"]


@dataclass(frozen=True, slots=True)
class _Probabilities:
    """A decision model's answer, before an option is drawn from it."""

    by_option: Mapping[str, float]
    source: Source
    cost: Cost | None


Found = Decision | _Probabilities


class Reasoner(BaseReasoner):
    """Asks a language model which of several enabled transitions an agent takes.

    Whatever goes wrong with the model, a decision is made: the fallback, with a warning that says
    why.

    Args:
        client: Anything with an async ``chat``, ``get_response`` or ``run``: prism's
            `OllamaChatClient` and `OllamaPool`, ``ollama.AsyncClient`` (which needs ``model``), an
            agent-framework client or agent, or a `ModelClient` of your own.
        mode: ``decision`` asks a decision model for the options' probabilities, ``chat`` has a
            model write its choice, ``auto`` takes decisions where server and model offer them.
        pick: What to do with probabilities: ``draw`` an option by a number of the agent's own
            random stream, which a question takes when it is put, whenever and whatever the answer
            is; or take the likeliest (``argmax``).
        fallback: The state to take when the model gives no valid answer, if it is among the
            options; otherwise, and by default, the first option.
        model: Model name, for clients that need it with every call.
        descriptions: Meaning of each state for the prompt, by state; `STATE_DESCRIPTIONS` by
            default.
        prompt: What the model is told: a template with ``{fields}``, a function of the `Question`,
            or a mapping of those by the name of a chart, by a state, or by the name of a chart and
            then by state. Memory, options and how to reply follow where a template does not name
            them. By default the specification's prompt in the social feed, else one of chart,
            options, agent and event; ``docs/prompts.md`` shows them.
        attributes: Attributes of the agents that are told with who they are.
        memory: What agents remember when they decide, or how many things; None for nothing.
        reasons: Ask for a reason beside the choice, which is logged as ``said``; decision models
            give none.
        timeout: Seconds that one answer may take, retries included. It counts from the moment the
            question gets a slot of the client, and while nobody is served at all.
        concurrency: Requests under way at once, for a client without a ``concurrency`` of its own;
            16 by default.
        attempts: Requests for one question while its failures pass (a busy server, a broken
            connection, a time-out), for a client without retries of its own; 3 by default. An
            internal error of the server is retried once. 1 for no retries.
        seed: Seed of the draws of agents without a stream, and of sampling where the client takes
            one.
        cache: Where to keep answers from one run to the next, by model, options, prompt and seed.
            One that raises is reported once and used no more; stored text that cannot be read is
            asked for again. For an agent, whose answers depend on its instructions, too, give a
            ``model`` that is a name for both.
        budget: What the run may spend; decisions fall back when it is spent.
        record: Where to keep every prompt and reply, which may hold what is private.
        logger: A structlog logger for decisions.

    Raises:
        ReasonerError: If the client has none of the three methods, in mode ``decision`` no
            ``systemone``, or blocks the event loop; if it needs a model and there is none; or if
            there is a cache and neither the client nor ``model`` names a model; or if a prompt
            names a field that there is not.
        FieldValueError: If mode or pick is unknown, the attributes are no names, the time-out, the
            concurrency, the attempts or the memory are not above 0, or the concurrency or the
            attempts are given for a client that has its own.
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
        prompt: Prompts | None = None,
        attributes: Sequence[str] = (),
        memory: Recollection | int | None = None,
        reasons: bool = False,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        concurrency: int | None = None,
        attempts: int | None = None,
        seed: int = 0,
        cache: AnswerStore | None = None,
        budget: Budget | None = None,
        record: PromptRecord | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        require_one_of("mode", mode, ("auto", "decision", "chat"))
        require_one_of("pick", pick, ("draw", "argmax"))
        require_positive(timeout=timeout, concurrency=concurrency, attempts=attempts)
        own = getattr(client, "concurrency", None)
        if own and concurrency is not None:
            raise FieldValueError(
                f"concurrency must be left out, got {concurrency!r}: "
                f"{type(client).__name__} has its own, {own!r}"
            )

        if attempts is not None and has_slots(client):
            raise FieldValueError(
                f"attempts must be left out, got {attempts!r}: {type(client).__name__} retries "
                "by itself"
            )

        check_client(client, only_decides=mode == "decision")
        check_model(client, model, only_decides=mode == "decision")
        if cache is not None:
            require_model(client, model)

        adapted = adapt(client, model, seed, attempts or DEFAULT_ATTEMPTS)
        super().__init__(logger)
        self.concurrency: int = own or concurrency or DEFAULT_CONCURRENCY
        self.budget: Budget = budget or Budget()
        self._client = client
        self._mode = mode
        self._kind: Kind | None = kind_by(mode, client)
        self._pick = pick
        self._fallback = fallback
        self._model = model or _text_or_none(getattr(client, "model", None))
        self.memory: Recollection | None = recollection_of(memory)
        self._has_said = False
        self._settings = PromptSettings(
            descriptions,
            None if prompt is None else OwnPrompts(prompt, has_memory=memory is not None),
            attribute_names(attributes),
            self.memory,
            reasons,
        )
        self._cache = cache
        self._replies = None if cache is None else ReplyCache(cache, logger)
        self._depends_on = depends_on(client, model, seed)
        self._streams = AgentStreams(seed)
        self._dispatcher = Dispatcher(
            adapted,
            None if has_slots(client) else self.concurrency,
            timeout,
            self.budget,
            model=self._model,
        )
        self._mode_finder = ModeFinder(adapted, logger)
        self.record = record

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask the model every question, as many at once as the client may be asked.

        What a draw will need is taken before anything is awaited, so that no draw depends on which
        answer comes first.
        """
        recording = None if self._record is None else Recording(self._record, questions)
        draws = [self._draw(question) for question in questions]
        readable = [
            question for question, draw in zip(questions, draws, strict=True) if draw.fault is None
        ]
        try:
            found = iter(await self._find(readable, recording) if readable else ())
        except BaseException:
            for draw in draws:
                draw.put_back()

            raise

        decisions = [
            self._settle(question, draw, *next(found))
            if draw.fault is None
            else self._without_asking(question, draw.fault)
            for question, draw in zip(questions, draws, strict=True)
        ]
        return decisions if recording is None else recording.keep(decisions)

    def prompt_hash(self, question: Question) -> str | None:
        """Return the beginning of the SHA-256 of a question's prompt; None if it has none."""
        return prompt_hash(question, self._settings)

    def skip(self, question: Question) -> None:
        """Draw what a question takes of random numbers, as somebody else has answered it."""
        self._draw(question)

    @property
    def client(self) -> Any:
        """The client that is asked."""
        return self._client

    @property
    def cache(self) -> AnswerStore | None:
        """Where answers are kept; it is not closed here."""
        return self._cache

    @property
    def record(self) -> PromptRecord | None:
        """Where every prompt and reply is kept; None where they are not."""
        return self._record

    @record.setter
    def record(self, record: PromptRecord | None) -> None:
        self._record = record
        self._dispatcher.is_recorded = record is not None

    async def close(self) -> None:
        """Close the client's connections, if it opens new ones later (``client.reopens``)."""
        if getattr(self._client, "reopens", False):
            await self._client.close()

    def _draw(self, question: Question) -> Draw:
        """Take what a question needs besides an answer: an agent with a name, and a number."""
        try:
            agent_name(question.agent)
            if self._pick == "argmax" or self._kind == "chat":
                return Draw()

            stream = self._streams.of(question.agent)
            return Draw(stream, stream.take())
        except Exception as error:  # of the user's agent; the other questions must not suffer
            return Draw(fault=error)

    async def _find(
        self, questions: Sequence[Question], recording: Recording | None
    ) -> list[tuple[Found, str | None]]:
        """Return what the model says to each question, and the hash of its prompt."""
        kind = self._kind or await self._find_kind()
        if kind == "decision":
            self._say_without_reasons()

        make = chat_requests if kind == "chat" else decision_requests
        requests = make(questions, self._settings)
        placed: dict[int, Found] = {}
        hashes: dict[int, str | None] = {}
        # a server that would be asked one after the other anyway is asked in as many slots
        if getattr(self._client, "asks_one_by_one", False):
            requests = (one for request in requests for one in request.one_by_one())
        asked = ((request, 0) for request in hashed(requests, self._settings, hashes))
        chats = await self._ask_all(asked, placed, recording)
        await self._ask_all(chats, placed, recording)

        return [(placed[number], hashes.get(number)) for number in range(len(questions))]

    def _say_without_reasons(self) -> None:
        if self._settings.asks_reason and not self._has_said:
            self._has_said = True
            PROMPT_LOGGER.warning(
                "%s is asked for probabilities, with which it gives no reasons: to have reasons, "
                "ask in mode chat",
                self._model or "the model",
            )

    async def _find_kind(self) -> Kind:
        """Return how to ask: as server and model want it, or in chat while that is unknown."""
        if self.budget.spent() is not None:
            return "chat"

        found = await self._mode_finder.find(self._dispatcher.seconds_allowed())
        if found is not None:
            self._kind = found

        return found or "chat"

    async def _ask_all(
        self,
        requests: Iterable[tuple[Request, int]],
        placed: dict[int, Found],
        recording: Recording | None,
    ) -> list[tuple[Request, int]]:
        """Ask, and note what was found for each question by its place.

        Args:
            requests: What to ask, each with the number of requests that asked the same before.
            placed: Where to note it.
            recording: Where to note what was asked and said, if that is recorded.

        Returns:
            The chats that may help where decision questions failed, with the requests these cost.
        """
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        flights: dict[str, Flight[Reply]] = {}
        asked: list[tuple[Request, int, str]] = []
        chats: list[tuple[Request, int]] = []
        try:
            for request, earlier in requests:
                if request.fault is not None:
                    faulty = [self._without_asking(one, request.fault) for one in request.questions]
                    placed.update(zip(request.places, faulty, strict=True))
                    continue

                identity = request.identity()
                stored = self._stored(request, identity, recording)
                if stored is not None:
                    placed.update(zip(request.places, stored, strict=True))
                    continue

                # what was asked together is not asked again, also if it failed
                if identity not in flights:
                    flights[identity] = self._dispatcher.put(request, identity)

                asked.append((request, earlier, identity))
                # so that the first are under way before the last prompt is built
                if len(asked) % _STARTS_PER_TURN == 0:
                    await asyncio.sleep(0)

            for request, earlier, identity in asked:
                outcome = await flights[identity].outcome()
                cost = outcome.charge()
                cost.attempts += earlier
                chats_instead = outcome.error is not None and self._may_chat(request, outcome.error)
                if recording is not None:
                    (recording.failed if chats_instead else recording.answered)(request, outcome)

                if chats_instead:
                    chats.extend(self._chats_instead(request, cost.attempts))
                else:
                    found = self._read_outcome(request, identity, outcome, cost)
                    placed.update(zip(request.places, found, strict=True))

            return chats
        finally:
            await self._dispatcher.leave(flights.values())

    def _stored(
        self, request: Request, identity: str, recording: Recording | None
    ) -> Sequence[Found] | None:
        """Return the answers that an earlier run has stored, if they are valid."""
        if self._replies is None:
            return None

        reply = self._replies.get(self._replies.key(self._depends_on, identity))
        if reply is None:
            return None

        found = self._read_all(request, reply, "cache", None)
        if any(item.source == "fallback" for item in found):
            return None
        if recording is not None:
            recording.stored(request, reply)

        return found

    def _may_chat(self, request: Request, error: Exception) -> bool:
        """Return True if a chat may help after a failure; where nobody decides, from now on."""
        if self._mode != "auto" or request.kind != "decision":
            return False
        if isinstance(error, DecisionsUnsupportedError):
            self._kind = "chat"
            return True

        # the servers that decide are down, which may pass
        return isinstance(error, CircuitOpenError)

    def _chats_instead(self, request: Request, attempts: int) -> Iterator[tuple[Request, int]]:
        """Return the chats that ask the same; the requests so far stand with the first."""
        for number, chat in enumerate(chat_requests(request.questions, self._settings)):
            places = [request.places[number]]
            yield replace(chat, places=places), attempts if number == 0 else 0

    def _read_outcome(
        self, request: Request, identity: str, outcome: Outcome[Reply], cost: Cost
    ) -> Sequence[Found]:
        """Return the answers to a request; a failure is a fallback for each of its questions."""
        if outcome.error is not None:
            return [
                self._fall_back(question, outcome.error, own)
                for question, own in costs_of(request.questions, cost)
            ]

        assert outcome.result is not None
        found = self._read_all(request, outcome.result, "model", cost)
        if self._replies is not None and all(item.source != "fallback" for item in found):
            key = self._replies.key(self._depends_on, identity)
            self._replies.put(key, outcome.result)

        return found

    def _read_all(
        self, request: Request, reply: Reply, source: Source, cost: Cost | None
    ) -> list[Found]:
        return [
            self._read(request, question, reply, number, source, own)
            for number, (question, own) in enumerate(costs_of(request.questions, cost))
        ]

    def _read(
        self,
        request: Request,
        question: Question,
        reply: Reply,
        number: int,
        source: Source,
        cost: Cost | None,
    ) -> Found:
        try:
            if request.kind == "chat":
                said = reason_in(reply) if request.asks_reason else None
                return Decision(chosen_in(reply, request, number), source, cost=cost, said=said)
            return _Probabilities(chances_in(reply, request, number), source, cost)
        except ReasonerError as error:
            return self._fall_back(question, error, cost)

    def _settle(
        self, question: Question, draw: Draw, found: Found, prompt_hash: str | None
    ) -> Decision:
        """Choose an option by its probability, where the model gave those."""
        if isinstance(found, Decision):
            return replace(found, prompt_hash=prompt_hash)

        weights = list(found.by_option.values())
        number = (
            weights.index(max(weights))
            if self._pick == "argmax"
            else index_at(draw.taken[1], weights)
        )
        rounded = {text: round(chance, 6) for text, chance in found.by_option.items()}

        return Decision(
            question.options[number],
            found.source,
            probabilities=rounded,
            cost=found.cost,
            prompt_hash=prompt_hash,
        )

    def _without_asking(self, question: Question, fault: Exception) -> Decision:
        return self._fall_back(question, fault, Cost(model=self._model))

    def _fall_back(self, question: Question, error: Exception, cost: Cost | None) -> Decision:
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        return Decision(chosen, "fallback", reason=describe(error), cost=cost)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
