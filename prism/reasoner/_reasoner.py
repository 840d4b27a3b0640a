"""Asking a language model within limits, and deciding with it.

`AsksModel` is what `Reasoner` and `Writer` have in common: a client, whose open calls are shared,
and a reply that is asked for again in other words if it is useless. If a model does not decide, a
fallback does. The contract is the specification's; the prompts are in `_prompts`, the reading of
replies in `_replies`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack, get_args

from prism._faults import place_of
from prism.errors import (
    CircuitOpenError,
    DecisionsUnsupportedError,
    FieldValueError,
    LLMError,
    ReasonerError,
)
from prism.randomness import index_at
from prism.reasoner._faults import OtherLoopError
from prism.reasoner._foreign import (
    ModeFinder,
    adapt,
    check_client,
    check_model,
    depends_on,
    has_slots,
    kind_by,
    require_model,
)
from prism.reasoner._model_client import (
    ModelClient,
    Reply,
    has,
    of_kind,
    parameters,
)
from prism.reasoner._own_prompts import (
    PROMPT_LOGGER,
    OwnPrompts,
    Prompts,
    attribute_names,
)
from prism.reasoner._policy import AgentStreams, Draw
from prism.reasoner._pool import Flight, SingleFlight
from prism.reasoner._prompts import (
    MOST_REASON_CHARACTERS,
    QUESTION,
    STATE_DESCRIPTIONS,
    Kind,
    Mode,
    OptionOrder,
    Pick,
    PromptSettings,
    Request,
    TextRequest,
    answered,
    chances_of,
    prompt_hash,
    requests_for,
)
from prism.reasoner._questions import (
    BaseReasoner,
    Decision,
    Question,
    Source,
    by_changes,
    in_full,
)
from prism.reasoner._recollection import Recollection, recollection_of
from prism.reasoner._recording import AnswerStore, PromptRecord, Recording, ReplyCache
from prism.reasoner._replies._reading import read_reason
from prism.reasoner._spending import (
    Allowance,
    Budget,
    Cost,
    Outcome,
    loop_time,
    require_loop,
    require_one_of,
    require_positive,
)
from prism.statechart._nesting import leaf_texts
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger, describe

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_CONCURRENCY = 16
DEFAULT_ATTEMPTS = 3

BUDGET_LOGGER: logging.Logger = logging.getLogger("prism.statechart.budget")
"""The logger for warnings of a budget that are given once and change no log."""

_STARTS_PER_TURN = 32


# A client, asked within limits


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that has no reply yet.

    Args:
        text: The prompt.
        model: Name of the model, if it is known.
        since: When it was sent, on the clock of the event loop.
    """

    text: str
    model: str | None
    since: float


class AnyModel(Protocol):
    """The description of a model that is asked through its client, such as `prism.llm.Model`."""

    @property
    def model(self) -> str:
        """Its name."""

    @property
    def patience(self) -> float | None:
        """Seconds to wait for it when it fails; None for the default."""

    def as_client(self) -> Any:
        """Return the client to ask, the same one at every call."""


def opened(
    client: Any, model: str | None, patience: float | None
) -> tuple[Any, str | None, float | None]:
    """Return the client to ask, the name of its model if it needs one, and the patience.

    Args:
        client: A client, or the description of a model.
        model: The name, if it was given.
        patience: Seconds to wait for it when it fails, if given.

    Raises:
        ReasonerError: If it is the text of a model.
    """
    if isinstance(client, str):
        raise ReasonerError("a text is not a model: pass prism.llm.Model.of(text)")
    # of its class, since a mock of a client has a method of any name
    if not has(client.__class__, "as_client"):
        return client, model, patience

    described: AnyModel = client
    found = described.as_client()
    # prism's own clients already know their model
    if has_slots(found):
        return found, model, patience
    usual = described.patience if patience is None else patience
    return found, model or described.model or None, usual


class Limits(TypedDict, total=False):
    """The limits for asking a client; see `Reasoner`."""

    model: str | None
    timeout: float
    concurrency: int | None
    attempts: int | None
    patience: float | None
    seed: int
    cache: AnswerStore | None
    budget: Budget | None
    record: PromptRecord | None
    logger: EventLogger | None


