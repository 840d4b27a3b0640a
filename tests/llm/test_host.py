"""One server, asked once."""

import asyncio
import gc
import json
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from prism.errors import LLMError, ModelMissingError, TimedOutError
from prism.llm import Model
from prism.llm._host import Host
from prism.llm._ollama import OLLAMA
from prism.llm._settings import filled_in
from prism.reasoner import Cost
from prism.reasoner._model_client import Chat
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.servers import HELLO, Connect, Gate
from tests.kit.waiting import until

SETTINGS = filled_in({"timeout": 5, "load_timeout": 5, "keep_alive": "1m"})
QUESTION = {"q0": {"type": "choice", "instructions": "?", "criteria": {"a": "first", "b": None}}}


@pytest.fixture
async def host(server: FakeOllama) -> Any:
    """Return the decision model of the server."""
    host = Host(server.host, "nimble", SETTINGS, OLLAMA)
    yield host
    await host.close()


async def test_a_question_is_sent_as_the_server_expects_it(
    server: FakeOllama, connect: Connect
) -> None:
    """The request has model, messages, schema, seed, think and keep-alive where they belong."""
    schema = {"type": "object", "properties": {"next_state": {"enum": ["idle"]}}}
    pool = connect(kind="prism", seed=7, temperature=0.5, think=None, keep_alive="5m")
    reply = await pool.chat(HELLO, format=schema)
    assert reply.text == '{"next_state": "idle"}'
    assert (reply.model, reply.host) == ("tiny", server.host)
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
    }


async def test_by_default_a_model_does_not_think(server: FakeOllama, connect: Connect) -> None:
    """By default a model answers without thinking, at temperature 0, and stays loaded."""
    await connect().chat(HELLO)
    body = server.questions[0].body
    assert (body["think"], body["options"], body["keep_alive"]) == (
        False,
        {"seed": 0, "temperature": 0.0},
        "30m",
    )
    assert "format" not in body


REFUSES = Fault.status(400, 'invalid think value: false (must be "high", "medium" or "low")')


async def test_a_refused_think_is_left_out_from_then_on(
    server: FakeOllama, connect: Connect
) -> None:
    """The question is sent again without think, which counts; later ones leave it out at once."""
    server.fail(REFUSES)
    pool, costs = connect(), [Cost() for _ in range(3)]
    for cost in costs:
        await pool.chat(HELLO, cost=cost)
    assert [cost.attempts for cost in costs] == [2, 1, 1]
    assert [asked.body.get("think") for asked in server.questions] == [False, None, None, None]


@pytest.mark.parametrize(
    ("think", "fault"), [(True, REFUSES), ("low", REFUSES), (False, Fault.status(400, "format"))]
)
async def test_other_refusals_are_raised(
    server: FakeOllama, connect: Connect, think: Any, fault: Fault
) -> None:
    """A think that the user set is not dropped, and other refusals are not mistaken for its own."""
    server.fail(fault)
    with pytest.raises(LLMError, match="answered 400"):
        await connect(think=think).chat(HELLO)
    assert [asked.body["think"] for asked in server.questions] == [think]


async def test_a_decision_is_asked_in_the_wire_format(server: FakeOllama, connect: Connect) -> None:
    """A decision question is sent as it is; choice, probabilities, tokens and host come back."""
    cost = Cost()
    reply = await connect(model="nimble").systemone("Ann is tired.", QUESTION, cost=cost)
    assert reply.answers["q0"]["choice"] == "a"
    assert reply.answers["q0"]["probabilities"] == pytest.approx({"a": 0.9, "b": 0.1})
    assert (cost.input_tokens, cost.output_tokens) == (3, 0)
    assert (reply.model, reply.host) == ("nimble", server.host)
    assert server.questions[0].body == {
        "model": "nimble",
        "state": "Ann is tired.",
        "questions": QUESTION,
        "keep_alive": "30m",
    }


@pytest.mark.parametrize(
    ("code", "decides"), [(400, False), (403, False), (404, None), (405, None), (501, None)]
)
async def test_a_server_that_refuses_to_show_a_model_takes_no_decisions(
    server: FakeOllama, host: Host, code: int, decides: bool | None
) -> None:
    """A server that refuses to show a model takes no decisions; without the path it is unknown."""
    server.fail(Fault.status(code, "no such page"), path="/api/show")
    assert await host.decides() is decides
    assert host.known_to_decide is decides


