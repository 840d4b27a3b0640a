"""Choosing by the probabilities of letters."""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from prism.randomness import RandomStream
from prism.reasoner import Question, Reasoner
from tests.kit.clients import Weighing, weighed
from tests.kit.reasoners import OPTIONS, S, ask, crowd, outcomes


@pytest.mark.parametrize("times", [400, pytest.param(2000, marks=pytest.mark.slow)])
async def test_draws_follow_the_probabilities(times: int) -> None:
    """Over many draws each option comes about as often as its probability says."""
    reasoner = Reasoner(Weighing({"composing": 0.3, "scrolling": 0.7, "resting": 0.0}), mode="auto")
    decisions = await reasoner.decide_many(crowd(times, options=(*OPTIONS, S.RESTING)))
    counts = Counter(decision.chosen for decision in decisions)
    spread = 5 * math.sqrt(times * 0.3 * 0.7)
    assert abs(counts[S.COMPOSING] - times * 0.3) < spread
    assert counts[S.COMPOSING] + counts[S.SCROLLING] == times
    assert all(
        d.probabilities == {"composing": 0.3, "scrolling": 0.7, "resting": 0.0} for d in decisions
    )


async def test_draws_belong_to_the_agent() -> None:
    """A draw depends on seed and agent alone, not on other questions; another seed differs."""
    half = {"composing": 0.5, "scrolling": 0.5}
    together = await Reasoner(Weighing(half), mode="auto").decide_many(crowd(40))
    reasoner = Reasoner(Weighing(half), mode="auto")
    alone = [(await reasoner.decide_many([one]))[0] for one in reversed(crowd(40))]
    assert outcomes(together) == outcomes(alone[::-1])
    other = await Reasoner(Weighing(half), mode="auto", seed=1).decide_many(crowd(40))
    assert outcomes(together) != outcomes(other)


class Even:
    """A model with even odds that answers questions in the reverse of an order."""

    def __init__(self, order: Sequence[str] = (), fails: str | None = None) -> None:
        self.order, self.fails = list(order), fails

    async def chat(self, messages: Any, format: Any, logprobs: bool = False) -> Any:  # noqa: A002
        text = messages[0]["content"]
        for mark in self.order:
            if mark in text:
                break
            for _ in range(20):
                await asyncio.sleep(0)
        if self.fails is not None and self.fails in text:
            raise ConnectionError("nobody there")
        return weighed(format, {"composing": 0.5, "scrolling": 0.5})


MARKS = [f"<{number}>" for number in range(12)]


@pytest.mark.parametrize("order", [MARKS, MARKS[::-1]])
async def test_draws_of_one_agent_come_in_the_order_of_asking(order: list[str]) -> None:
    """One agent's questions put at once draw in their order, whichever answer is first."""
    reasoner = Reasoner(Even(order), mode="auto")
    ada = ask().agent
    chosen = [reasoner.decide(ada, S.EVALUATING, "decides", list(OPTIONS), mark) for mark in MARKS]
    stream = RandomStream(0, "Ada")
    assert await asyncio.gather(*chosen) == [OPTIONS[stream.index(2)] for _ in MARKS]


@pytest.mark.parametrize("together", [True, False])
async def test_a_fallback_shifts_no_later_draw(together: bool, no_pauses: None) -> None:
    """A question without an answer uses up its number: later draws are those without a failure."""
    questions = [
        Question(ask().agent, S.EVALUATING, "decides", OPTIONS, mark + "x" * 50_000)
        for mark in MARKS
    ]
    chosen = []
    for fails in (None, MARKS[3]):
        reasoner = Reasoner(Even(fails=fails), mode="auto")
        works = [questions] if together else [[question] for question in questions]
        decisions = [decision for work in works for decision in await reasoner.decide_many(work)]
        assert [d.source for d in decisions].count("fallback") == (fails is not None)
        chosen.append([decision.chosen for decision in decisions])
    del chosen[0][3], chosen[1][3]
    assert chosen[0] == chosen[1]
    assert set(chosen[0]) == set(OPTIONS)