class AsksModel:
    """Asks a client within limits, and keeps its answers; see `Reasoner` for the arguments.

    A decision that is already being requested is not requested again, but awaited.

    Args:
        client: The client.
        only_decides: Whether the client is asked decision questions and nothing else.
        limits: The limits.

    Attributes:
        client: The client that is asked.
        concurrency: Number of simultaneous requests that are worthwhile.
        budget: The budget.
        named: The model name given for the client.
        cache: Keeps answers; it is not closed here.
        record: Keeps every prompt and reply, or None.
        pool: The client, wrapped in a pool if it has no slots of its own.
        trial: The cost of trying its servers before a run, which no decision or text has.
        open: The open requests; other threads may copy it.
    """

    def __init__(
        self, client: Any, *, only_decides: bool = False, **limits: Unpack[Limits]
    ) -> None:
        _check(limits)
        client, model, patience = opened(client, limits.get("model"), limits.get("patience"))
        concurrency, attempts = limits.get("concurrency"), limits.get("attempts")
        cache, seed = limits.get("cache"), limits.get("seed", 0)
        require_positive(timeout=limits.get("timeout"), concurrency=concurrency, attempts=attempts)
        check_client(client, only_decides=only_decides)
        check_model(client, model, only_decides=only_decides)
        if cache is not None:
            require_model(client, model)

        own = of_kind(int, getattr(client, "concurrency", None))
        self.client: Any = client
        self.concurrency: int = own or concurrency or DEFAULT_CONCURRENCY
        self.budget: Budget = limits.get("budget") or Budget()
        self.named: str | None = model
        self.cache: AnswerStore | None = cache
        self.record: PromptRecord | None = limits.get("record")
        self.open: dict[int, OpenRequest] = {}
        self.trial: Cost = Cost()
        self.pool: ModelClient = adapt(
            client, model, seed, attempts or DEFAULT_ATTEMPTS, self.concurrency, patience or 0.0
        )
        self._taken_by_chat = parameters(self.pool.chat)[0]
        self._taken_by_decisions = parameters(self.pool.systemone)[0]
        # a server samples by default
        self._samples: bool = getattr(client, "temperature", None) != 0
        self._timeout = limits.get("timeout", DEFAULT_TIMEOUT_SECONDS)
        self._model: str | None = model or of_kind(str, getattr(client, "model", None))
        self._replies = None if cache is None else ReplyCache(cache, limits.get("logger"))
        self._depends_on = depends_on(client, model, seed)
        self._flights: SingleFlight[Reply] = SingleFlight()
        self._says_no_tokens = False
        # to waiting for a busy server that may never decide
        self._prefers_chat = False

    async def close(self) -> None:
        """Close the client's connections, if it opens new ones later (``client.reopens``)."""
        if getattr(self.client, "reopens", False):
            await self.client.close()

    def _seconds_allowed(self) -> float:
        """Return the seconds that an answer may take now."""
        left = self.budget.seconds_left()
        return self._timeout if left is None else min(left, self._timeout)

    async def _decision(self, request: Request, cost: Cost) -> Reply:
        """Send a request, and again in other words, with a time limit of its own, if need be."""

        async def ask(each: Request) -> Reply:
            if each is request:
                return await self._reply(each, cost)

            further = Cost()
            try:
                return await self._reply(each, further)
            finally:
                cost.follow(further)
                cost.repaired = bool(further.attempts) or None

        return await answered(request, ask, lambda: self.budget.spent() is None)

    async def _reply(self, request: Request | TextRequest, cost: Cost) -> Reply:
        """Send a request, and return the reply.

        Args:
            request: What to ask.
            cost: Collects the cost, however the request ends.
        """
        cost.model = self._model
        if self.record is not None:
            cost.trail = []

        most = cost.allowance.most_attempts
        allowance = cost.allowance = Allowance(self.budget, self._timeout, most)
        allowance.require_some()
        self.open[id(cost)] = OpenRequest(request.text, self._model, loop_time())
        try:
            async with allowance.lease(lambda: (cost.attempts, cost.tokens)):
                # the client itself reports when the request has a slot
                reply = await self._sent(request, cost)
                self._look_for_tokens(cost)
                return reply
        except LLMError as error:
            cost.host = cost.host or error.host
            raise
        finally:
            del self.open[id(cost)]
            cost.settle(*allowance.seconds_gone())

    async def _sent(self, request: Request | TextRequest, cost: Cost) -> Reply:
        if request.choice is not None:
            more = _taken(
                self._taken_by_decisions,
                lacks=lambda decided: request.lacks(chances_of(decided)),
                variation=request.variation,
                may_chat=self._prefers_chat,
            )
            asked = {QUESTION: request.choice}
            return chances_of(await self.pool.systemone(request.text, asked, cost=cost, **more))

        more = _taken(
            self._taken_by_chat,
            lacks=lambda said: request.lacks(Reply(said.text)),
            variation=request.variation,
        )
        messages = [{"role": "user", "content": request.text}]
        said = await self.pool.chat(messages, format=request.schema, cost=cost, **more)
        return Reply(said.text)

    def _look_for_tokens(self, cost: Cost) -> None:
        """Warn once that a limit on tokens has no effect if the server does not report them."""
        limit = self.budget.max_tokens
        is_told = (cost.input_tokens, cost.output_tokens) != (None, None)
        if limit is None or self._says_no_tokens or is_told:
            return

        self._says_no_tokens = True
        BUDGET_LOGGER.warning(
            "%s%s reports no token counts, so the limit of %d tokens has no effect on it: "
            "set a limit on calls",
            cost.model or type(self.client).__name__,
            f" at {cost.host}" if cost.host else "",
            limit,
        )


