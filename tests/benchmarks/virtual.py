"""How busy slots are in virtual time, where answers alone take any, and no machine matters."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections.abc import Sequence
from typing import Any

from prism.statechart import AgentState, BaseReasoner, Decision, Question
from prism.statechart.reasoner import Cost
from prism.statechart.reasoner._slots import CircuitBreaker, Slots, Traffic

MEDIAN = 0.1
"""Seconds of an answer, of which 16 are awaited at the same time."""
SLOTS = 16
_P99 = 2.326
"""The 99th percentile of the normal distribution."""


class _Skipping(selectors.DefaultSelector):
    """Selects without waiting; what it would have waited has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return what is ready, or let the time pass."""
        ready = super().select(0)
        if not ready and timeout:
            self.passed += timeout
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.passed


class _Host:
    """A server, as the slots see it."""

    address, trouble = "virtual", ""

    def __init__(self) -> None:
        self.traffic, self.breaker = Traffic(SLOTS), CircuitBreaker()


class _Answering(BaseReasoner):
    """Answers after a lognormal time, one question in each slot.

    Args:
        tail: The 99th percentile of the times, as a multiple of the median.
        composes: Whether it has agents write whenever they may, or draws the answers.
    """

    concurrency = SLOTS

    def __init__(self, tail: float, *, composes: bool) -> None:
        super().__init__(None)
        self.busy = self.pending = 0.0
        self._composes, self._sigma = composes, math.log(tail) / _P99
        self._times, self._answers = random.Random(1), random.Random(2)
        self._slots, self._open, self._since = Slots(), 0, 0.0
        self._host: Any = _Host()

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return list(await asyncio.gather(*map(self._answer, questions)))

    async def _answer(self, question: Question) -> Decision:
        loop = asyncio.get_running_loop()
        if not self._open:
            self._since = loop.time()
        self._open += 1

        lease = await self._slots.take((self._host,), Cost())
        taken = MEDIAN * math.exp(self._sigma * self._times.gauss(0, 1))
        self.busy += taken
        given = loop.create_future()
        loop.call_later(taken, given.set_result, None)
        await given
        self._slots.give_back(lease)

        self._open -= 1
        if not self._open:
            self.pending += loop.time() - self._since

        return Decision(self._chosen(list(question.options)), "model")

    def _chosen(self, options: list[Any]) -> Any:
        if self._composes and AgentState.COMPOSING in options:
            return AgentState.COMPOSING
        return options[-1] if self._composes else self._answers.choice(options)


def busy_share(make: Any, tail: float, *, composes: bool) -> float:
    """Return the share of the slots that are busy while decisions are pending.

    Args:
        make: Makes the run, given the reasoner.
        tail: The 99th percentile of an answer's time, as a multiple of the median.
        composes: Whether agents write whenever they may; otherwise, answers are drawn.
    """
    reasoner = _Answering(tail, composes=composes)
    loop = _VirtualLoop()
    try:
        loop.run_until_complete(make(reasoner).arun())
    finally:
        loop.close()

    return reasoner.busy / SLOTS / reasoner.pending