async def test_a_model_that_comes_later_can_decide(server: FakeOllama, host: Host) -> None:
    """A missing model says what to type, and is asked about again once it may have been pulled."""
    models, server.models = server.models, ()
    with pytest.raises(ModelMissingError, match=r"ollama pull nimble$"):
        await host.decides()
    server.models = models
    assert await host.decides() is True


async def test_version_models_and_loading(server: FakeOllama, host: Host) -> None:
    """A server tells its version and models, and loads one without that counting as a question."""
    assert await host.kind() == f"Ollama {server.version}"
    assert await host.models() == ["tiny", "nimble"]
    await host.load()
    assert server.questions == []


@pytest.fixture
def front(server: FakeOllama) -> Iterator[ThreadingHTTPServer]:
    """Return a server that redirects requests with the key ``k`` to the fake one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            sent.append(
                json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
            )
            self.send_response(307 if self.headers.get("Authorization") == "Bearer k" else 401)
            self.send_header("Location", f"{server.host}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *message: Any) -> None:
            """Say nothing."""

    sent: list[Any] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.sent = sent  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
async def behind(front: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the host behind that server, asked with the key."""
    monkeypatch.setenv("OLLAMA_API_KEY", "k")
    host = Host(f"http://127.0.0.1:{front.server_port}", "nimble", SETTINGS, OLLAMA)
    yield host
    await host.close()


async def test_every_request_has_the_key_and_follows_redirects(
    server: FakeOllama, behind: Host
) -> None:
    """Behind a server that wants a key and redirects, looks and questions are answered alike."""
    assert await behind.kind() == f"Ollama {server.version}"
    assert await behind.models() == ["tiny", "nimble"]
    assert await behind.decides() is True
    cost = Cost()
    assert (await behind.chat(Chat(HELLO), cost)).text == "Hello."
    assert cost.attempts == 1


LOOKS: list[tuple[str, Callable[[Host], Awaitable[Any]], str]] = [
    ("/api/version", Host.kind, "20 s"),
    ("/api/tags", Host.models, "20 s"),
    ("/api/show", Host.decides, "20 s"),
    ("/api/generate", Host.load, "30 s"),
]


