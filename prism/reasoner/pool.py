"""A model on its servers: their health and their slots, and how a question takes one.

A pool is a queue of slots: a question takes one, and gives it back with its answer.

A server has a slot for each question that it answers at once. After a failure its slot stays away
for a pause, and pauses grow, so that a failing server is asked less and less until it answers
again; a busy server says itself how long. A server that does not answer in time loses half of its
slots. There is no other limit, balance or circuit breaker.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from operator import itemgetter
from random import uniform
from typing import Any, ClassVar

from prism.errors import (
    BudgetSpentError,
    CircuitOpenError,
    LLMError,
    ModelMissingError,
    TimedOutError,
)
from prism.reasoner.faults import OtherLoopError, is_retryable, is_unknown, may_be_an_outage
from prism.reasoner.requests import ChatReply, Cost, Request, loop_time, of_kind

LOGGER = logging.getLogger("prism.llm")

FAILURES_TO_REST = 5
"""Failures in a row after which a server counts as gone."""

_FIRST_PAUSE_SECONDS = 0.2

_LONGEST_PAUSE_SECONDS = 5.0

_LONGEST_WAIT_SECONDS = 60.0
"""The longest pause that a server may ask for."""


def random_backoff(failures: int) -> float:
    """Return the seconds to leave a slot alone after a number of failures in a row."""
    longest = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_SECONDS)
    return uniform(0.5, 1.0) * longest


class Server(ABC):
    """A model server, or another library's client, with its slots and its health.

    Args:
        address: Its name in messages.
        model: The model that it is asked for.
        limit: Questions that it answers at once.
        patience: Seconds to wait for it when it fails; 0 not to wait.

    Attributes:
        open: Questions that it is answering.
        answers: Questions that it has answered.
        failures: Failures in a row.
        trouble: Its last failure.
        busy_until: When it wants to be asked again, on the clock of the event loop.
        backoff: Returns the seconds to leave a slot alone after a number of failures in a row.
    """

    def __init__(self, address: str, model: str, limit: int = 1, patience: float = 0.0) -> None:
        self.address: str = address
        self.model: str = model
        self.limit: int = limit
        self.patience: float = patience
        self.open: int = 0
        self.pausing: int = 0
        self.answers: int = 0
        self.failures: int = 0
        self.failing_since: float = 0.0
        self.busy_until: float = 0.0
        self.trouble: str = ""
        self.backoff: Callable[[int], float] = random_backoff
        self._halved_at = 0.0

    @abstractmethod
    async def chat(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Send a conversation."""

    @property
    def has_room(self) -> bool:
        """Whether a slot is free; a server that is gone has one, to be probed."""
        slots = 1 if self.is_gone else self.limit
        return self.open + self.pausing < slots and loop_time() >= self.busy_until

    @property
    def is_gone(self) -> bool:
        """Whether it has failed several times in a row."""
        return self.failures >= FAILURES_TO_REST

    @property
    def is_waited_for(self) -> bool:
        """Whether it has been failing for less time than its patience."""
        return self.failures > 0 and loop_time() < self.failing_since + self.patience

    @property
    def is_given_up(self) -> bool:
        """Whether questions to it fail at once."""
        return self.is_gone and not self.is_waited_for

    def answered(self) -> None:
        """Note an answer."""
        if self.is_gone:
            gone = loop_time() - self.failing_since
            LOGGER.warning("%s at %s answers again, after %.1f s", self.model, self.address, gone)
        self.failures = 0
        self.answers += 1

    def failed(self, error: LLMError, sent_at: float) -> float:
        """Note a failure; return the seconds to leave its slot alone.

        Args:
            error: The failure.
            sent_at: When the question was sent, on the clock of the event loop.
        """
        self.trouble = str(error)
        self.failures += 1
        if self.failures == 1:
            self.failing_since = loop_time()
        if self.failures == FAILURES_TO_REST:
            LOGGER.warning(
                "%s at %s is failing, and will only be probed until it answers: %s",
                *(self.model, self.address, self.trouble),
            )
        if isinstance(error, TimedOutError) and self.answers and sent_at >= self._halved_at:
            self._halve()

        asks_to_wait = min(error.retry_after or 0.0, _LONGEST_WAIT_SECONDS)
        self.busy_until = max(self.busy_until, loop_time() + asks_to_wait)
        return max(self.backoff(self.failures), asks_to_wait)

    def _halve(self) -> None:
        """Halve the slots of a server that works, but not in time."""
        if self.open > 1:
            self._halved_at = loop_time()
            self.limit = self.open // 2
            LOGGER.warning(
                "%s at %s did not answer %d questions at once in time: from now on it is asked %d",
                *(self.model, self.address, self.open, self.limit),
            )