_NEEDED = {
    "budget": ("a Budget, such as Budget(max_calls=300)", {"take", "add", "spent"}),
    "record": ("a record of prompts, such as a PromptLog", {"new_id", "keep"}),
    "cache": ("a store of answers, such as an AnswerCache", {"get", "put"}),
    "logger": ("a logger of structlog", {"info", "warning", "error"}),
}
"""What must be given for a limit, and the methods that it is asked for."""


def _check(limits: Mapping[str, Any]) -> None:
    """Refuse limits that are unknown, or could not be used when the first question is asked."""
    for name in limits.keys() - Limits.__annotations__.keys():
        from difflib import get_close_matches

        near = get_close_matches(name, Limits.__annotations__, 1)
        guess = f" (did you mean {near[0]!r}?)" if near else ""
        known = ", ".join(Limits.__annotations__)
        raise TypeError(
            f"there is no option {name!r}{guess}: the options of asking are {known}; limits of "
            "calls and tokens are those of a Budget, and what a server is told, such as a "
            "temperature, belongs to a Model"
        )

    for name, (what, methods) in _NEEDED.items():
        value = limits.get(name)
        if value is not None and not all(hasattr(value, method) for method in methods):
            raise FieldValueError(f"{name} must be {what}, got {value!r}")


def _taken(names: Container[str], **offered: Any) -> dict[str, Any]:
    """Return those of the arguments that a method names."""
    return {name: value for name, value in offered.items() if name in names}


# Decisions


class _Asked(NamedTuple):
    """An open request.

    Args:
        request: The request.
        told: The same request with the options in the order of the prompt.
        identity: The identity of the question.
        is_first: Whether it is the first with this identity, so its answer has this agent's seed.
    """

    request: Request
    told: Request
    identity: str
    is_first: bool = False


