"""One server, asked once."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from prism.errors import LLMError, ModelMissingError
from prism.llm import OllamaPool
from prism.llm.host import ModelSettings, OllamaHost, _base_url
from prism.testing import FakeOllama, Fault

Connect = Callable[..., OllamaPool]
HELLO = [{"role": "user", "content": "hello"}]
QUESTION = {"q0": {"type": "choice", "instructions": "?", "criteria": {"a": "first", "b": None}}}


@pytest.fixture
async def host(server: FakeOllama) -> Any:
    """Give the decision model of the server."""
    settings = ModelSettings("nimble", 5, 5, temperature=0.0, seed=0, think=False, keep_alive="1m")
    host = OllamaHost(server.host, settings)
    yield host
    await host.close()


async def test_a_question_is_sent_as_the_server_expects_it(server: FakeOllama, connect: Connect) -> None:
    """The request names the model, and carries messages, schema, seed, thinking and keep-alive where they belong."""
    schema = {"type": "object", "properties": {"next_state": {"enum": ["idle"]}}}
    reply = await connect(seed=7, temperature=0.5, think=None, keep_alive="5m").chat(HELLO, format=schema)
    assert (reply.text, reply.model, reply.host, reply.attempts) == ('{"next_state": "idle"}', "tiny", server.host, 1)
    assert (reply.input_tokens, reply.output_tokens) == (1, 2)
    (asked,) = server.questions
    assert asked.path == "/api/chat"
    assert asked.body == {
        "model": "tiny",
        "messages": HELLO,
        "format": schema,
        "options": {"seed": 7, "temperature": 0.5},
        "keep_alive": "5m",
        "stream": False,
        "tools": [],
    }


async def test_by_default_a_model_does_not_think(server: FakeOllama, connect: Connect) -> None:
    """Unless told otherwise a model answers without thinking, as likely as it can, in any form, and stays loaded."""
    await connect().chat(HELLO)
    body = server.questions[0].body
    assert (body["think"], body["options"], body["keep_alive"]) == (False, {"seed": 0, "temperature": 0.0}, "30m")
    assert "format" not in body


async def test_a_decision_is_asked_in_the_wire_format(server: FakeOllama, connect: Connect) -> None:
    """A decision question goes out as it is, and comes back with choice, probabilities, usage and host."""
    reply = await connect(model="nimble").systemone("Ann is tired.", QUESTION)
    assert reply.answers["q0"]["choice"] == "a"
    assert reply.answers["q0"]["probabilities"] == pytest.approx({"a": 0.9, "b": 0.1})
    assert reply.usage == {"input_tokens": 3, "output_tokens": 0}
    assert (reply.model, reply.host, reply.attempts) == ("nimble", server.host, 1)
    assert server.questions[0].body == {
        "model": "nimble",
        "state": "Ann is tired.",
        "questions": QUESTION,
        "keep_alive": "30m",
    }


async def test_ten_megabytes_are_a_reply(server: FakeOllama, connect: Connect) -> None:
    """A reply of any size is read to its end."""
    server.fail(Fault.says("x" * 10_000_000))
    assert len((await connect().chat(HELLO)).text) == 10_000_000


@pytest.mark.parametrize(("models", "decides"), [(["nimble"], False), ([], True)], ids=["chats", "decides"])
async def test_what_a_model_can_do_is_asked_once(serve: Any, connect: Connect, models: Any, decides: bool) -> None:
    """The server is asked once for the model's capabilities; later its answer is remembered, even if it is gone."""
    server = serve(models=models, decision_models=["nimble"] if decides else [])
    pool = connect(server, model="nimble")
    assert await pool.offers_decisions() is decides
    server.stop()
    assert await pool.offers_decisions() is decides


@pytest.mark.parametrize(
    "fault",
    [Fault.status(500), Fault.status(503), Fault.status(429), Fault.body(b"<html>"), Fault.drop()],
    ids=["500", "503", "429", "html", "dropped"],
)
async def test_what_says_nothing_about_decisions_is_asked_again(
    server: FakeOllama, host: OllamaHost, fault: Fault
) -> None:
    """After a passing failure it is not known whether the model decides, so the next one who wants to know asks."""
    server.fail(fault, path="/api/show")
    with pytest.raises(LLMError):
        await host.decides()
    assert host.known_to_decide is None
    assert await host.decides() is True


@pytest.mark.parametrize("code", [400, 404, 405])
async def test_a_server_without_capabilities_takes_no_decisions(
    server: FakeOllama, host: OllamaHost, code: int
) -> None:
    """A server that refuses to tell what its models can do has none that decide."""
    server.fail(Fault.status(code, "no such page"), path="/api/show")
    assert await host.decides() is False


async def test_a_model_that_comes_later_can_decide(server: FakeOllama, host: OllamaHost) -> None:
    """A missing model says what to type, and is asked about again once it may have been pulled."""
    models, server.models = server.models, ()
    with pytest.raises(ModelMissingError, match=r"ollama pull nimble$"):
        await host.decides()
    server.models = models
    assert await host.decides() is True


async def test_version_models_and_loading(server: FakeOllama, host: OllamaHost) -> None:
    """A server tells its version and models, and loads one on request without that counting as a question."""
    assert await host.version() == server.version
    assert await host.models() == ["tiny", "nimble"]
    await host.load()
    assert server.questions == []


@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b"null"])
async def test_a_version_that_is_none_is_a_bad_reply(server: FakeOllama, host: OllamaHost, body: bytes) -> None:
    """Something else than Ollama at the address is told by its answer to the first request."""
    server.fail(Fault.body(body), path="/api/version")
    with pytest.raises(LLMError, match="answered with something that is no reply"):
        await host.version()


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("localhost", "http://localhost:11434"),
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        ("[::1]", "http://[::1]:11434"),
        ("models.example/ollama/", "http://models.example:11434/ollama"),
        ("http://localhost", "http://localhost"),
        ("https://models.example/ollama/", "https://models.example/ollama"),
    ],
)
def test_a_short_address_is_completed_as_the_client_does(address: str, url: str) -> None:
    """Without a scheme the port is Ollama's, with one it is the scheme's."""
    assert _base_url(address) == url


async def test_a_connection_is_kept_until_it_is_closed(server: FakeOllama, connect: Connect, until: Any) -> None:
    """Questions share a connection, closing hangs up and may be said twice, and a later question connects again."""
    pool = connect()
    for _ in range(3):
        await pool.chat(HELLO)
    assert server.open_connections == 1
    await pool.close()
    await pool.close()
    await until(lambda: server.open_connections == 0)
    assert (await pool.chat(HELLO)).text == "Hello."


def test_a_closed_pool_serves_another_loop(server: FakeOllama) -> None:
    """Once closed, a pool makes new connections and slots, so it can be used in the next event loop."""
    pool = OllamaPool([server.host], "tiny", concurrency=1, timeout=5)

    async def ask_and_close() -> list[str]:
        async with pool:
            return [reply.text for reply in await asyncio.gather(*(pool.chat(HELLO) for _ in range(3)))]

    assert [asyncio.run(ask_and_close()) for _ in range(2)] == [["Hello."] * 3] * 2
