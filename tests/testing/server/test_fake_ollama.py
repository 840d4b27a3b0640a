"""A model server for tests, as the real client and users meet it."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from typing import Any

import httpx
import ollama
import pytest

from prism.errors import FieldValueError
from prism.testing import Asked, FakeOllama, FakeOpenAI, Fault
from tests.kit.waiting import until

HELLO = [{"role": "user", "content": "hello there"}]
SCHEMA = {"type": "object", "properties": {"next_state": {"enum": ["idle", "resting"]}}}
CHOICE = {
    "type": "choice",
    "instructions": "What now?",
    "criteria": {"a": "first", "b": None, "c": None},
}


async def chat_all(server: FakeOllama, times: int) -> list[int]:
    """Ask many questions at once and give their statuses."""
    body = {"model": "llama3.2", "messages": HELLO, "stream": False}
    async with httpx.AsyncClient(base_url=server.host, timeout=5) as client:
        answers = await asyncio.gather(*(client.post("/api/chat", json=body) for _ in range(times)))
    return [answer.status_code for answer in answers]


# The wire format


async def test_it_chats(server: FakeOllama, client: ollama.AsyncClient) -> None:
    """A chat returns a message with token counts; with a schema it is one of its options."""
    reply = await client.chat("llama3.2", HELLO)
    assert (reply.model, reply.message.role, reply.message.content, reply.done) == (
        "llama3.2",
        "assistant",
        "Hello.",
        True,
    )
    assert (reply.prompt_eval_count, reply.eval_count) == (2, 1)
    reply = await client.chat("llama3.2", HELLO, format=SCHEMA)
    assert json.loads(reply.message.content or "") == {"next_state": "idle"}
    assert [
        (asked.path, asked.model, asked.prompt, asked.options) for asked in server.questions
    ] == [
        ("/api/chat", "llama3.2", "hello there", ()),
        ("/api/chat", "llama3.2", "hello there", ("idle", "resting")),
    ]


async def test_it_writes_what_it_is_told_to(server: FakeOllama, client: ollama.AsyncClient) -> None:
    """A plain prompt is answered by `write`, from prompt and schema; data is sent as JSON."""
    told: list[Any] = []

    def write(prompt: str, schema: Any) -> Any:
        told.append((prompt, schema))
        return {"n": 1} if schema else "A text."

    server.write = write
    plain = {"type": "object", "properties": {"n": {"type": "integer"}}}
    texts = [
        (await client.chat("llama3.2", HELLO, format=schema)).message.content
        for schema in (None, plain, SCHEMA)
    ]
    # a question with options is still a choice
    assert texts == ["A text.", '{"n": 1}', '{"next_state": "idle"}']
    assert told == [("hello there", None), ("hello there", plain)]
    assert [asked.schema for asked in server.questions] == [None, plain, SCHEMA]


async def test_a_stream_has_one_line(client: ollama.AsyncClient) -> None:
    """A client that streams gets the message and its counts at once."""
    (part,) = [part async for part in await client.chat("llama3.2", HELLO, stream=True)]
    assert (part.message.content, part.done, part.eval_count) == ("Hello.", True, 1)


async def test_it_describes_and_loads_models(
    server: FakeOllama, client: ollama.AsyncClient
) -> None:
    """The list names all models, each shows what it can do, and loading one is no question."""
    assert [item.model for item in (await client.list()).models] == ["llama3.2"]
    assert (await client.show("llama3.2")).capabilities == ["completion"]
    assert (await client.generate("llama3.2", "")).done_reason == "load"
    assert server.questions == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.chat("vast", HELLO),
        lambda client: client.generate("vast", ""),
        lambda client: client.show("vast"),
    ],
    ids=["chat", "generate", "show"],
)
async def test_a_missing_model_is_not_found(client: ollama.AsyncClient, ask: Any) -> None:
    """Whatever is asked of a model that is not there, the answer is Ollama's 404."""
    with pytest.raises(ollama.ResponseError, match="model 'vast' not found") as caught:
        await ask(client)
    assert caught.value.status_code == 404


