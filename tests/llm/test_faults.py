"""What a server does wrong, as one tree of errors."""

import asyncio
import re
import socket
from typing import Any

import pytest

from prism.errors import (
    BadReplyError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._bad_replies import NoConnectionError
from prism.reasoner import Cost
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.server_faults import FAULTS
from tests.kit.servers import HELLO, QUESTION, Connect


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("fault", "kind", "message", "cause"), [pytest.param(*row, id=name) for name, *row in FAULTS]
)
@pytest.mark.sampled(6)
async def test_every_fault_has_its_class(
    server: FakeOllama,
    connect: Connect,
    fault: Fault,
    kind: type,
    message: str,
    cause: type,
    loop_clock: Clock,
) -> None:
    """Every fault of a server is one error of prism's tree, with advice, its host and cause."""
    server.fail(fault)
    cost = Cost()
    asking = asyncio.create_task(connect(timeout=5).chat(HELLO, cost=cost))
    if kind is TimedOutError:
        await loop_clock.passes(5, when=lambda: server.asked)
    with pytest.raises(LLMError, match=message) as caught:
        await asking
    assert type(caught.value) is kind
    assert caught.value.host == server.host
    assert (cost.attempts, cost.host) == (1, server.host)
    assert isinstance(caught.value.__cause__, cause)


START = "check that 'ollama serve' is running there"


@pytest.mark.parametrize(
    ("host", "why", "advice"),
    [
        ("http://127.0.0.1:{closed}", "All connection attempts failed", START),
        ("http://nowhere.invalid", r"\[Errno -?\d+\] [^(]+", START),
        ("https://127.0.0.1:{server}", r"\[SSL.*", START),
    ],
    ids=["refused", "no such name", "no TLS"],
)
@pytest.mark.sampled(2)
async def test_a_server_that_is_not_there_is_unreachable(
    server: FakeOllama, connect: Connect, host: str, why: str, advice: str
) -> None:
    """A failure to connect is a ConnectionError; it says which host, why, and what to do."""
    host = host.format(closed=free_port(), server=server.host.rpartition(":")[2])
    with pytest.raises(ConnectionError) as caught:
        await connect(host).chat(HELLO)
    assert re.fullmatch(
        rf"cannot reach {host} \({why}\): {advice}",
        str(caught.value),
    )
    assert type(caught.value) is UnreachableError
    assert isinstance(caught.value.__cause__, NoConnectionError)


@pytest.mark.parametrize(
    ("settings", "model", "fault", "kind"),
    [
        ({"decides": False}, "nimble", None, DecisionsUnsupportedError),
        ({}, "tiny", None, DecisionsUnsupportedError),
        ({}, "vast", None, ModelMissingError),
        ({}, "nimble", Fault.status(405), DecisionsUnsupportedError),
        ({}, "nimble", Fault.status(501), DecisionsUnsupportedError),
        ({}, "nimble", Fault.status(400, "state is larger than 65536 bytes"), LLMError),
        ({}, "nimble", Fault.status(500), LLMError),
        ({}, "nimble", Fault.status(503), OverloadedError),
        ({}, "nimble", Fault.body(b'{"answers": {}}'), BadReplyError),
    ],
    ids=["old server", "old model", "no model", "405", "501", "400", "500", "503", "wrong shape"],
)
@pytest.mark.sampled(6)
async def test_only_a_refusal_to_decide_is_one(
    serve: Any,
    connect: Connect,
    settings: dict[str, Any],
    model: str,
    fault: Fault | None,
    kind: type,
) -> None:
    """A refusal to decide is told from all other failures of a decision question."""
    server = serve(**settings)
    server.fail(*[fault] if fault else [])
    with pytest.raises(LLMError) as caught:
        await connect(server, model=model).systemone("state", QUESTION)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    "content",
    ["half a character: \ud83d", 3, float("nan")],
    ids=["half a character", "number", "no number"],
)
async def test_a_question_that_cannot_be_sent_is_not_blamed_on_the_server(
    server: FakeOllama, connect: Connect, content: Any
) -> None:
    """What no request can carry is an error that says so, and the server never hears of it."""
    messages, cost = [{"role": "user", "content": content}], Cost()
    with pytest.raises(
        LLMError, match=f"the question cannot be sent to tiny at {server.host}"
    ) as caught:
        await connect(attempts=3).chat(messages, cost=cost)
    assert type(caught.value) is LLMError
    assert (cost, caught.value.host) == (Cost(), server.host)
    assert server.questions == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("2", 2),
        ("0.5", 0.5),
        ("-3", 0),
        ("nan", 0),
        ("soon", None),
        ("inf", float("inf")),
        ("Thu, 01 Jan 2060 00:00:00 GMT", None),
    ],
)
@pytest.mark.sampled(6)
async def test_retry_after_stands_on_the_error(
    server: FakeOllama, connect: Connect, header: str | None, seconds: float | None
) -> None:
    """The seconds in a Retry-After header stand on the error, and anything else in it does not."""
    server.fail(Fault.status(429, retry_after=header))
    with pytest.raises(OverloadedError) as caught:
        await connect().chat(HELLO)
    assert caught.value.retry_after == seconds


async def test_milliseconds_go_before_seconds(server: FakeOllama, connect: Connect) -> None:
    """OpenAI and others give the same time more exactly in a header of their own."""
    server.fail(Fault.status(429, headers={"retry-after-ms": "250", "Retry-After": "1"}))
    with pytest.raises(OverloadedError) as caught:
        await connect().chat(HELLO)
    assert caught.value.retry_after == 0.25
