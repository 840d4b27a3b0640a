"""The common part of `Reasoner` and `Writer`: a client that is asked within limits.

Concurrent requests for the same decision are made once. Whether a client supports decisions or only
chats is found out with the first question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Coroutine, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, TypedDict, TypeVar, Unpack

from prism.errors import (
    LLMError,
    ReasonerError,
    TimedOutError,
    UselessReplyError,
)
from prism.statechart.reasoner._foreign import (
    adapt,
    check_client,
    check_model,
    depends_on,
    has_slots,
    require_model,
)
from prism.statechart.reasoner._model_client import (
    ChoiceReply,
    ModelClient,
    Reply,
    TextReply,
    has,
    of_kind,
    parameters,
)
from prism.statechart.reasoner._prompts import Kind, Request, answer_schema
from prism.statechart.reasoner._recording import AnswerStore, PromptRecord, ReplyCache
from prism.statechart.reasoner._replies import parse_reasoner_response, read_probabilities
from prism.statechart.reasoner._spending import (
    Allowance,
    Budget,
    Cost,
    Outcome,
    loop_time,
    require_positive,
)
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger, describe, report_warning
from prism.telemetry.events import MODE_UNKNOWN

ResultT = TypeVar("ResultT")

DEFAULT_TIMEOUT_SECONDS = 120.0
DEFAULT_CONCURRENCY = 16
DEFAULT_ATTEMPTS = 3

QUESTION = "q0"
"""The name of the one question in a request to a decision model."""

BUDGET_LOGGER: logging.Logger = logging.getLogger("prism.statechart.budget")
"""The logger for warnings of a budget that are given once and change no log."""


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


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A prompt whose answer is a text.

    Args:
        text: The prompt.
        schema: JSON Schema of the answer, if it must be JSON.
        lacks: Returns 0 for a reply that can be used, else 1.
        variation: A number added to the seed of the sampling.
    """

    text: str
    schema: dict[str, Any] | None
    lacks: Callable[[TextReply], int]
    variation: int = 0


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
    if not has(client, "as_client"):
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
        open: The open requests; other threads may copy it.
    """

    def __init__(
        self, client: Any, *, only_decides: bool = False, **limits: Unpack[Limits]
    ) -> None:
        client, model, patience = opened(client, limits.get("model"), limits.get("patience"))
        concurrency, attempts = limits.get("concurrency"), limits.get("attempts")
        cache, seed = limits.get("cache"), limits.get("seed", 0)
        require_positive(timeout=limits.get("timeout"), concurrency=concurrency, attempts=attempts)
        check_client(client, only_decides=only_decides)
        check_model(client, model, only_decides=only_decides)
        if cache is not None:
            require_model(client, model)

        own = getattr(client, "concurrency", None)
        self.client: Any = client
        self.concurrency: int = own or concurrency or DEFAULT_CONCURRENCY
        self.budget: Budget = limits.get("budget") or Budget()
        self.named: str | None = model
        self.cache: AnswerStore | None = cache
        self.record: PromptRecord | None = limits.get("record")
        self.open: dict[int, OpenRequest] = {}
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

    async def close(self) -> None:
        """Close the client's connections, if it opens new ones later (``client.reopens``)."""
        if getattr(self.client, "reopens", False):
            await self.client.close()

    def _seconds_allowed(self) -> float:
        """Return the seconds that an answer may take now."""
        left = self.budget.seconds_left()
        return self._timeout if left is None else min(left, self._timeout)

    async def _decision(self, request: Request, cost: Cost) -> Reply:
        """Send a request, and again in other words if the model's reply is useless."""
        reply: Reply | None = None
        try:
            reply = await self._reply(request, cost)
            # a decision model would repeat its mistake
            is_chat = request.kind == "chat"
            problem: Exception | None = problem_in(reply, request) if is_chat else None
        except UselessReplyError as error:
            problem = error

        if problem is not None and self.budget.spent() is None:
            better = await self._repaired(request, problem, cost)
            reply = reply if better is None else better
        if reply is None:
            assert problem is not None
            raise problem

        return reply

    async def _repaired(self, request: Request, problem: Exception, cost: Cost) -> Reply | None:
        """Send a request in other words, with its own time limit; None without a reply."""
        further = Cost()
        try:
            return await self._reply(reworded(request, problem), further)
        except LLMError:
            # the first reply, or its problem, is more informative
            return None
        finally:
            cost.follow(further)
            cost.repaired = bool(further.attempts) or None

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
            async with allowance.lease(len(request.text), lambda: (cost.attempts, cost.tokens)):
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
        if isinstance(request, Request) and request.kind == "decision":
            asked, questions = request, {QUESTION: request.choice or {}}

            def lacks(decided: ChoiceReply) -> int:
                return int(problem_in(chances_of(decided), asked) is not None)

            more = _taken(self._taken_by_decisions, lacks=lacks, variation=asked.variation)
            return chances_of(await self.pool.systemone(asked.text, questions, cost=cost, **more))

        chat = request if isinstance(request, TextRequest) else choosing(request)
        messages = [{"role": "user", "content": chat.text}]
        more = _taken(self._taken_by_chat, lacks=chat.lacks, variation=chat.variation)
        said = await self.pool.chat(messages, format=chat.schema, cost=cost, **more)

        return Reply(said.text)

    def _look_for_tokens(self, cost: Cost) -> None:
        """Warn once that a limit on tokens has no effect if the server does not report them."""
        limit = self.budget.max_tokens
        is_told = (cost.input_tokens, cost.output_tokens) != (None, None)
        if limit is None or self._says_no_tokens or is_told:
            return

        self._says_no_tokens = True
        BUDGET_LOGGER.warning(
            "%s at %s reports no token counts, so the limit of %d tokens has no effect on it: "
            "set a limit on calls",
            cost.model or "the model",
            cost.host or "its server",
            limit,
        )


