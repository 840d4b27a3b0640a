"""One router for all questions and texts of a run, each put to whoever answers for its agent."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from prism.errors import TooManyFallbacksError
from prism.reasoner import Decision, PolicyReasoner, Reasoner, Router
from tests.kit.clients import Model
from tests.kit.reasoners import S, answer, crowd, outcomes


async def test_the_first_part_answers_until_it_is_switched() -> None:
    """From then on another part answers, and says for itself what agents of the feed choose."""
    asked = {first: Reasoner(Model(answer(first))) for first in ("scrolling", "composing")}
    router = Router(asked)
    assert outcomes(await router.decide_many(crowd(3))) == [(S.SCROLLING, "model")] * 3
    router.switch("composing")
    assert outcomes(await router.decide_many(crowd(3))) == [(S.COMPOSING, "model")] * 3

    mixed = Router({"first": PolicyReasoner(3), "second": Reasoner(Model(""), memory=2)})
    assert (mixed.chooses_acts, mixed.part.chooses_acts, mixed.memory) == (True, False, 2)
    assert await mixed.decide_many(crowd(2)) == await PolicyReasoner(3).decide_many(crowd(2))


@pytest.mark.parametrize(
    ("answers", "stop_at", "ended"),
    [
        (lambda number: False, 1, "20 decisions in a row"),
        (lambda number: number < 120, 0.5, "20 decisions in a row"),
        (lambda number: number < 100 or number % 2, 0.25, "50 of the last 200"),
        (lambda number: number % 2 == 0, 0.6, None),
        (lambda number: False, None, None),
    ],
)
async def test_a_run_ends_when_its_model_fails(
    answers: Any, stop_at: float | None, ended: str | None
) -> None:
    """20 fallbacks in a row, or a share of the last 200 decisions, end a run that has a limit."""

    class Sometimes(PolicyReasoner):
        async def answer(self, questions: Sequence[Any]) -> Any:
            numbers = [int(each.agent.agent_id[1:]) for each in questions]
            return [
                Decision(S.SCROLLING, "cache" if answers(number) else "fallback", rotation=0)
                for number in numbers
            ]

    router = Router({"all": Sometimes()}, stop_at=stop_at)
    if ended is None:
        await router.decide_many(crowd(400))
        # a copy of an answer says nothing more about positions
        assert router.positions == {}
        return
    with pytest.raises(TooManyFallbacksError, match=ended):
        await router.decide_many(crowd(400))


@pytest.mark.parametrize("counts", [True, False])
async def test_fallbacks_of_a_spent_budget_count_where_wanted(counts: bool) -> None:
    """They never count as a model that does not answer at all."""

    class Spent(PolicyReasoner):
        async def answer(self, questions: Sequence[Any]) -> Any:
            return [
                Decision(S.SCROLLING, "fallback", failure="BudgetSpentError") for _ in questions
            ]

    router = Router({"all": Spent()}, stop_at=0.5, counts_budget=counts)
    await router.decide_many(crowd(20))
    with pytest.raises(TooManyFallbacksError) if counts else nullcontext():
        await router.decide_many(crowd(180))
