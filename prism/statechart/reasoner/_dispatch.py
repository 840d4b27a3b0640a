"""Putting requests to a client, within the limits of slots, time and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prism.errors import BudgetSpentError, LLMError, ReasonerError, TimedOutError
from prism.statechart.reasoner._budget import Budget
from prism.statechart.reasoner._clients import Reply, ask_chat, ask_decision
from prism.statechart.reasoner._requests import MOST_DECISION_BYTES, Request
from prism.statechart.reasoner._single_flight import Outcome, SharedCalls

if TYPE_CHECKING:
    from asyncio import Semaphore


class Asker:
    """Asks a client; what several ask at the same time is asked once.

    Args:
        client: What to ask; see `prism.statechart.Reasoner`.
        slots: Requests under way at once.
        timeout: Seconds to wait for one answer, retries included.
        budget: What may be spent.
        model: Model name, for clients that must be told with every call.
        seed: Seed of sampling, where the client takes one.
    """

    def __init__(
        self,
        client: Any,
        slots: int,
        timeout: float,
        budget: Budget,
        *,
        model: str | None,
        seed: int,
    ) -> None:
        self._client = client
        self._limit = slots
        self._timeout = timeout
        self._budget = budget
        self._model = model
        self._seed = seed
        self._refused: set[str] = set()
        self._shared: SharedCalls[Reply] = SharedCalls()
        self._slots: tuple[Any, Semaphore] | None = None

    async def ask(self, request: Request, identity: str) -> Outcome[Reply]:
        """Get what comes of a request.

        Args:
            request: What to ask.
            identity: What it asks; who asks the same meanwhile gets the same outcome.
        """
        return await self._shared.get(identity, lambda: self._reply(request))

    def seconds_allowed(self) -> float:
        """Return the seconds that an answer may take now."""
        left = self._budget.seconds_left()
        return self._timeout if left is None else min(left, self._timeout)

    async def _reply(self, request: Request) -> Reply:
        if request.size > MOST_DECISION_BYTES:
            raise ReasonerError(
                f"not asked: {request.size} bytes, of {MOST_DECISION_BYTES} that a request may have"
            )

        async with self._slot():
            spent = self._budget.take()
            if spent is not None:
                raise _at_cost(BudgetSpentError(spent), 0, None)

            reply = await self._reply_in_time(request)
            self._budget.add(
                retries=reply.attempts - 1,
                tokens=(reply.input_tokens or 0) + (reply.output_tokens or 0),
            )

            return reply

    async def _reply_in_time(self, request: Request) -> Reply:
        # costs a third of importing the engine, and is loaded already where this runs
        import asyncio

        limit = self.seconds_allowed()
        try:
            async with asyncio.timeout(limit) as timer:
                return await self._put(request)
        except BaseException as error:
            attempts, host = cost_of(error)
            self._budget.add(retries=attempts - 1)
            if not isinstance(error, Exception) or not timer.expired():
                raise

            if limit < self._timeout:
                late: LLMError = BudgetSpentError(self._budget.spent() or "budget spent")
            else:
                late = TimedOutError(f"no answer within {limit:g} s")

            raise _at_cost(late, attempts, host) from error

    async def _put(self, request: Request) -> Reply:
        if request.kind == "decision":
            return await ask_decision(
                self._client, request.text, request.choices, model=self._model
            )

        return await ask_chat(
            self._client,
            request.text,
            request.questions[0].options,
            model=self._model,
            seed=self._seed,
            refused=self._refused,
        )

    def _slot(self) -> Semaphore:
        """Return this event loop's limit on requests under way."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = (loop, asyncio.Semaphore(self._limit))

        return self._slots[1]


def _at_cost(error: LLMError, attempts: int, host: str | None) -> LLMError:
    error.attempts, error.host = attempts, host
    return error


def cost_of(error: BaseException | None) -> tuple[int, str | None]:
    """Return the requests that a failed call has made and the last host, as its client notes them on what it raises.

    A time-out of ours hides what the client raised when it was cancelled, and is caused by that.
    """
    if isinstance(error, ReasonerError):  # nothing was asked
        return 0, None

    for raised in (error, getattr(error, "__cause__", None)):
        attempts, host = getattr(raised, "attempts", None), getattr(raised, "host", None)
        if isinstance(attempts, int):
            return attempts, host

    return 1, None