def _least_doubtful(server: Server) -> tuple[int, bool, float]:
    """Order servers: the least failing first, then one that has answered, then the least busy."""
    return server.failures, not server.answers, server.open / server.limit


class Slots:
    """The slots of some servers, and the questions that wait for one.

    Attributes:
        waiting: The questions that wait, in order.
    """

    def __init__(self) -> None:
        self._tickets = count()
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def take(self, able: Collection[Server], cost: Cost) -> Server:
        """Take a slot of the least failing, least busy of these servers, as soon as one is free.

        Raises:
            CircuitOpenError: If all of them are given up.
        """
        ticket = next(self._tickets)
        while not (free := [each for each in able if each.has_room]):
            if all(each.is_given_up for each in able):
                why = "; ".join(each.trouble for each in able)
                raise CircuitOpenError(f"circuit open after repeated failures: {why}")
            await self._wait(ticket)

        server = min(free, key=_least_doubtful)
        server.open += 1
        if cost.on_slot is not None:
            cost.on_slot()
        return server

    async def _wait(self, ticket: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # a question that was woken in vain returns to its position in the queue
        insort(self.waiting, (ticket, turn), key=itemgetter(0))
        try:
            await turn
        except asyncio.CancelledError:
            self.waiting = [each for each in self.waiting if each[1] is not turn]
            # pass the turn on
            self.wake(1 if turn.done() and not turn.cancelled() else 0)
            raise

    def give_back(self, server: Server, pause: float = 0.0) -> None:
        """Give a slot back, free after a pause."""
        server.open -= 1
        if not pause:
            # several, if the server has just begun to answer again
            self.wake(server.limit - server.open - server.pausing)
            return

        self.pause(server, pause)

    def pause(self, server: Server, seconds: float) -> None:
        """Keep a slot of a server back for some seconds."""
        loop = asyncio.get_running_loop()
        server.pausing += 1
        loop.call_later(seconds, self._end_pause, server)
        # questions fail once there is nothing left to wait for: now, or after the patience
        if server.is_given_up:
            self.wake(len(self.waiting))
        elif server.is_gone:
            left = server.failing_since + server.patience - loop_time()
            loop.call_later(left, lambda: self.wake(len(self.waiting)))

    def _end_pause(self, server: Server) -> None:
        server.pausing -= 1
        self.wake(server.limit)

    def wake(self, number: int) -> None:
        """Let the first questions in the queue look for a slot again."""
        while number > 0 and self.waiting:
            _, turn = self.waiting.pop(0)
            if not turn.done():
                turn.set_result(None)
                number -= 1


class Pool:
    """One model on some servers.

    After a temporary failure a question is asked again, on another server if there is one. When its
    attempts are used up, it goes on waiting while the server answers nobody, within its patience;
    if the server has answered another question meanwhile, this one fails. A question that a server
    refuses, or answers uselessly, is sent to one other server; if that one answers it, the first
    server has failed.

    Args:
        servers: The servers.
        model: Name of the model.
        attempts: Requests for one question in case of temporary failures.

    Attributes:
        concurrency: Questions that all servers together answer at once.
        reply_seconds: Seconds that a server may take for one reply; 0 if it has no such limit.
    """

    reply_seconds: float = 0.0
    sends_schemas: ClassVar[bool] = False
    """Whether the schema of a request goes to the servers, which follow it."""

    def __init__(self, servers: Iterable[Server], model: str, *, attempts: int = 3) -> None:
        self.servers: tuple[Any, ...] = tuple(servers)
        self.model: str = model
        self.concurrency: int = sum(each.limit for each in self.servers)
        self._attempts = attempts
        self._slots = Slots()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = 0

    @property
    def waiting(self) -> int:
        """Number of questions that wait for a slot."""
        return len(self._slots.waiting)

    @property
    def trouble(self) -> str:
        """The last failure of each server that is failing."""
        return "; ".join(each.trouble for each in self.servers if each.failures)

    async def chat(
        self,
        messages: Any,
        *,
        format: dict[str, Any] | None = None,  # noqa: A002 - as Ollama names it
        cost: Cost | None = None,
    ) -> ChatReply:
        """Send a conversation.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.
            cost: Collects the cost.

        Raises:
            LLMError: If no server answers.
        """
        return await self.ask(Request(messages, format), cost or Cost())

    async def ask(self, request: Request[Any], cost: Cost) -> ChatReply:
        """Send a request, to another server too if the reply of the first is useless.

        Args:
            request: The request.
            cost: Collects the cost.

        Raises:
            LLMError: If no server answers.
        """
        with self.entered():
            return await _Asking(self._slots, self._attempts, request, cost).answer(self.servers)

    @property
    def sampling(self) -> dict[str, Any]:
        """The parameters of sampling that the servers accept."""
        sent = ((each.dropped, *item) for each in self.servers for item in each.sampling.items())
        return {name: value for dropped, name, value in sent if name not in dropped}

    async def smallest_window(self) -> int | None:
        """Return the smallest window that questions have on any server; None if unknown."""
        return None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a question of this event loop inside the block.

        Raises:
            OtherLoopError: If another loop has open questions.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._open and self._loop is not None and not self._loop.is_closed():
                raise OtherLoopError(
                    "the client is in use by another event loop: make one client for each event "
                    "loop"
                )
            self._loop, self._open, self._slots = loop, 0, Slots()
            for server in self.servers:
                server.open = server.pausing = 0
                server.busy_until = 0.0

        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class _Asking:
    """One question on its way through the servers of a pool."""

    def __init__(self, slots: Slots, attempts: int, request: Request[Any], cost: Cost) -> None:
        self._slots = slots
        limit = request.attempts
        self._attempts = attempts if limit is None else limit - cost.attempts
        self._request, self._cost = request, cost
        self._tries = 0
        self._answers_before: dict[Server, int] = {}

    async def answer(self, servers: Sequence[Server]) -> ChatReply:
        """Return the first good answer of a server, or else the first useless one."""
        left, doubted = list(servers), None
        has_others, lacks = len(servers) > 1, self._request.lacks
        while True:
            try:
                server, outcome = await self._outcome(left)
            except LLMError as error:
                if doubted is None or isinstance(error, BudgetSpentError):
                    raise
                return _result(doubted[1])

            if not isinstance(outcome, LLMError) and not (has_others and lacks(outcome)):
                server.answered()
                if doubted is not None:
                    # its answer was useless, and another server's is not
                    useless = of_kind(LLMError, doubted[1]) or LLMError("gave no valid answer")
                    doubted[0].failed(useless, loop_time())
                return outcome

            others = [each for each in left if each is not server]
            # prefer one that has given a good answer
            left = [each for each in others if each.answers] or others
            if isinstance(outcome, ModelMissingError) and left and doubted is None:
                server.failed(outcome, loop_time())
            elif doubted is not None or not left:
                return _result(outcome if doubted is None else doubted[1])
            else:
                doubted = server, outcome
            self._slots.pause(server, server.backoff(server.failures + 1))

    async def _outcome(self, able: Sequence[Server]) -> tuple[Server, ChatReply | LLMError]:
        """Return the reply or the refusal of a server, after retries of temporary failures.

        Raises:
            LLMError: If it fails too often.
        """
        pause = 0.0
        while True:
            # another server is asked at once
            if pause and len(able) == 1:
                await asyncio.sleep(pause)
            server = await self._slots.take(able, self._cost)
            pause, sent_at = 0.0, loop_time()
            answers_before = self._answers_before.setdefault(server, server.answers)
            try:
                return server, await server.chat(self._request, self._cost)
            except BudgetSpentError:
                raise
            except LLMError as error:
                # a server that has never answered refuses the question: it is not down
                may_recover = bool(server.patience and server.answers and may_be_an_outage(error))
                # who says how often to ask means it of any failure
                may_recover |= self._request.attempts is not None and is_unknown(error)
                if not (is_retryable(error) or may_recover):
                    return server, error
                pause = server.failed(error, sent_at)
                self._tries += 1
                is_the_questions = server.answers > answers_before
                may_wait = not is_the_questions and any(each.is_waited_for for each in able)
                is_over = self._tries >= self._attempts and not may_wait
                if is_over or all(each.is_given_up for each in able):
                    raise
            finally:
                self._slots.give_back(server, pause)


def _result(outcome: ChatReply | LLMError) -> ChatReply:
    if isinstance(outcome, LLMError):
        raise outcome
    return outcome
