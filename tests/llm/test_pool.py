"""The chat client, against a real server on loopback."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import ollama
import pytest
import structlog
from structlog.testing import LogCapture

from prism.agents import SocialAgent
from prism.errors import (
    BadReplyError,
    FieldValueError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm import OllamaChatClient
from prism.runlog.events import DECISION
from prism.statechart import AgentState, Reasoner, social_media_chart

Server = Any
Connect = Callable[..., OllamaChatClient]

S = AgentState
HELLO = [{"role": "user", "content": "hello"}]
OPTIONS = [S.SCROLLING, S.COMPOSING]


def free_port() -> int:
    """Give a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def drops(server: Server) -> None:
    server.answer = server.drop


def hangs(server: Server) -> None:
    server.answer = server.hang


def breaks_off(server: Server) -> None:
    server.replies('{"message"', length=1_000)


def replies(body: Any, status: int = 200) -> Callable[[Server], None]:
    def set_up(server: Server) -> None:
        server.replies(body, status)

    return set_up


MISSING = {"error": "model 'tiny' not found"}
FAULTS = [
    pytest.param(drops, UnreachableError, "the connection to .* broke", httpx.TransportError, id="dropped"),
    pytest.param(breaks_off, UnreachableError, "the connection to .* broke", httpx.TransportError, id="cut short"),
    pytest.param(hangs, TimedOutError, "no complete reply from tiny at .* within 0.2 s", Exception, id="silent"),
    *(
        pytest.param(
            replies({"error": "busy"}, status),
            OverloadedError,
            f"answered {status}: busy",
            ollama.ResponseError,
            id=str(status),
        )
        for status in (429, 502, 503, 504)
    ),
    pytest.param(replies(MISSING, 404), ModelMissingError, "ollama pull tiny$", ollama.ResponseError, id="no model"),
    pytest.param(
        replies("404 page not found", 404),
        BadReplyError,
        "answered 404: 404 page not found",
        ollama.ResponseError,
        id="no such path",
    ),
    pytest.param(
        replies({"error": "bad\nformat"}, 400), LLMError, "answered 400: bad format", ollama.ResponseError, id="400"
    ),
    pytest.param(replies("", 500), LLMError, "answered 500: ", ollama.ResponseError, id="500"),
    pytest.param(replies({"error": None}, 500), LLMError, "answered 500: ", ollama.ResponseError, id="null error"),
    pytest.param(
        replies({"error": {"message": "slow down"}}, 429),
        OverloadedError,
        "answered 429: .*slow down",
        ollama.ResponseError,
        id="error object",
    ),
    pytest.param(replies(["busy"], 503), OverloadedError, "answered 503: ", Exception, id="error list"),
    pytest.param(replies("<html>", 200), BadReplyError, "is no reply", ValueError, id="not JSON"),
    pytest.param(replies(""), BadReplyError, "is no reply", ValueError, id="no body"),
    pytest.param(replies({"error": "oops"}), BadReplyError, "is no reply", ValueError, id="error with 200"),
    pytest.param(replies([1]), BadReplyError, "is no reply", Exception, id="an array"),
    pytest.param(replies("null"), BadReplyError, "is no reply", Exception, id="null"),
    pytest.param(replies({"message": "hi"}), BadReplyError, "is no reply", ValueError, id="wrong shape"),
    pytest.param(
        replies({"message": {"role": "assistant", "content": ""}}),
        BadReplyError,
        "tiny at .* gave an empty reply",
        type(None),
        id="empty",
    ),
]


# One question.


async def test_a_question_is_sent_as_the_server_expects_it(server: Server, connect: Connect) -> None:
    """The request names the model, and carries messages, schema, seed, thinking and keep-alive where they belong."""
    server.says("fine")
    schema = {"type": "object", "properties": {"next_state": {"enum": ["idle"]}}}
    client = connect(seed=7, temperature=0.5, think=None, keep_alive="5m")
    assert (await client.chat(HELLO, format=schema)).text == "fine"
    ((path, body),) = server.asked
    assert path == "/api/chat"
    assert body["model"] == "tiny"
    assert body["messages"] == HELLO
    assert body["format"] == schema
    assert body["options"] == {"seed": 7, "temperature": 0.5}
    assert body["keep_alive"] == "5m"
    assert body["stream"] is False
    assert "seed" not in body
    assert "think" not in body


