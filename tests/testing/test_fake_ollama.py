"""A model server for tests, as the real client and users meet it."""

import asyncio
import json
import subprocess
import sys
import threading
from typing import Any

import httpx
import ollama
import pytest

from prism.errors import FieldValueError
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.waiting import until

HELLO = [{"role": "user", "content": "hello there"}]
CHAT = {"model": "llama3.2", "messages": HELLO, "stream": False}
SCHEMA = {"type": "object", "properties": {"next_state": {"enum": ["idle", "resting"]}}}


async def chat_all(server: FakeOllama, times: int) -> list[int]:
    """Ask many questions at once and give their statuses."""
    async with httpx.AsyncClient(base_url=server.host, timeout=5) as client:
        answers = await asyncio.gather(*(client.post("/api/chat", json=CHAT) for _ in range(times)))
    return [answer.status_code for answer in answers]


# The wire format


async def test_it_chats(server: FakeOllama, client: ollama.AsyncClient) -> None:
    """A chat returns a message with token counts; with a schema it is one of its options."""
    reply = await client.chat("llama3.2", HELLO)
    assert (reply.model, reply.done) == ("llama3.2", True)
    assert (reply.message.role, reply.message.content) == ("assistant", "Hello.")
    assert (reply.prompt_eval_count, reply.eval_count) == (2, 1)
    reply = await client.chat("llama3.2", HELLO, format=SCHEMA)
    assert json.loads(reply.message.content or "") == {"next_state": "idle"}
    # a client that streams gets the message and its counts at once
    (part,) = [part async for part in await client.chat("llama3.2", HELLO, stream=True)]
    assert (part.message.content, part.done, part.eval_count) == ("Hello.", True, 1)
    asked = server.questions[1]
    assert (asked.path, asked.model, asked.prompt) == ("/api/chat", "llama3.2", "hello there")
    assert [each.options for each in server.questions] == [(), ("idle", "resting"), ()]


async def test_it_writes_what_it_is_told_to(server: FakeOllama, client: ollama.AsyncClient) -> None:
    """A plain prompt is answered by `write`, from prompt and schema; data is sent as JSON."""
    calls: list[Any] = []

    def write(prompt: str, schema: Any) -> Any:
        calls.append((prompt, schema))
        return {"n": 1} if schema else "A text."

    server.write = write
    plain = {"type": "object", "properties": {"n": {"type": "integer"}}}
    texts = [
        (await client.chat("llama3.2", HELLO, format=schema)).message.content
        for schema in (None, plain, SCHEMA)
    ]
    # a question with options is still a choice
    assert texts == ["A text.", '{"n": 1}', '{"next_state": "idle"}']
    assert calls == [("hello there", None), ("hello there", plain)]
    assert [asked.schema for asked in server.questions] == [None, plain, SCHEMA]


async def test_it_lists_and_loads_models(server: FakeOllama, client: ollama.AsyncClient) -> None:
    """The list names all models, and loading one is no question."""
    assert [item.model for item in (await client.list()).models] == ["llama3.2"]
    assert (await client.generate("llama3.2", "")).done_reason == "load"
    assert server.questions == []


@pytest.mark.parametrize(
    "ask",
    [lambda client: client.chat("vast", HELLO), lambda client: client.generate("vast", "")],
    ids=["chat", "generate"],
)
async def test_a_missing_model_is_not_found(client: ollama.AsyncClient, ask: Any) -> None:
    """Whatever is asked of a model that is not there, the answer is Ollama's 404."""
    with pytest.raises(ollama.ResponseError, match="model 'vast' not found") as caught:
        await ask(client)
    assert caught.value.status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "problem"),
    [
        ("/api/chat", b"{", 400, "invalid JSON: "),
        ("/api/chat", b"\xff\xfe", 400, "invalid JSON: "),
        ("/api/chat", b"[]", 400, "invalid request: "),
        ("/api/chat", b'{"model": "llama3.2", "messages": ["hi"]}', 400, "invalid request: "),
        ("/api/generate", b"null", 400, "invalid request: "),
        ("/api/tags", b"", 404, "not found"),
    ],
)
async def test_a_wrong_request_is_refused(
    server: FakeOllama, path: str, body: bytes, status: int, problem: str
) -> None:
    """The same connection carries the next request, and nothing was asked."""
    async with httpx.AsyncClient(base_url=server.host) as client:
        refused = await client.post(path, content=body)
        assert (refused.status_code, problem in refused.text) == (status, True)
        assert (await client.get("/api/version")).json() == {"version": "0.35.0"}
    assert server.questions == []


@pytest.mark.parametrize("schema", [None, SCHEMA])
async def test_a_function_that_raises_is_a_500(
    server: FakeOllama, client: ollama.AsyncClient, schema: Any
) -> None:
    """The client gets the mistake in the test's own function, and the server goes on."""

    def fail(asked: Any, *_: Any) -> str:
        raise LookupError(getattr(asked, "prompt", asked))

    server.choose = server.write = fail
    with pytest.raises(ollama.ResponseError, match="LookupError: hello there") as caught:
        await client.chat("llama3.2", HELLO, format=schema)
    assert caught.value.status_code == 500
    assert (await client.list()).models


@pytest.mark.parametrize("settings", [{"slots": 0}, {"models": "llama3.2"}])
@pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])
def test_impossible_settings_are_refused(kind: Any, settings: dict[str, Any]) -> None:
    """No slot at all, and one text in place of several names, are refused."""
    with pytest.raises(FieldValueError):
        kind(**settings)


# Slots, queue and latency


async def test_slots_limit_answers_at_once() -> None:
    """No more answers than slots are made at a time."""
    with FakeOllama(latency=0.02, slots=2) as server:
        assert await chat_all(server, 8) == [200] * 8
        assert server.most_at_once == 2


async def test_a_latency_may_be_waited_for() -> None:
    """A function of the latency may wait itself; each question has a thread of its own."""
    is_ready = threading.Event()
    with FakeOllama(latency=lambda: float(not is_ready.wait())) as server:
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
