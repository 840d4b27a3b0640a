"""Which way a model is asked: for a letter, or for the name of an option."""

from typing import Any

import pytest

from prism.llm import Model
from prism.reasoner import Reasoner
from prism.testing import FakeOllama, FakeOpenAI
from tests.kit.reasoners import S, ask, outcomes
from tests.kit.servers import BOTH, Connect


def letters(server: FakeOllama) -> list[bool]:
    """Return whether each question to a server asked for the log-probabilities of a letter."""
    return [bool(question.body.get("logprobs")) for question in server.questions]


@BOTH
@pytest.mark.parametrize(("mode", "by_letter"), [("auto", 1), ("chat", 0)])
async def test_a_model_is_asked_by_letter_unless_the_mode_is_chat(
    mode: Any, by_letter: bool, server: FakeOllama, connect: Connect
) -> None:
    """The same model is asked in the same way in both dialects."""
    server.choose = lambda question: "scrolling"
    reasoner = Reasoner(connect(), mode=mode)
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.SCROLLING, "model")]
    assert letters(server) == [by_letter]


async def test_a_question_that_is_asked_again_by_name_is_paid_for() -> None:
    """Tokens and time of an answer without log-probabilities are in the cost of the decision."""
    with FakeOpenAI(models=["tiny"], logprobs=False, latency=0.02) as server:
        async with Model("tiny", server.host, server="openai").as_client() as pool:
            reasoner = Reasoner(pool)
            (decision,) = await reasoner.answer([ask()])
    cost = decision.cost
    assert cost is not None
    assert (decision.source, cost.attempts, server.asked) == ("model", 2, 2)
    assert cost.tokens == reasoner.budget.tokens
    assert cost.queue_seconds is not None
    assert cost.request_seconds is not None
    assert cost.queue_seconds >= 0.019
    assert cost.latency == pytest.approx(cost.queue_seconds + cost.request_seconds)
