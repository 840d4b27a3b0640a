"""What a message has beside its content: thoughts, calls of tools, and refusals."""

import json
from typing import Any

import pytest

from prism.errors import UselessReplyError
from prism.reasoner import Reasoner, TextCall, Writer
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import S, answer, ask
from tests.kit.servers import BOTH, HELLO, Connect


def replies(dialect: str, message: dict[str, Any]) -> Fault:
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
    """It is taken if the content is empty and it is an object of the schema; prose is not."""
    if dialect == "ollama":
        field = "thinking"
    server.fail(replies(dialect, {"content": " \n", field: answer("scrolling")}))
    (decision,) = await Reasoner(connect(), mode="chat").decide_many([ask()])
    assert (decision.source, decision.chosen) == ("model", S.SCROLLING)
    for thought in ("I would go on scrolling.", '{"next_state": "scrolling", "sure": 0.1}'):
        server.fail_always(replies(dialect, {"content": "", field: thought}))
        (decision,) = await Reasoner(connect(), mode="chat").decide_many([ask()])
        assert decision.source == "fallback"
        assert "thoughts, and no reply" in str(decision.reason)
    server.recover()
    server.fail(replies(dialect, {"content": "", field: '{"verdict": "good"}'}))
    parts = {"verdict": {"type": "string"}, "reasoning": {"type": "string"}}
    schema = {"type": "object", "properties": parts, "required": ["verdict"]}
    written = await Writer(connect()).write(TextCall("ada", "verdict", "Is it good?", schema))
    assert written.text == '{"verdict": "good"}'


@BOTH
async def test_a_schema_that_thinking_switches_off_is_asked_for_without(
    server: FakeOllama, connect: Connect
) -> None:
    """Where ``think: false`` has a server ignore the schema, it is left out from then on."""
    server.fail(Fault.says("I am going with what suits me."))
    pool = connect(think=False)
    decisions = await Reasoner(pool, mode="chat").decide_many([ask("ada")])
    decisions += await Reasoner(pool, mode="chat").decide_many([ask("bo")])
    assert [decision.source for decision in decisions] == ["model", "model"]
    told = [{"think", "chat_template_kwargs"} & {*asked.body} for asked in server.questions]
    assert [bool(each) for each in told] == [True, False, False]


CALLS = Fault.calls_tool
NO_ANSWERS = [
    CALLS(),
    CALLS("scrolling"),
    CALLS("scrolling", next_state="composing"),
    CALLS("choose", next_state="flying"),
    CALLS("choose", next_state="scrolling", only_if="it rains"),
    CALLS("search", query="scrolling"),
    CALLS("do_not_choose", next_state="scrolling"),
    CALLS("choose", next_state="scrolling", confirm=False),
]
ANSWERS = [
    CALLS("choose", next_state="scrolling"),
    CALLS("next_state", next_state="Scrolling"),
]


@BOTH
@pytest.mark.parametrize("fault", [*ANSWERS, *NO_ANSWERS])
async def test_a_tool_call_without_words_is_an_answer_if_it_leaves_no_doubt(
    fault: Fault, server: FakeOllama, connect: Connect
) -> None:
    """Not if it is of another tool, or has a condition among its arguments: it is repaired."""
    server.fail(fault)
    (decision,) = await Reasoner(connect(), mode="chat").decide_many([ask()])
    assert decision.source == "model"
    if fault in ANSWERS:
        assert (decision.chosen, server.asked) == (S.SCROLLING, 1)
    else:
        assert server.asked == 2
        assert "could not be used" in server.questions[-1].prompt


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
@pytest.mark.parametrize(
    ("beside", "asked"),
    [
        ({"content": "<think>Hm.</think>\n"}, 1),
        ({"content": None, "refusal": "I cannot choose."}, 2),
        ({"content": "Do not scroll."}, 2),
    ],
)
async def test_thoughts_leave_a_call_the_answer_words_and_a_refusal_do_not(
    beside: dict[str, Any], asked: int, server: FakeOllama, connect: Connect
) -> None:
    """Words may deny what is called."""
    function = {"name": "choose", "arguments": answer("scrolling")}
    server.fail(replies("openai", {"tool_calls": [{"function": function}], **beside}))
    await Reasoner(connect(), mode="chat").decide_many([ask()])
    assert server.asked == asked


@BOTH
async def test_a_tool_call_is_no_text(server: FakeOllama, connect: Connect) -> None:
    """A writer asks again, and a conversation without a schema raises, as for an empty reply."""
    server.fail(*[CALLS("write", text="Hello.")] * 2)
    with pytest.raises(UselessReplyError, match="gave an empty reply"):
        await connect().chat(HELLO)
    written = await Writer(connect()).write(TextCall("ada", "post", "Write."))
    assert (written.source, server.asked) == ("model", 3)
