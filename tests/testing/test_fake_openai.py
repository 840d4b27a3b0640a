"""A fake OpenAI-compatible server, as the real client meets it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from prism.errors import FieldValueError
from prism.testing import FakeOpenAI, Fault
from tests.kit.modules import Later
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


async def test_it_chats(server: FakeOpenAI, client: openai.AsyncOpenAI) -> None:
    """A chat returns a message with token counts; with a schema it is one of its options."""
    reply = await client.chat.completions.create(model="llama3.2", messages=HELLO)
    choice = reply.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Hello.", "stop")
    assert choice.logprobs is None
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


@pytest.mark.parametrize("chances", [None, {"A": 0.25, "B": 0.75, "C": 0.0}])
async def test_it_gives_log_probabilities(
    server: FakeOpenAI, client: openai.AsyncOpenAI, chances: dict[str, float] | None
) -> None:
    """The tokens make up the content; the chosen one is certain unless a fault weighs it."""
    if chances is not None:
        server.fail(Fault.weighs(chances))
    reply = await client.chat.completions.create(
        model="llama3.2", messages=HELLO, response_format=FORMAT, logprobs=True, top_logprobs=20
    )
    tokens: Any = reply.choices[0].logprobs
    assert "".join(token.token for token in tokens.content) == reply.choices[0].message.content
    (chosen,) = (token for token in tokens.content if token.token == "B")
    weights = {one.token: math.exp(one.logprob) for one in chosen.top_logprobs}
    assert weights == pytest.approx(chances or {"B": 1.0})


async def test_it_lists_its_models(client: openai.AsyncOpenAI) -> None:
    """The models are those that it was given."""
    assert [model.id async for model in client.models.list()] == ["llama3.2"]
    with pytest.raises(FieldValueError, match="must be a list of names"):
        FakeOpenAI(refuses="seed")


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
    """What cannot be served is refused in the form of such servers."""
    with FakeOpenAI(**settings) as server:
        async for client in client_of(server, "wrong"):
            with pytest.raises(getattr(openai, raised)) as caught:
                await client.chat.completions.create(model="llama3.2", messages=HELLO, **more)
            assert isinstance(caught.value, openai.APIStatusError)
            assert set(caught.value.body or {}) == {"message", "type", "param", "code"}  # type: ignore[call-overload]


async def test_other_paths_are_not_found(server: FakeOpenAI) -> None:
    """A path of Ollama's is not there, and a request that lacks a part is refused."""
    async with httpx.AsyncClient(base_url=server.host) as client:
        assert (await client.get("/api/version")).status_code == 404
        assert (await client.post("/v1/chat/completions", json={})).status_code == 400
