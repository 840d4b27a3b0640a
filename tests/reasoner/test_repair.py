"""A reply of no use: the model is asked once more, and told what was wrong."""

import json
from typing import Any

import pytest

from prism.llm import Model
from prism.reasoner import Reasoner
from prism.statechart import TextCall, Writer
from prism.testing import Asked, FakeOllama, FakeOpenAI, Fault
from tests.kit.reasoners import ask, crowd


def half_junk(asked: Asked) -> str:
    """Choose nothing of use for every other prompt, until it is put in other words."""
    is_first = "could not be used" not in str(asked.body["messages"])
    return "nothing" if is_first and sum(map(ord, asked.prompt)) % 2 else asked.options[0]


@pytest.mark.parametrize(
    ("kind", "mode"), [(FakeOllama, "chat"), (FakeOpenAI, "chat"), (FakeOpenAI, "auto")]
)
@pytest.mark.slow
async def test_of_a_host_that_answers_half_with_junk_hardly_a_decision_is_lost(
    kind: Any, mode: Any
) -> None:
    """Where half of all questions get junk until they are reworded, at most 5 % are lost."""
    with kind(models=["tiny"], choose=half_junk) as server:
        dialect: Any = "ollama" if kind is FakeOllama else "openai"
        async with Model("tiny", [server.host], server=dialect).as_client() as pool:
            decisions = await Reasoner(pool, mode=mode, seed=1).decide_many(crowd(100))
    lost = [decision for decision in decisions if decision.source == "fallback"]
    repaired = [decision for decision in decisions if decision.cost and decision.cost.repaired]
    assert len(lost) <= 5
    assert 30 <= len(repaired) <= 70
    assert server.asked == len(decisions) + len(repaired)


async def test_the_model_is_told_what_was_wrong(server: FakeOllama, heard: list[Any]) -> None:
    """The second question has the first, the reply's fault and how to answer; the log counts it."""
    server.fail(Fault.says("I'd rather not say."))
    async with Model("tiny", [server.host]).as_client() as pool:
        (decision,) = await Reasoner(pool, mode="chat").decide_many([ask()])
    first, second = (asked.prompt for asked in server.questions)
    assert second.startswith(first)
    told = second.removeprefix(first)
    assert "could not be used: the reply" in told
    assert "I'd rather not say." in told
    assert "Choose one of composing, scrolling." in told
    assert decision.source == "model"
    (event,) = heard
    assert (event["repaired"], event["attempts"]) == (True, 2)


async def test_a_second_reply_of_no_use_is_a_fallback(server: FakeOllama, heard: list[Any]) -> None:
    """A model is asked once more, not for ever; the reason is that of the last reply."""
    server.fail_always(Fault.says("Certainly!"))
    async with Model("tiny", [server.host]).as_client() as pool:
        (decision,) = await Reasoner(pool, mode="chat").decide_many([ask()])
    assert (decision.source, server.asked) == ("fallback", 2)
    assert "Certainly!" in (decision.reason or "")
    assert heard[0]["repaired"] is True


@pytest.mark.parametrize(("tries", "asked"), [(1, 1), (2, 2), (3, 3)])
async def test_a_text_is_asked_for_within_its_requests(
    server: FakeOllama, tries: int, asked: int
) -> None:
    """A text of no use is asked for again, with its fault, once or as often as its call allows."""
    server.write = lambda prompt, schema: "no JSON"
    async with Model("tiny", [server.host]).as_client() as pool:
        call = TextCall("ada", "mood", "How?", read=json.loads, tries=tries)
        written = await Writer(pool).write(call)
    assert (written.source, server.asked) == ("failed", asked)
    assert ["could not be used" in question.prompt for question in server.questions] == (
        [False, True, True][:asked]
    )