@pytest.mark.parametrize(("path", "look", "limit"), LOOKS, ids=[path for path, *_ in LOOKS])
async def test_looks_have_their_own_time_limits(
    server: FakeOllama,
    path: str,
    look: Callable[[Host], Awaitable[Any]],
    limit: str,
    loop_clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looks have a short time-out and loading its own, whatever that of a question is."""
    monkeypatch.setattr("prism.llm._host.LOOK_SECONDS", 20)
    settings = filled_in({"timeout": 60, "load_timeout": 30})
    host = Host(server.host, "nimble", settings, OLLAMA)
    server.fail(Fault.hang(), path=path)
    looking = asyncio.ensure_future(look(host))
    await loop_clock.passes(30, when=lambda: server.open_connections)
    with pytest.raises(TimedOutError, match=f"within {limit}"):
        await looking
    await host.close()


async def test_a_connection_is_kept_until_it_is_closed(
    server: FakeOllama, connect: Connect
) -> None:
    """Questions share a connection; closing twice is fine, and a later question connects again."""
    pool = connect()
    for _ in range(3):
        await pool.chat(HELLO)
    assert server.open_connections == 1
    await pool.close()
    await pool.close()
    await until(lambda: server.open_connections == 0)
    assert (await pool.chat(HELLO)).text == "Hello."


def test_a_closed_pool_serves_another_loop(server: FakeOllama) -> None:
    """A closed pool makes new connections and slots for the next event loop."""
    pool = Model("tiny", [server.host], concurrency=1, timeout=5).as_client()

    async def ask_and_close() -> list[str]:
        async with pool:
            return [
                reply.text for reply in await asyncio.gather(*(pool.chat(HELLO) for _ in range(3)))
            ]

    assert [asyncio.run(ask_and_close()) for _ in range(2)] == [["Hello."] * 3] * 2


@pytest.mark.parametrize("closes", [True, False])
def test_connections_end_with_their_loop(server: FakeOllama, closes: bool) -> None:
    """A pool that is not closed keeps no connection of an earlier loop, and may be closed later."""
    pool = Model("tiny", [server.host], timeout=5).as_client()

    async def ask() -> str:
        return (await pool.chat(HELLO)).text

    assert [asyncio.run(ask()) for _ in range(3)] == ["Hello."] * 3
    if closes:
        asyncio.run(pool.close())
    with asyncio.Runner() as other:
        other.run(until(lambda: server.open_connections == 0))


def test_connections_of_a_loop_that_rests_are_closed(server: FakeOllama) -> None:
    """A pool that moves to another event loop closes its connections in the first."""
    pool = Model("tiny", [server.host], timeout=5).as_client()
    with asyncio.Runner() as first, asyncio.Runner() as second:
        for runner in (first, second):
            assert runner.run(pool.chat(HELLO)).text == "Hello."
        first.run(until(lambda: server.open_connections == 1))
        second.run(pool.close())
        second.run(until(lambda: server.open_connections == 0))


async def test_a_cancelled_question_leaves_no_connection(
    server: FakeOllama, connect: Connect
) -> None:
    """Wherever a question is cancelled, also just after connecting, no connection stays open."""
    server.fail_always(Fault.hang())
    pool = connect(timeout=60)
    for steps in range(40):
        task = asyncio.create_task(pool.chat(HELLO))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    server.recover()
    assert (await pool.chat(HELLO)).text == "Hello."  # the server has seen all connections by now
    await until(lambda: server.open_connections == 1)


async def test_a_cancelled_question_leaves_others_their_connection(
    server: FakeOllama, connect: Connect
) -> None:
    """While another question is under way its connection is kept; afterwards all are closed."""
    server.fail_always(Fault.hang())
    pool = connect()
    broken_off = asyncio.create_task(pool.chat(HELLO))
    await until(lambda: len(server.questions) == 1)
    server.recover()
    gate = server.latency = Gate()
    other = asyncio.create_task(pool.chat(HELLO))
    await until(lambda: len(server.questions) == 2)
    broken_off.cancel()
    await asyncio.wait({broken_off})
    gate.is_open = True
    assert (await other).text == "Hello."
    await until(lambda: server.open_connections == 0)
    assert (await pool.chat(HELLO)).text == "Hello."


@pytest.mark.parametrize("steps", [1, 5, 20, 60])
async def test_closing_leaves_no_connection_of_questions_under_way(
    server: FakeOllama, connect: Connect, steps: int
) -> None:
    """Questions under way when a pool is closed are answered; then their connections close."""
    pool = connect()
    costs = [Cost() for _ in range(3)]
    tasks = [asyncio.create_task(pool.chat(HELLO, cost=cost)) for cost in costs]
    for _ in range(steps):
        await asyncio.sleep(0)
    await pool.close()
    await asyncio.gather(*tasks)
    assert [cost.attempts for cost in costs] == [1, 1, 1]
    assert len(server.questions) == 3
    await until(lambda: server.open_connections == 0)


@pytest.mark.parametrize("steps", range(2, 6))
@pytest.mark.slow
def test_connections_are_closed_however_often_questions_are_cancelled(
    steps: int, server: FakeOllama
) -> None:
    """A cancellation while connections are closed leaves none of them open."""

    async def cancel_twice() -> None:
        pool = Model("nimble", [server.host]).as_client()
        await asyncio.gather(*(pool.chat(HELLO) for _ in range(6)))
        server.fail_always(Fault.hang())
        asked = [asyncio.create_task(pool.chat(HELLO)) for _ in range(2)]
        await until(lambda: pool.servers[0].traffic.in_flight == 2)

        # the second meets the first in a few steps of the event loop, while connections are closed
        for pause in (steps, 0):
            for task in asked:
                task.cancel()
            for _ in range(pause):
                await asyncio.sleep(0)
        await asyncio.gather(*asked, return_exceptions=True)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(cancel_twice())
        gc.collect()
    assert [str(each.message) for each in warned] == []
