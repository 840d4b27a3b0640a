"""Models that think, and servers that mix up thoughts, answers and schemas."""

import json
from typing import Any

import pytest

from prism.llm import Model
from prism.reasoner import Reasoner
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.reasoners import S, answer, ask
from tests.kit.servers import BOTH, Connect, Serve


def thought(dialect: str, message: dict[str, Any]) -> Fault:
    """Return a reply with a message, as a server of a dialect sends it."""
    whole = {"role": "assistant", **message}
    body: dict[str, Any] = {"model": "tiny", "done": True, "message": whole}
    if dialect == "openai":
        body = {"model": "tiny", "choices": [{"message": whole, "finish_reason": "stop"}]}
    return Fault.body(json.dumps(body).encode())


@BOTH
@pytest.mark.parametrize("field", ["thinking", "reasoning_content", "reasoning"])
async def test_an_answer_where_thoughts_belong_is_the_answer(
    field: str, dialect: str, server: FakeOllama, connect: Connect
) -> None:
    """It is taken if the content is empty and it is one object of the schema; prose is not."""
    if dialect == "ollama":
        field = "thinking"
    server.fail(thought(dialect, {"content": "", field: answer("scrolling")}))
    (decision,) = await Reasoner(connect(), mode="chat").decide_many([ask()])
    assert (decision.source, decision.chosen) == ("model", S.SCROLLING)
    server.fail_always(thought(dialect, {"content": "", field: "I would go on scrolling."}))
    (decision,) = await Reasoner(connect(), mode="chat").decide_many([ask()])
    assert decision.source == "fallback"
    assert "thoughts, and no reply" in str(decision.reason)


@BOTH
async def test_thinking_is_told_only_where_it_is_set(serve: Serve, connect: Connect) -> None:
    """A server decides by itself how much a model thinks, unless the user says so."""
    server = serve()
    await Reasoner(connect(server)).decide_many([ask()])
    assert not {"think", "chat_template_kwargs", "reasoning_effort"} & {*server.questions[0].body}


@pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])
async def test_a_schema_that_thinking_switches_off_is_asked_for_without(kind: Any) -> None:
    """Where ``think: false`` has a server ignore the schema, it is left out from then on."""
    with kind(models=["tiny"]) as server:
        server.fail(Fault.says("I am going with what suits me."))
        name = "ollama" if kind is FakeOllama else "openai"
        async with Model("tiny", server.host, server=name, think=False).as_client() as pool:
            decisions = await Reasoner(pool, mode="chat").decide_many([ask("ada")])
            decisions += await Reasoner(pool, mode="chat").decide_many([ask("bo")])
    assert [decision.source for decision in decisions] == ["model", "model"]
    told = [{"think", "chat_template_kwargs"} & {*asked.body} for asked in server.questions]
    assert [bool(each) for each in told] == [True, False, False]