class Reasoner(AsksModel, BaseReasoner):
    """Asks a language model which of several enabled transitions an agent takes.

    If anything goes wrong with the model, the decision is the fallback, with a warning that gives
    the reason. So it is if the agent or the context raises an exception, whose place is then told
    once by the logger ``prism.statechart.prompts``; one of a prompt's function is raised.

    If the client's ``temperature`` is 0, equal questions are asked once. At any other or an unknown
    temperature, each agent is asked with its own seed from its random stream. Agents with the same
    prompt then answer independently, and identically in every run with the same seed.

    Args:
        client: A `prism.llm.Model`, or anything with an async ``chat``, ``get_response`` or
            ``run``: prism's `OllamaChatClient`, ``ollama.AsyncClient`` and ``openai.AsyncOpenAI``
            (which need ``model``), an agent-framework client or agent, or a `ModelClient` of your
            own.
        mode: ``decision`` asks a decision model for the options' probabilities, ``chat`` lets a
            model write its choice, and ``auto`` uses decisions if server and model support them.
        pick: How to use probabilities: ``draw`` an option with the agent's random stream, or take
            the most likely one (``argmax``). The random number is drawn when the question is asked,
            whatever the answer.
        fallback: The state to take if the model gives no valid answer and this is an option; by
            default the first option, in the chart's order of transitions.
        model: Model name, for clients that need it with every call.
        descriptions: Meaning of each state for the prompt, by state; `STATE_DESCRIPTIONS` by
            default.
        prompt: The model's prompt: a template with ``{fields}``, a function of the `Question`, or a
            mapping to these from the names of charts, from states, or from the names of charts and
            then states. Memory, options and how to reply follow, unless the template names them. By
            default the prompt of the specification in the social feed, and elsewhere one with
            chart, options, agent and event; ``docs/models.md`` shows them.
        attributes: Attributes of the agents to include in the prompt.
        memory: A `Recollection` of what agents remember when they decide, or a number of things;
            None for no memory.
        reasons: Whether to ask for a reason besides the choice, which is logged as ``said``;
            decision models give none.
        option_order: The order of options in the prompt: ``chart`` for the order of the chart, or
            ``shuffled`` for one of at most four rotations, drawn by agent and question, since
            models prefer certain letters and positions. Cached answers count for every order.
        timeout: Seconds that one answer may take, including retries. The time counts once the
            question has a slot of the client, and while nothing is served at all.
        concurrency: Simultaneous requests, for a client without its own ``concurrency``;
            16 by default.
        attempts: Requests for one question in case of temporary failures (a busy server, a broken
            connection, a time-out), for a client without its own retries; 3 by default. An internal
            error of the server is retried once. 1 for no retries.
        patience: Seconds to wait for a failing client before questions to it fail at once, for a
            client without its own slots; None means 0, and 60 in a run.
        seed: Seed of the draws of agents without a stream, and of sampling if the client takes a
            seed.
        cache: Keeps answers from one run to the next, by model, options, prompt and seed. A cache
            that raises is reported once and no longer used; answers that cannot be read are asked
            for again. If the client is an agent with its own instructions, pass a ``model`` that
            names both model and instructions.
        budget: Limits of the run; when one is spent, decisions fall back.
        record: Keeps every prompt and reply, which may be private.
        logger: A structlog logger for decisions.

    Raises:
        ReasonerError: If the client has none of the three methods, lacks ``systemone`` in mode
            ``decision``, or blocks the event loop; if it needs a model and there is none; if there
            is a cache and neither the client nor ``model`` names a model; or if a prompt names an
            unknown field.
        OtherLoopError: (an LLMError) when it is asked in two event loops at once.
        FieldValueError: If mode, pick or the order of options is unknown, if an attribute is not a
            name, if time-out, concurrency, attempts or memory are not above 0, or if concurrency or
            attempts are given for a client that has its own; when a question is asked, if the
            fallback is a text that is no state of the chart.
    """

    def __init__(
        self,
        client: Any,
        *,
        mode: Mode = "auto",
        pick: Pick = "draw",
        fallback: Any = None,
        descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS,
        prompt: Prompts | None = None,
        attributes: Sequence[str] = (),
        memory: Recollection | int | None = None,
        reasons: bool = False,
        option_order: OptionOrder = "chart",
        **limits: Unpack[Limits],
    ) -> None:
        require_one_of("mode", mode, get_args(Mode))
        require_one_of("pick", pick, get_args(Pick))
        require_one_of("option_order", option_order, get_args(OptionOrder))
        logger, seed = limits.get("logger"), limits.get("seed", 0)
        BaseReasoner.__init__(self, logger)
        AsksModel.__init__(self, client, only_decides=mode == "decision", **limits)
        _refuse_own_limits(
            self.client, type(client).__name__, limits.get("concurrency"), limits.get("attempts")
        )
        self._mode, self._prefers_chat = mode, mode == "auto"
        self._kind: Kind | None = kind_by(mode, self.client)
        self._mode_finder = ModeFinder(self.pool, logger)
        self._pick = pick
        self._fallback = fallback
        self._streams = AgentStreams(seed)
        self.memory: Recollection | None = recollection_of(memory)
        self._settings = PromptSettings(
            descriptions,
            None if prompt is None else OwnPrompts(prompt, has_memory=memory is not None),
            attribute_names(attributes),
            self.memory,
            reasons,
        )
        self._order_seed = seed if option_order == "shuffled" else None
        self._has_said = False
        self._told_places: set[str] = set()

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Ask every question, with as many simultaneous ones as the client allows.

        Random numbers are drawn before anything is awaited, so no draw depends on which answer
        comes first.
        """
        require_loop()
        for question in questions:
            self._require_fallback(question)

        told = [by_changes(question) for question in questions]
        recording = None if self.record is None else Recording(self.record, told)
        draws = [self._draw(question) for question in told]
        try:
            decisions = await self._decisions(list(zip(told, draws, strict=True)), recording)
        except BaseException:
            for draw in draws:
                draw.put_back()

            raise

        if recording is not None:
            decisions = recording.keep(decisions)

        return [*map(in_full, decisions, told, questions)]

    def _require_fallback(self, question: Question) -> None:
        """Refuse a fallback in plain text that is no state of the chart that asks.

        A member of another enum may be meant for another chart of the same reasoner.

        Raises:
            FieldValueError: If it is one; lists the states.
        """
        fallback, chart = self._fallback, question.chart
        if type(fallback) is not str or chart is None:
            return

        states = [state_text(state) for state in chart.states]
        if not {*leaf_texts(fallback)} <= {*states}:
            raise FieldValueError(
                f"fallback must be a state of chart {chart.name!r}, got {fallback!r}: use one of "
                f"{', '.join(states)}"
            )

    async def _decisions(
        self, drawn: Sequence[tuple[Question, Draw]], recording: Recording | None
    ) -> list[Decision]:
        """Ask the valid questions, and choose with the random numbers drawn before."""
        readable = [(question, draw) for question, draw in drawn if draw.fault is None]
        found = iter(await self._find(readable, recording) if readable else ())

        return [self._decided(question, draw, found) for question, draw in drawn]

    def prompt_hash(self, question: Question) -> str | None:
        """Return the beginning of the SHA-256 of a question's prompt; None if it has none."""
        return prompt_hash(by_changes(question), self._settings)

    @property
    def chooses_acts(self) -> bool:
        """Whether agents of the feed choose among all acts, which they do if a model decides."""
        return True

    def skip(self, question: Question) -> None:
        """Draw the random numbers of a question that was answered elsewhere."""
        self._draw(question)

    def _draw(self, question: Question) -> Draw:
        """Get the random number of a decision, if it needs one."""
        try:
            if not self._samples and (self._pick == "argmax" or self._kind == "chat"):
                return Draw()

            stream = self._streams.of(question.agent)
            return Draw(stream, stream.take())
        except Exception as error:  # of the user's agent, which must not affect other questions
            return Draw(fault=error)

    async def _find(
        self, drawn: Sequence[tuple[Question, Draw]], recording: Recording | None
    ) -> list[Decision]:
        """Return the model's answer to each question; one with probabilities chooses nothing."""
        kind = self._kind or await self._find_kind()
        if kind == "decision":
            self._say_without_reasons()

        requests = requests_for(kind, [question for question, _ in drawn], self._settings)
        if self._samples:
            requests = (self._sampled(each, drawn[each.place][1].variation) for each in requests)

        placed: dict[int, Decision] = {}
        further = await self._ask_all(requests, placed, recording)
        while further:
            further = await self._ask_all(further, placed, recording)

        return [placed[number] for number in range(len(drawn))]

    def _sampled(self, request: Request, variation: int) -> Request:
        """Return a request with its own seed, for a model that samples.

        Requests for probabilities are shared, since the agents draw from these.
        """
        return replace(request, variation=variation, is_apart=request.kind == "chat")

    def _say_without_reasons(self) -> None:
        if self._settings.asks_reason and not self._has_said:
            self._has_said = True
            PROMPT_LOGGER.warning(
                "%s is asked for probabilities, so it gives no reasons: to get reasons, use mode "
                "chat",
                self._model or "the model",
            )

    async def _find_kind(self) -> Kind:
        """Return the kind of request that server and model support, or chat if unknown."""
        if self.budget.spent() is not None:
            return "chat"

        found = await self._mode_finder.find(self._seconds_allowed())
        if found is not None:
            self._kind = found

        return found or "chat"

    async def _ask_all(
        self,
        requests: Iterable[Request],
        placed: dict[int, Decision],
        recording: Recording | None,
    ) -> list[Request]:
        """Ask, and store the result for each question by its index.

        Args:
            requests: The requests.
            placed: Collects the results.
            recording: Collects the prompts and replies.

        Returns:
            Further requests: chats for failed decision questions, and separate ones for agents that
            cannot share an answer.
        """
        flights: dict[str, Flight[Reply]] = {}
        asked: list[_Asked] = []
        further: list[Request] = []
        try:
            for request in requests:
                identity = request.identity()
                known = self._known(request, identity, recording)
                if known is not None:
                    placed[request.place] = replace(known, prompt_hash=request.hash)
                    continue

                asked.append(self._put(request, identity, flights))
                # so that the first requests are open before the last prompt is built
                if len(asked) % _STARTS_PER_TURN == 0:
                    await asyncio.sleep(0)

            for each in asked:
                outcome = await flights[each.identity].outcome()
                again = self._again(each, outcome, recording)
                if again is not None:
                    further.append(again)
                else:
                    placed[each.told.place] = self._answered(each, outcome, recording)

            return further
        finally:
            await self._flights.leave(flights.values())

    def _put(self, request: Request, identity: str, flights: dict[str, Flight[Reply]]) -> _Asked:
        """Send a request, unless the same one is already open."""
        seed = self._order_seed
        told = request if seed is None else request.shuffled(self._settings, seed)
        # a shared request is not repeated, even if it failed
        if identity in flights:
            return _Asked(request, told, identity)

        flight = self._flights.join(identity, partial(self._decision, told))
        flights[identity] = flight

        return _Asked(request, told, identity, is_first=flight.waiting == 1)

    def _again(
        self, asked: _Asked, outcome: Outcome[Reply], recording: Recording | None
    ) -> Request | None:
        """Return the next request, if the outcome of this one is no answer for its agent."""
        request, error = asked.request, outcome.error
        if not asked.is_first and self._is_of_one_agent(request, outcome.result):
            return request.apart()
        if error is None or not self._may_chat(request, error):
            return None

        if recording is not None:
            recording.failed(asked.told, outcome)

        (chat,) = requests_for("chat", [request.question], self._settings)
        chat = self._sampled(chat, request.variation) if self._samples else chat
        return replace(chat, place=request.place, before=outcome.charge())

    def _answered(
        self, asked: _Asked, outcome: Outcome[Reply], recording: Recording | None
    ) -> Decision:
        """Return the result of a request; a failure is a fallback."""
        request, reply = asked.told, outcome.result
        if recording is not None:
            recording.answered(request, outcome)

        if isinstance(outcome.error, OtherLoopError):
            raise outcome.error
        cost = outcome.charge()
        if request.before is not None:
            cost.precede(request.before)
        if outcome.error is not None:
            found = self._fall_back(request.question, outcome.error, cost)
        else:
            assert reply is not None
            found = self._read(request, reply, "model", cost)
            if self._replies is not None and found.source != "fallback":
                is_own = self._is_of_one_agent(request, reply)
                identity = asked.request.apart().identity() if is_own else asked.identity
                self._replies.put(self._replies.key(self._depends_on, identity), reply)

        return replace(found, prompt_hash=request.hash)

    def _known(
        self, request: Request, identity: str, recording: Recording | None
    ) -> Decision | None:
        """Return the answer to a request that is invalid, or was sent before."""
        if request.fault is not None:
            # a prompt that was too long to send is worth recording
            if recording is not None and request.text:
                recording.stored(request, None)
            return self._without_asking(request.question, request.fault)
        reply = self._kept(request, identity)
        if reply is None:
            return None

        found = self._read(request, reply, "cache", None)
        if found.source == "fallback":
            return None

        if recording is not None:
            recording.stored(request, reply)

        return found

    def _kept(self, request: Request, identity: str) -> Reply | None:
        """Return the cached reply to a request, or to the same one only for its agent."""
        if self._replies is None:
            return None

        reply = self._replies.get(self._replies.key(self._depends_on, identity))
        if reply is None and self._samples and not request.is_apart:
            return self._kept(request.apart(), request.apart().identity())
        return reply

    def _is_of_one_agent(self, request: Request, reply: Reply | None) -> bool:
        """Return True if a reply was sampled for the agent that asked first."""
        is_shared = self._samples and not request.is_apart
        return is_shared and reply is not None and reply.is_bare_choice

    def _may_chat(self, request: Request, error: Exception) -> bool:
        """Return True if a chat may help after a failure; chat from now on if no server decides."""
        if self._mode != "auto" or request.kind != "decision":
            return False
        if isinstance(error, DecisionsUnsupportedError):
            self._kind = "chat"
            return True

        # the servers that decide are down, which may be temporary
        return isinstance(error, CircuitOpenError)

    def _read(self, request: Request, reply: Reply, source: Source, cost: Cost | None) -> Decision:
        try:
            chosen, chances = request.answer_in(reply)
        except ReasonerError as error:
            found = self._fall_back(request.question, error, cost)
            return replace(found, reason=f"{found.reason}{'' if cost is None else cost.cut_short}")

        return Decision(
            chosen,
            source,
            probabilities=chances,
            cost=cost,
            said=read_reason(reply.text, MOST_REASON_CHARACTERS) if request.asks_reason else None,
            option_mass=reply.option_mass,
            rotation=request.rotation,
        )

    def _decided(self, question: Question, draw: Draw, answers: Iterator[Decision]) -> Decision:
        """Choose an option by its probability, if the model gave probabilities."""
        if draw.fault is not None:
            return self._without_asking(question, draw.fault)

        found = next(answers)
        if found.probabilities is None:
            return replace(found, sampling_seed=draw.variation) if self._samples else found

        weights = list(found.probabilities.values())
        is_drawn = self._pick == "draw"
        number = index_at(draw.taken[1], weights) if is_drawn else weights.index(max(weights))
        rounded = {text: round(chance, 6) for text, chance in found.probabilities.items()}
        return replace(found, chosen=question.options[number], probabilities=rounded)

    def _without_asking(self, question: Question, fault: Exception) -> Decision:
        place = place_of(fault)
        if place is not None and str(place) not in self._told_places:
            self._told_places.add(str(place))
            PROMPT_LOGGER.warning(
                "a question is not asked, since its agent or context raised %s (%s)",
                describe(fault),
                place,
            )

        return self._fall_back(question, fault, Cost(model=self._model))

    def _fall_back(self, question: Question, error: Exception, cost: Cost | None) -> Decision:
        options = question.options
        chosen = next((option for option in options if option == self._fallback), options[0])
        return Decision(chosen, "fallback", reason=describe(error), cost=cost)


def _refuse_own_limits(
    client: Any, given: str, concurrency: int | None, attempts: int | None
) -> None:
    """Refuse limits for a client that has its own and would ignore them.

    Args:
        client: The client.
        given: The type of what the user gave: that of the client, or of a description of a model.
        concurrency: The limit on simultaneous questions, if given.
        attempts: The limit on attempts, if given.
    """
    own = getattr(client, "concurrency", None)
    if own and concurrency is not None:
        raise FieldValueError(
            f"concurrency must be omitted, got {concurrency!r}: {given} has its own, {own!r}"
        )
    if attempts is not None and has_slots(client):
        raise FieldValueError(
            f"attempts must be omitted, got {attempts!r}: {given} retries by itself"
        )