async def test_by_default_a_model_does_not_think(server: Server, connect: Connect) -> None:
    """Unless told otherwise a model answers without thinking, as likely as it can, in any form, and stays loaded."""
    server.says("fine")
    await connect().chat(HELLO)
    body = server.asked[0][1]
    assert (body["think"], body["options"], body["keep_alive"]) == (False, {"seed": 0, "temperature": 0.0}, "30m")
    assert "format" not in body


@pytest.mark.parametrize(("set_up", "kind", "message", "cause"), FAULTS)
async def test_every_fault_has_its_class(
    server: Server, connect: Connect, set_up: Callable[[Server], None], kind: type, message: str, cause: type
) -> None:
    """Whatever the server does wrong is one error of prism's tree, with a message to act on and its cause."""
    set_up(server)
    with pytest.raises(LLMError, match=message) as caught:
        await connect(timeout=0.2 if set_up is hangs else 5).chat(HELLO)
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, cause)


async def test_a_server_that_is_not_there_is_unreachable(connect: Connect) -> None:
    """Where nothing listens the error is also a ConnectionError, and says which host and what to start."""
    host = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match=f"cannot reach {host}: is 'ollama serve' running there") as caught:
        await connect(host).chat(HELLO)
    assert type(caught.value) is UnreachableError
    assert isinstance(caught.value.__cause__, ConnectionError)


async def test_a_client_outlives_its_failures(server: Server, connect: Connect) -> None:
    """After any fault the next question is answered, also by the one slot there is."""
    client = connect(concurrency=1)
    for set_up in (drops, breaks_off, replies("", 500), replies([1])):
        set_up(server)
        with pytest.raises(LLMError):
            await client.chat(HELLO)
    server.says("fine")
    assert (await client.chat(HELLO)).text == "fine"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": ""}, "model must be the name of a model on the server, such as 'llama3.2'"),
        ({"timeout": 0}, "timeout must be above 0, got 0"),
        ({"timeout": float("nan")}, "timeout must be above 0, got nan"),
        ({"concurrency": 0}, "concurrency must be above 0, got 0"),
        ({"host": ""}, "host must be an address such as http://127.0.0.1:11434, got ''"),
        ({"host": "http://[::1"}, "host must be an address such as"),
        ({"host": "localhost:99999"}, "host must be an address such as"),
        ({"host": "ftp://localhost"}, "host must be an address such as"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str) -> None:
    """A setting that could never work is an error when the client is made, not when it is asked."""
    with pytest.raises(FieldValueError, match=message):
        OllamaChatClient(**{"host": "localhost", "model": "tiny", **settings})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "http://[::1]:11434", "https://models.example/ollama"])
def test_an_address_may_be_short(host: str) -> None:
    """A host may be given with or without scheme, port and path."""
    assert OllamaChatClient(host, "tiny").host == host


# Many questions.


async def test_no_more_questions_than_allowed_are_under_way(server: Server, connect: Connect) -> None:
    """Of many questions exactly as many as the limit reach the server at the same time."""
    server.says("fine")
    reply, pair, lock = server.answer, threading.Barrier(2, timeout=5), threading.Lock()
    under_way: list[int] = [0]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        with lock:
            under_way.append(under_way[-1] + 1)
        pair.wait()  # breaks, and the question with it, unless there is a second one
        time.sleep(0.02)  # a third one would come in now
        with lock:
            under_way.append(under_way[-1] - 1)
        pair.wait()
        reply(handler)

    server.answer = answer
    client = connect(concurrency=2)
    assert [reply.text for reply in await asyncio.gather(*(client.chat(HELLO) for _ in range(8)))] == ["fine"] * 8
    assert max(under_way) == 2


