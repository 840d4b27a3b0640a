"""A server that speaks OpenAI's chat completions, asked once."""

import logging
from typing import Any

import pytest

from prism.errors import BadReplyError, LLMError
from prism.reasoner import Cost
from prism.testing import Fault
from tests.kit.servers import HELLO, Connect, Serve

KEY = "sk-1234567890"
SCHEMA = {
    "type": "object",
    "properties": {"next_state": {"type": "string", "enum": ["idle"]}},
    "required": ["next_state"],
}


pytestmark = pytest.mark.parametrize("dialect", ["openai"], indirect=True)


async def test_a_question_is_sent_as_the_server_expects_it(serve: Serve, connect: Connect) -> None:
    """The request has model, messages, schema, temperature and seed where they belong."""
    server = serve()
    pool = connect(server, seed=7, temperature=0.5, think=True)
    cost = Cost()
    reply = await pool.chat(HELLO, format=SCHEMA, cost=cost)
    assert (reply.text, reply.model, reply.host) == ('{"next_state": "idle"}', "tiny", server.host)
    assert (cost.input_tokens, cost.output_tokens, cost.done_reason) == (1, 2, "stop")
    (asked,) = server.questions
    assert asked.path == "/v1/chat/completions"
    strict = {**SCHEMA, "additionalProperties": False}
    form = {"name": "answer", "schema": strict, "strict": True}
    sampling = {"temperature": 0.5, "seed": 7, "top_p": 1, "top_k": 0, "min_p": 0}
    sampling["chat_template_kwargs"] = {"enable_thinking": True}
    conversation = {"model": "tiny", "messages": HELLO}
    conversation["response_format"] = {"type": "json_schema", "json_schema": form}
    assert asked.body == {**conversation, **sampling}


@pytest.mark.parametrize(
    ("think", "sent"),
    [
        (False, {"chat_template_kwargs": {"enable_thinking": False}}),
        ("low", {"reasoning_effort": "low"}),
    ],
)
async def test_thinking_is_said_in_the_words_of_the_servers(
    think: Any, sent: dict[str, Any], serve: Serve, connect: Connect
) -> None:
    """Whether a model may think is said to those who know either word for it."""
    server = serve()
    await connect(server, think=think).chat(HELLO)
    body = server.questions[0].body
    words = ("reasoning_effort", "chat_template_kwargs")
    assert {name: body[name] for name in words if name in body} == sent


PARTS = ["seed", "temperature", "response_format", "max_tokens"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.sampled(5)
async def test_what_a_server_refuses_is_reported_once_and_left_out(
    part: str, serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """A part that is refused by name costs one request more, and is left out from then on."""
    server = serve(refuses=[part])
    pool, costs = connect(server, reply_tokens=99), [Cost() for _ in range(3)]
    with caplog.at_level(logging.WARNING, "prism.llm"):
        for cost in costs:
            await pool.chat(HELLO, format=SCHEMA, cost=cost)

    assert [cost.attempts for cost in costs] == [2, 1, 1]
    assert [part in asked.body for asked in server.questions] == [True, False, False, False]
    assert part not in pool.sampling
    bound = "max_completion_tokens" if part == "max_tokens" else "max_tokens"
    assert server.questions[-1].body[bound] == 99
    (told,) = caplog.messages
    assert told.startswith(f"tiny at {server.host} refuses {part}, so it is asked without: ")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"think": "low"}, Fault.status(400, "reasoning_effort must be one of none, high")),
        ({"think": True}, Fault.status(422, "chat_template_kwargs: extra inputs not permitted")),
        ({"temperature": 0.5}, Fault.status(400, "temperature does not support 0.5")),
        ({}, Fault.status(400, "the context is 4096 tokens")),
        ({}, Fault.status(403, "no seed for you")),
        ({}, [Fault.status(400, "the text 'a seed' is forbidden")] * 2),
    ],
)
async def test_other_refusals_are_raised(
    settings: dict[str, Any], fault: Any, serve: Serve, connect: Connect
) -> None:
    """What the user has set is not dropped, and other refusals are not mistaken for one of it."""
    faults = fault if isinstance(fault, list) else [fault]
    server = serve(*faults)
    pool = connect(server, **settings)
    with pytest.raises(LLMError, match=r"answered 4\d\d"):
        await pool.chat(HELLO)
    assert len(server.questions) == len(faults)
    await pool.chat(HELLO)
    assert server.questions[-1].body == server.questions[0].body


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_an_address_may_end_with_the_version(
    suffix: str, serve: Serve, connect: Connect
) -> None:
    """The version is added where there is no path; both spellings are one host."""
    server = serve()
    pool = connect(f"{server.host}{suffix}", server)
    assert len(pool.hosts) == 1
    assert (await pool.chat(HELLO)).text == "Hello."
    assert "tiny" in await pool.servers[0].models()
    # behind a gateway, nothing is added to a path
    with pytest.raises(BadReplyError, match="answered 404: Not Found"):
        await connect(f"{server.host}/openai").chat(HELLO)


# The key


async def test_the_key_goes_to_no_other_server(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a server redirects to another one, that is asked without the key."""
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    front, behind = serve(), serve()
    there = f"{behind.host}/v1/chat/completions"
    front.fail_always(Fault.status(307, headers={"Location": there}))
    assert (await connect(front).chat(HELLO)).text == "Hello."
    assert front.authorizations == [f"Bearer {KEY}"]
    assert behind.authorizations == [None]


# Loading, and what there is


async def test_loading_asks_for_one_token(serve: Serve, connect: Connect) -> None:
    """A server loads its model for the first question, so that this one is made short."""
    server = serve()
    assert await connect(server).warm_up() == {server.host: None}
    assert [asked.body["max_tokens"] for asked in server.questions] == [1]
