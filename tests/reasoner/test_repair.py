"""A reply of no use: the model is asked once more, and told what was wrong."""

from typing import Any

from prism.llm import Model
from prism.reasoner import Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import ask


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