async def test_a_cancelled_question_frees_its_slot(server: Server, connect: Connect) -> None:
    """Cancelling the one question under way lets the next one through."""
    arrived = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        arrived.set()
        server.hang(handler)

    server.answer = answer
    client = connect(concurrency=1)
    first = asyncio.create_task(client.chat(HELLO))
    assert await asyncio.to_thread(arrived.wait, 5)
    second = asyncio.create_task(client.chat(HELLO))
    await asyncio.sleep(0)
    server.says("fine")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await asyncio.wait_for(second, 5)).text == "fine"


async def test_closing_hangs_up(server: Server, connect: Connect) -> None:
    """A client keeps its connection for the next question until it is closed, which may be said twice."""
    server.says("fine")
    client = connect()
    await client.chat(HELLO)
    await client.chat(HELLO)
    assert not server.hung_up.is_set()
    await client.close()
    await client.close()
    assert await asyncio.to_thread(server.hung_up.wait, 5)


def test_a_closed_client_serves_another_loop(server: Server) -> None:
    """Once closed, a client makes new connections and slots, so it can be used in the next event loop."""
    server.says("fine")
    client = OllamaChatClient(server.url, "tiny", concurrency=1, timeout=5)

    async def ask_and_close() -> list[str]:
        replies = await asyncio.gather(*(client.chat(HELLO) for _ in range(3)))
        await client.close()
        return [reply.text for reply in replies]

    assert [asyncio.run(ask_and_close()) for _ in range(2)] == [["fine"] * 3] * 2


# With the reasoner.


async def test_a_model_decides(server: Server, connect: Connect) -> None:
    """A reasoner puts agent, post and options to the model, as prompt and as schema, and takes its answer."""
    server.says('{"next_state": "composing"}')
    agent = SocialAgent("ann", "Ann", ["tea"], "calm", state=S.EVALUATING)
    chosen = await Reasoner(connect()).decide(agent, agent.state, "decides", OPTIONS, {"text": "the tea is on"})
    assert chosen is S.COMPOSING
    body = server.asked[-1][1]
    assert body["format"]["properties"]["next_state"]["enum"] == ["scrolling", "composing"]
    (message,) = body["messages"]
    assert message["role"] == "user"
    for part in ("Ann", "tea", "calm", "evaluating", "decides", "the tea is on", "- composing: "):
        assert part in message["content"]


@pytest.mark.parametrize(
    "set_up",
    [
        *(pytest.param(fault.values[0], id=fault.id) for fault in FAULTS),
        pytest.param(lambda server: server.says("I would rather compose."), id="no JSON in it"),
        pytest.param(lambda server: server.says('{"next_state": "resting"}'), id="no option"),
    ],
)
async def test_every_fault_becomes_the_fallback(
    server: Server, connect: Connect, set_up: Callable[[Server], None]
) -> None:
    """Whatever goes wrong with the model, the reasoner never raises: it takes the fallback, and says why."""
    set_up(server)
    log = LogCapture()
    client = connect(timeout=0.2 if set_up is hangs else 5)
    reasoner = Reasoner(client, fallback=S.COMPOSING, logger=structlog.wrap_logger(None, processors=[log]))
    assert await reasoner.decide(SocialAgent("ann"), S.EVALUATING, "decides", OPTIONS) is S.COMPOSING
    decision = log.entries[-1]
    assert (decision["event"], decision["chosen"], decision["source"]) == (DECISION, "composing", "fallback")
    assert decision["reason"]
    assert server.asked


async def test_the_chart_asks_the_model_where_several_moves_are_open(server: Server, connect: Connect) -> None:
    """An engaged agent's decision is the model's, and the chart records it as any other move."""
    server.says('<think>a like will do</think>{"next_state": "ENGAGING_LIKE"}')
    agent = SocialAgent("ann", interests=["tea"], state=S.EVALUATING)
    chart, reasoner = social_media_chart(), Reasoner(connect(), fallback=S.SCROLLING)
    assert await chart.afire(agent, "decides", {"topics": ["tea"]}, reasoner=reasoner) is S.ENGAGING_LIKE
    assert agent.state_history[0].to_state is S.ENGAGING_LIKE
    assert await chart.afire(agent, "action_done", reasoner=reasoner) is S.RESTING
    assert [path for path, _ in server.asked].count("/api/chat") == 1
