"""A fake OpenAI-compatible server, as the real client meets it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from prism.errors import FieldValueError
from prism.llm import Model
from prism.statechart import TextCall, Writer
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.later import Later
from tests.kit.waiting import MOST_SECONDS

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

HELLO: Any = [{"role": "user", "content": "hello there"}]
SCHEMA = {"type": "object", "properties": {"next_state": {"enum": ["A", "B", "C"]}}}
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


async def client_of(server: FakeOpenAI, key: str = "none") -> AsyncIterator[openai.AsyncOpenAI]:
    """Yield the real client, connected to a server."""
    async with openai.AsyncOpenAI(
        api_key=key, base_url=f"{server.host}/v1", max_retries=0, timeout=MOST_SECONDS
    ) as connected:
        yield connected


@pytest.fixture
def server() -> Any:
    """Return a running server."""
    with FakeOpenAI(
        choose=lambda asked: asked.options[1] if asked.options else "Hello."
    ) as running:
        yield running


@pytest.fixture
async def client(server: FakeOpenAI) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return the real client, connected to the server."""
    async for connected in client_of(server):
        yield connected


@pytest.mark.parametrize("make", [FakeOpenAI, FakeOllama])
async def test_it_serves_the_models_that_are_named(
    make: type[FakeOpenAI] | type[FakeOllama],
) -> None:
    """A server has the models that it was given, and no others."""
    kind: Any = "openai" if make is FakeOpenAI else "ollama"
    for models, is_served in ((["tiny"], True), (["other"], False)):
        with make(models=models) as server:
            async with Model("tiny", server.url, server=kind) as model:
                reply = Writer(model).write(TextCall("ada", "post", "Write a post."))
                assert ((await reply).source == "model") is is_served


async def test_it_chats(server: FakeOpenAI, client: openai.AsyncOpenAI) -> None:
    """A chat returns a message with token counts; with a schema it is one of its options."""
    reply = await client.chat.completions.create(model="llama3.2", messages=HELLO)
    choice = reply.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.logprobs) == (
        "Hello.",
        "stop",
        None,
    )
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2, 1)
    reply = await client.chat.completions.create(
        model="llama3.2", messages=HELLO, response_format=FORMAT
    )
    assert reply.choices[0].message.content == '{"next_state": "B"}'
    assert [(asked.path, asked.prompt, asked.options) for asked in server.questions] == [
        ("/v1/chat/completions", "hello there", ()),
        ("/v1/chat/completions", "hello there", ("A", "B", "C")),
    ]
    assert server.questions[1].schema == SCHEMA


async def test_it_gives_log_probabilities(client: openai.AsyncOpenAI) -> None:
    """The tokens make up the content; the one that is the choice has all the probability."""
    reply = await client.chat.completions.create(
        model="llama3.2", messages=HELLO, response_format=FORMAT, logprobs=True, top_logprobs=20
    )
    chances = reply.choices[0].logprobs
    assert chances is not None
    assert chances.content is not None
    assert "".join(token.token for token in chances.content) == reply.choices[0].message.content
    (chosen,) = (token for token in chances.content if token.token == "B")
    assert {one.token: math.exp(one.logprob) for one in chosen.top_logprobs} == pytest.approx(
        {"B": 1.0}
    )


async def test_a_fault_sets_the_log_probabilities(
    server: FakeOpenAI, client: openai.AsyncOpenAI
) -> None:
    """What a fault weighs is what the next question gets, zero as a very small logarithm."""
    server.fail(Fault.weighs({"A": 0.25, "B": 0.75, "C": 0}))
    reply = await client.chat.completions.create(
        model="llama3.2", messages=HELLO, response_format=FORMAT, logprobs=True
    )
    tokens: Any = reply.choices[0].logprobs
    (chosen,) = (token for token in tokens.content if token.token == "B")
    assert {one.token: math.exp(one.logprob) for one in chosen.top_logprobs} == pytest.approx(
        {"A": 0.25, "B": 0.75, "C": 0.0}
    )


async def test_it_lists_its_models(client: openai.AsyncOpenAI) -> None:
    """The models are those that it was given."""
    assert [model.id async for model in client.models.list()] == ["llama3.2"]


@pytest.mark.parametrize(
    ("settings", "more", "raised"),
    [
        ({"refuses": ["seed"]}, {"seed": 3}, "BadRequestError"),
        ({"models": ["other"]}, {}, "NotFoundError"),
        ({"key": "right"}, {}, "AuthenticationError"),
        ({}, {"stream": True}, "BadRequestError"),
    ],
)
async def test_what_it_does_not_take_is_refused(
    settings: dict[str, Any], more: dict[str, Any], raised: str
) -> None:
    """A parameter, a model, a key and a stream are refused in the form of such servers."""
    with FakeOpenAI(**settings) as server:
        async for client in client_of(server, "wrong"):
            with pytest.raises(getattr(openai, raised)) as caught:
                await client.chat.completions.create(model="llama3.2", messages=HELLO, **more)
            assert isinstance(caught.value, openai.APIStatusError)
            assert set(caught.value.body or {}) == {"message", "type", "param", "code"}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (Fault.status(503, "busy"), "InternalServerError"),
        (Fault.hang(), "APITimeoutError"),
        (Fault.drop(), "APIConnectionError"),
        (Fault.drop_midway(), "APIConnectionError"),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
@pytest.mark.sampled(4)
async def test_it_has_the_faults_of_the_other_server(
    server: FakeOpenAI, client: openai.AsyncOpenAI, fault: Fault, raised: str
) -> None:
    """The real client fails as it does on a real server, and the next question is answered."""
    server.fail(fault)
    seconds = 0.1 if raised == "APITimeoutError" else MOST_SECONDS
    with pytest.raises(getattr(openai, raised)):
        await client.with_options(timeout=seconds).chat.completions.create(
            model="llama3.2", messages=HELLO
        )
    reply = await client.chat.completions.create(model="llama3.2", messages=HELLO)
    assert reply.choices[0].message.content == "Hello."


async def test_a_tool_call_has_no_content(server: FakeOpenAI, client: openai.AsyncOpenAI) -> None:
    """A fault that calls a tool is a valid reply, whose message says nothing."""
    server.fail(Fault.calls_tool("look"))
    reply = await client.chat.completions.create(model="llama3.2", messages=HELLO)
    message = reply.choices[0].message
    assert message.content is None
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.name == "look"  # type: ignore[union-attr]


async def test_other_paths_are_not_found(server: FakeOpenAI) -> None:
    """A path of Ollama's is not there, and a request that lacks a part is refused."""
    async with httpx.AsyncClient(base_url=server.host) as client:
        assert (await client.get("/api/version")).status_code == 404
        assert (await client.post("/v1/chat/completions", json={})).status_code == 400


@pytest.mark.parametrize("settings", [{"models": "tiny"}, {"refuses": "seed"}, {"slots": 0}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    """One text instead of several names, and no slot at all, are told at once."""
    with pytest.raises(FieldValueError, match="must be"):
        FakeOpenAI(**settings)


def test_a_fault_of_what_is_said_needs_a_path_that_asks(server: FakeOpenAI) -> None:
    """A fault that changes an answer is refused for a path that asks no model."""
    with pytest.raises(FieldValueError, match="/v1/models asks no model"):
        server.fail(Fault.says("no"), path="/v1/models")