@pytest.mark.parametrize("schema", [None, SCHEMA])
async def test_a_function_that_raises_is_a_500(
    server: FakeOllama, client: ollama.AsyncClient, schema: Any
) -> None:
    """A mistake in the test's own function is told to the client, and the server goes on."""

    def choose(asked: Asked) -> str:
        raise LookupError(asked.prompt)

    def write(prompt: str, schema: Any) -> str:
        raise LookupError(prompt)

    server.choose, server.write = choose, write
    with pytest.raises(ollama.ResponseError, match="LookupError: hello there") as caught:
        await client.chat("llama3.2", HELLO, format=schema)
    assert caught.value.status_code == 500
    assert (await client.list()).models


@pytest.mark.parametrize("settings", [{"slots": 0}, {"models": "llama3.2"}])
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    """No slot at all, and one text in place of several names, are refused."""
    with pytest.raises(FieldValueError):
        FakeOllama(**settings)


# Slots, queue and latency


async def test_slots_limit_answers_at_once() -> None:
    """No more answers than slots are made at a time, and the time they are busy is added up."""
    with FakeOllama(latency=0.02, slots=2) as server:
        assert await chat_all(server, 8) == [200] * 8
        assert server.most_at_once == 2
        assert server.busy_seconds > 0.1


async def test_a_latency_may_be_waited_for() -> None:
    """A function of the latency may wait itself; each question has a thread of its own."""
    is_ready = threading.Event()

    def latency() -> float:
        is_ready.wait()
        return 0.0

    with FakeOllama(latency=latency) as server:
        asked = asyncio.create_task(chat_all(server, 3))
        await until(lambda: server.most_at_once == 3)
        assert not asked.done()
        is_ready.set()
        assert await asked == [200] * 3


async def test_a_client_that_hangs_up_frees_its_slot() -> None:
    """Answers that nobody waits for any more are cancelled, under way and in the queue."""
    with FakeOllama(slots=1) as server:
        server.fail_always(Fault.hang())
        gone = [asyncio.create_task(chat_all(server, 1)) for _ in range(2)]
        await until(lambda: len(server.questions) == 2)
        for task in gone:
            task.cancel()
        await asyncio.wait(gone)
        await until(lambda: not server.open_connections)
        server.recover()
        assert await chat_all(server, 2) == [200, 200]


# Starting and stopping


async def test_it_stops_and_starts_on_its_port(server: FakeOllama) -> None:
    """Stopping cuts off all requests and refuses new ones; a restart serves at the same address."""
    address = server.host
    server.latency = 10
    asked = asyncio.create_task(chat_all(server, 1))
    await until(lambda: server.questions)
    await asyncio.to_thread(server.stop)
    with pytest.raises((httpx.NetworkError, httpx.RemoteProtocolError)):
        await asked
    assert server.open_connections == 0
    with pytest.raises(httpx.ConnectError):
        await chat_all(server, 1)
    server.latency = 0
    server.start()
    assert server.host == address
    assert await chat_all(server, 3) == [200] * 3


def test_it_runs_once(server: FakeOllama) -> None:
    """Starting what runs is an error that names the address; stopping what is stopped is none."""
    with pytest.raises(RuntimeError, match=f"already running, at {server.host}"):
        server.start()
    server.stop()
    server.stop()


def test_a_taken_port_is_an_error(server: FakeOllama) -> None:
    """If another program has taken the port, a restart fails at once with the system's error."""
    port = int(server.host.rpartition(":")[2])
    server.stop()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError, match="in use"):
        server.start()


@pytest.mark.slow
def test_it_needs_no_pytest() -> None:
    """The server works in a process that has no pytest."""
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "from prism.testing import FakeOllama\n"
        "with FakeOllama() as server: print(server.host)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.startswith("http://127.0.0.1:")


def test_a_server_can_have_a_port_of_its_own() -> None:
    """``port`` is where it listens, which another one may take once it has stopped."""
    with FakeOllama() as any_port:
        port = int(any_port.url.rpartition(":")[2])
    for kind in (FakeOllama, FakeOpenAI):
        with kind(port=port) as server:
            assert server.url.rpartition(":")[2] == str(port)