def _taken(names: Container[str], **offered: Any) -> dict[str, Any]:
    """Return those of the arguments that a method names."""
    return {name: value for name, value in offered.items() if name in names}


# Calls that are shared


class Flight(Generic[ResultT]):
    """An open call, and the number of tasks that wait for it."""

    __slots__ = ("key", "task", "waiting")

    def __init__(self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]) -> None:
        self.key = key
        self.waiting = 0
        self.task: asyncio.Task[Outcome[ResultT]] = asyncio.create_task(_outcome_of(make))

    async def outcome(self) -> Outcome[ResultT]:
        """Wait for the outcome; cancelling this leaves the call running."""
        if self.task.done():
            return self.task.result()

        return await asyncio.shield(self.task)


class SingleFlight(Generic[ResultT]):
    """Open calls by their questions: equal calls are made once, and shared.

    A call ends with the last task that waits for it: cancelling one of two leaves it running;
    cancelling both cancels it, and waits until its connection is closed. A call that is
    cancelled in any other way, such as by the client itself, has failed. Each event loop makes
    its own calls.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Flight[ResultT]] = {}

    def join(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Flight[ResultT]:
        """Start a call, or join the open one; `leave` it at the end.

        Args:
            key: What is asked.
            make: Starts the call, if it is not open; it adds to the given cost.
        """
        flight = self._under_way.get(key)
        if (
            flight is None
            or flight.task.done()
            or flight.task.get_loop() is not asyncio.get_running_loop()
        ):
            flight = self._under_way[key] = Flight(key, make)

        flight.waiting += 1

        return flight

    async def leave(self, flights: Iterable[Flight[ResultT]]) -> None:
        """Leave calls; those for which nobody waits are cancelled, and have ended afterwards."""
        ending = [flight.task for flight in flights if self._is_last(flight)]
        if not ending:
            return

        for task in ending:
            task.cancel()

        await asyncio.wait(ending)

    async def do(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Outcome[ResultT]:
        """Return the outcome of a call: `join` it, wait, and `leave` it."""
        flight = self.join(key, make)
        try:
            return await flight.outcome()
        finally:
            await self.leave([flight])

    def __len__(self) -> int:
        """Return the number of open calls."""
        return len(self._under_way)

    def _is_last(self, flight: Flight[ResultT]) -> bool:
        """Leave one call; return True if it is still running, and nobody waits for it."""
        flight.waiting -= 1
        if flight.waiting:
            return False
        if self._under_way.get(flight.key) is flight:
            del self._under_way[flight.key]

        return not flight.task.done() and not flight.task.get_loop().is_closed()


async def _outcome_of(
    make: Callable[[Cost], Coroutine[Any, Any, ResultT]],
) -> Outcome[ResultT]:
    cost = Cost()
    try:
        return Outcome(cost, await make(cost))
    except Exception as error:
        return Outcome(cost, error=error)
    except asyncio.CancelledError as error:
        # cancelled by the client itself; if by the last waiting task, nobody sees this
        failure = LLMError("the client cancelled its own call")
        failure.__cause__ = error
        return Outcome(cost, error=failure)


# Decisions or chats

LONGEST_LOOK_SECONDS = 10.0
"""Seconds to wait for a server to say whether it supports decisions, which needs no model."""

_REST_AFTER_LOOK = 10
"""Factor from the duration of a failed look to the wait before the next one."""


def kind_by(mode: Literal["auto", "decision", "chat"], client: Any) -> Kind | None:
    """Return the kind of request in a mode, or None if the server decides."""
    if mode != "auto":
        return mode
    return None if callable(getattr(client, "systemone", None)) else "chat"


class ModeFinder:
    """Finds out what a client's server and model support, once for all callers.

    Args:
        client: The client.
        logger: Where to report the first failure.
    """

    def __init__(self, client: ModelClient, logger: EventLogger | None) -> None:
        self._client = client
        self._logger = logger
        self._looks: SingleFlight[Kind] = SingleFlight()
        self._next_look = 0.0
        self._has_reported = False

    async def find(self, seconds: float) -> Kind | None:
        """Return the kind of request, or None if it cannot be found out now.

        Args:
            seconds: The time limit.
        """
        if loop_time() < self._next_look:
            return None

        began = loop_time()
        look = await self._looks.do("kind", lambda _cost: self._look(seconds))
        if look.error is None:
            return look.result

        # a server that hangs must not delay every decision
        ended = loop_time()
        self._next_look = max(self._next_look, ended + _REST_AFTER_LOOK * (ended - began))
        if not self._has_reported:
            self._has_reported = True
            report_warning(self._logger, MODE_UNKNOWN, error=describe(look.error))

        return None

    async def _look(self, seconds: float) -> Kind:
        limit = min(seconds, LONGEST_LOOK_SECONDS)
        try:
            async with asyncio.timeout(limit) as timer:
                return "decision" if await self._client.offers_decisions() else "chat"
        except Exception as error:
            if timer.expired():
                raise TimedOutError(f"no answer within {limit:g} s") from error
            raise


# Requests, and reading replies


def choosing(request: Request) -> TextRequest:
    """Return a question as a prompt whose answer is a choice."""
    schema = answer_schema(request.offered(), asks_reason=request.asks_reason)

    def lacks(said: TextReply) -> int:
        return int(problem_in(Reply(said.text), request) is not None)

    return TextRequest(request.text, schema, lacks, request.variation)


def reworded(request: Request, problem: Exception) -> Request:
    """Return a request that says why its last reply was useless, and how to answer.

    It is a single message, since not every client accepts a conversation. It gives a model that
    repeats itself at temperature 0 something new to read.
    """
    if request.kind == "chat":
        listed = ", ".join(state_text(option) for option in request.offered())
        how = f'Choose one of {listed}. Respond with JSON only:\n{{"next_state": "<state_value>"}}'
    else:
        how = "Respond with JSON only, with the letter of one option."

    return replace(request, text=again(request.text, str(problem), how))


def again(prompt: str, problem: str, how: str) -> str:
    """Return a repeated prompt with the problem of the last reply."""
    return f"{prompt.rstrip()}\n\nYour last reply could not be used: {problem}\n{how}\n"


def problem_in(reply: Reply, request: Request) -> ReasonerError | None:
    """Return why a reply cannot be used; None if it can."""
    try:
        answer_in(reply, request)
    except ReasonerError as error:
        return error

    return None


def chances_of(decided: ChoiceReply) -> Reply:
    """Keep the parts of a decision's reply from which an answer is read."""
    answer = decided.answers.get(QUESTION) or {}
    chances = answer.get("probabilities")
    if "option_mass" not in answer:
        return Reply(chances=chances)

    return Reply("", chances, answer.get("choice"), answer["option_mass"])


def answer_in(reply: Reply, request: Request) -> tuple[Any, Mapping[str, float] | None]:
    """Return the option that a reply chooses, or else its probabilities.

    Raises:
        ReasonerError: If it is not valid.
    """
    options = request.question.options
    if request.kind == "decision":
        chosen = reply.choice if reply.is_bare_choice else None
        bare = next((option for option in options if state_text(option) == chosen), None)
        return (
            (bare, None)
            if bare is not None
            else (None, read_probabilities(reply.chances, list(options)))
        )

    for option in options:
        # the exact reply of servers that follow the schema needs no careful reader
        if reply.text == f'{{"next_state": "{state_text(option)}"}}':
            return option, None

    return parse_reasoner_response(reply.text, list(options)), None
