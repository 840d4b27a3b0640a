"""Asking a client within limits: what a `Reasoner` and a `Writer` have in common."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, TypedDict

from prism.errors import BudgetSpentError, LLMError, ReasonerError
from prism.reasoner._clients import (
    adapt,
    check_client,
    check_model,
    has_slots,
)
from prism.reasoner._messages import ModelClient, Reply, has, of_kind, parameters
from prism.reasoner._recording import PromptRecord
from prism.reasoner._slots import SingleFlight
from prism.reasoner._spending import Budget, Clock, Cost, loop_time, require_positive
from prism.telemetry.loggers import EventLogger

DEFAULT_CONCURRENCY = 16
DEFAULT_ATTEMPTS = 3

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

    # a Model
    found = client.as_client()
    # prism's own clients already know their model
    if has_slots(found):
        return found, model, patience
    usual = client.patience if patience is None else patience
    return found, model or client.model or None, usual


class Limits(TypedDict, total=False):
    """The limits for asking a client; see `Reasoner`."""

    model: str | None
    timeout: float
    concurrency: int | None
    attempts: int | None
    patience: float | None
    seed: int
    asks_once: bool
    budget: Budget | None
    record: PromptRecord | None
    logger: EventLogger | None


class AsksModel:
    """Asks a client within limits, and keeps its answers; see `Reasoner` for the arguments.

    An answer that is already being requested is not requested again, but awaited.

    Args:
        client: The client.
        only_decides: Whether the client is asked for probabilities and nothing else.

    Attributes:
        client: The client that is asked.
        concurrency: Number of simultaneous requests that are worthwhile.
        budget: The budget.
        named: The model name given for the client.
        record: Keeps every prompt and reply, or None.
        records: Whether the cost of an answer has its separate requests.
        pool: The client, wrapped in a pool if it has no slots of its own.
        trial: The cost of trying its servers before a run, which no decision or text has.
        open: The open requests; other threads may copy it.
    """

    def __init__(
        self,
        client: Any,
        *,
        only_decides: bool = False,
        model: str | None = None,
        timeout: float = 120.0,
        concurrency: int | None = None,
        attempts: int | None = None,
        patience: float | None = None,
        seed: int = 0,
        asks_once: bool = False,
        budget: Budget | None = None,
        record: PromptRecord | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        client, model, patience = opened(client, model, patience)
        require_positive(timeout=timeout, concurrency=concurrency, attempts=attempts)
        check_client(client, only_decides=only_decides)
        check_model(client, model)

        own = of_kind(int, getattr(client, "concurrency", None))
        self.client: Any = client
        self.concurrency: int = own or concurrency or DEFAULT_CONCURRENCY
        self.budget: Budget = budget or Budget()
        self.named: str | None = model
        self.record: PromptRecord | None = record
        self.records: bool = record is not None
        self.open: dict[int, OpenRequest] = {}
        self.trial: Cost = Cost()
        tries = attempts or DEFAULT_ATTEMPTS
        self.pool: ModelClient = adapt(
            client, model, seed, tries, self.concurrency, patience or 0.0
        )
        # a server samples by default
        self._samples: bool = getattr(client, "temperature", None) != 0
        self._timeout, self._seed = timeout, seed
        self._model: str | None = model or of_kind(str, getattr(client, "model", None))
        self._replies: dict[str, Reply] | None = {} if asks_once and not self._samples else None
        self._flights: SingleFlight[Reply] = SingleFlight()
        self._takes = parameters(self.pool.chat)
        self._says_no_tokens = False
        self._logger = logger

    async def close(self) -> None:
        """Close the client's connections, if it opens new ones later (``client.reopens``)."""
        if getattr(self.client, "reopens", False):
            await self.client.close()

    async def _asked(self, request: Any, cost: Cost) -> Any:
        """Send a request within the limits, and return what came back.

        Args:
            request: A `Request` or a `TextRequest`.
            cost: Collects the cost, however the request ends.
        """
        if (spent := self.budget.spent()) is not None:
            raise BudgetSpentError(spent)

        clock = Clock(self._timeout, self.budget, lambda: getattr(self.pool, "trouble", ""))
        cost.model, cost.budget, cost.on_slot = self._model, self.budget, clock.start
        if self.records:
            cost.trail = []
        self.open[id(cost)] = OpenRequest(request.text, self._model, loop_time())
        try:
            async with clock:
                return await self._sent(request, cost)
        except LLMError as error:
            cost.host = cost.host or error.host
            raise
        finally:
            del self.open[id(cost)]
            cost.settle(clock.latency)
            self._look_for_tokens(cost)

    async def _sent(self, request: Any, cost: Cost) -> Any:
        """Return the client's reply to a conversation."""
        more = self._accepted(
            lacks=request.lacks,
            variation=request.variation,
            most_tokens=request.most_tokens,
            chances=request.asks_chances,
        )
        messages = [{"role": "user", "content": request.text}]
        return await self.pool.chat(messages, format=request.schema, cost=cost, **more)

    def _accepted(self, **offered: Any) -> dict[str, Any]:
        """Return those of the arguments that the client accepts."""
        names, takes_any = self._takes
        return {name: value for name, value in offered.items() if takes_any or name in names}

    def _look_for_tokens(self, cost: Cost) -> None:
        """Warn once that a limit on tokens has no effect if the server does not report them."""
        limit = self.budget.max_tokens
        is_told = (cost.input_tokens, cost.output_tokens) != (None, None)
        if limit is None or self._says_no_tokens or is_told or not cost.attempts:
            return

        self._says_no_tokens = True
        BUDGET_LOGGER.warning(
            "%s%s reports no token counts, so the limit of %d tokens has no effect on it: "
            "set a limit on calls",
            cost.model or type(self.client).__name__,
            f" at {cost.host}" if cost.host else "",
            limit,
        )
