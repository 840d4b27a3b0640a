"""Decisions of models whose server puts their answer into the message's field of tool calls."""

import json
from typing import Any

import pytest

from prism.errors import UselessReplyError
from prism.llm import Model
from prism.reasoner import Reasoner
from prism.statechart import TextCall, Writer
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.modules import Later
from tests.kit.reasoners import ask
from tests.kit.servers import HELLO

openai = Later("openai")

KINDS = pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])


def model_at(server: Any) -> Model:
    """Return the model of a fake server."""
    dialect: Any = "ollama" if isinstance(server, FakeOllama) else "openai"
    return Model("tiny", [server.host], server=dialect, attempts=1)


async def decide(server: Any, fault: Fault, mode: Any = "chat") -> tuple[str, str, int]:
    """Return what is chosen after a fault, by what, and with how many requests."""
    server.fail(fault)
    async with model_at(server).as_client() as pool:
        (decision,) = await Reasoner(pool, mode=mode).decide_many([ask()])
    assert decision.cost is not None
    return decision.chosen.value, decision.source, decision.cost.attempts


@KINDS
@pytest.mark.parametrize(
    "fault",
    [
        Fault.calls_tool("choose", next_state="scrolling"),
        Fault.calls_tool("next_state", next_state="Scrolling"),
    ],
)
async def test_a_tool_call_without_words_is_an_answer(kind: Any, fault: Fault) -> None:
    """The arguments are the object that was asked for, as in a call that stands in the text."""
    with kind(models=["tiny"]) as server:
        assert await decide(server, fault) == ("scrolling", "model", 1)


@KINDS
@pytest.mark.parametrize(
    "fault",
    [
        Fault.calls_tool(),
        Fault.calls_tool("scrolling"),
        Fault.calls_tool("scrolling", next_state="composing"),
        Fault.calls_tool("choose", next_state="flying"),
        Fault.calls_tool("choose", next_state="scrolling", only_if="it rains"),
        Fault.calls_tool("search", query="scrolling"),
        Fault.calls_tool("do_not_choose", next_state="scrolling"),
        Fault.calls_tool("choose", next_state="scrolling", confirm=False),
    ],
)
async def test_a_tool_call_that_leaves_a_doubt_is_repaired(kind: Any, fault: Fault) -> None:
    """A call of another tool, or one with a condition among its arguments, is no answer."""
    with kind(models=["tiny"]) as server:
        chosen, source, attempts = await decide(server, fault)
        assert (source, attempts) == ("model", 2)
        assert "could not be used" in server.questions[-1].prompt
        assert chosen in ("composing", "scrolling")


@pytest.mark.parametrize(
    ("beside", "is_answer"),
    [
        ({"content": "<think>Hm.</think>\n"}, True),
        ({"content": None, "refusal": "I cannot choose."}, False),
        ({"content": "Do not scroll."}, False),
    ],
)
@pytest.mark.parametrize("is_own", [True, False])
async def test_what_a_call_stands_beside_counts_alike_for_all_clients(
    beside: dict[str, Any], is_answer: bool, is_own: bool
) -> None:
    """Thoughts leave a call the answer, words and a refusal do not."""
    function = {"name": "choose", "arguments": '{"next_state": "scrolling"}'}
    calls = [{"id": "1", "type": "function", "function": function}]
    message = {"role": "assistant", "tool_calls": calls, **beside}
    choices = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
    told = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny"}
    with FakeOpenAI(models=["tiny"]) as server:
        server.fail(Fault.body(json.dumps({**told, "choices": choices}).encode()))
        client: Any = model_at(server).as_client()
        if not is_own:
            client = openai.AsyncOpenAI(base_url=f"{server.host}/v1", api_key="x")
        async with client:
            reasoner = Reasoner(client, model=None if is_own else "tiny", mode="chat")
            (decision,) = await reasoner.decide_many([ask()])
    assert decision.cost is not None
    assert ((decision.source, decision.cost.attempts) == ("model", 1)) is is_answer


@KINDS
async def test_a_tool_call_is_no_text(kind: Any) -> None:
    """A writer asks again, and a conversation without a schema raises, as for an empty reply."""
    with kind(models=["tiny"]) as server:
        async with model_at(server).as_client() as pool:
            server.fail(Fault.calls_tool("write", text="Hello."))
            with pytest.raises(UselessReplyError, match="gave an empty reply"):
                await pool.chat(HELLO)
            server.fail(Fault.calls_tool("write", text="Hello."))
            written = await Writer(pool).write(TextCall("ada", "post", "Write."))
    assert written.cost is not None
    assert (written.source, written.cost.attempts, written.cost.repaired) == ("model", 2, True)
