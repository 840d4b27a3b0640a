"""What a server does wrong, as one tree of errors, in both dialects."""

import asyncio
import socket
from pathlib import Path

import pytest

from prism import Model, Run
from prism.errors import (
    BadReplyError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
    UselessReplyError,
)
from prism.reasoner import Cost
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.servers import BOTH, HELLO, Connect

NOT_FOUND = b'{"error": "model \'tiny\' not found"}'
FAULTS: dict[str, tuple[Fault, type[LLMError], str]] = {
    "dropped": (Fault.drop(), UnreachableError, "the connection to .* broke"),
    "cut short": (Fault.drop_midway(), UnreachableError, "the connection to .* broke"),
    "silent": (Fault.hang(), TimedOutError, "no complete reply from tiny at .* within 5 s"),
    "half a body": (Fault.stall(), TimedOutError, "within 5 s"),
    "slow body": (Fault.trickle(), TimedOutError, "within 5 s"),
    "429": (Fault.status(429, "busy"), OverloadedError, "answered 429: busy$"),
    "502": (Fault.status(502, "busy"), OverloadedError, "answered 502: busy$"),
    "500": (Fault.status(500, body=b""), OverloadedError, "answered 500: "),
    "no model": (Fault.status(404, body=NOT_FOUND), ModelMissingError, "not found: .*tiny"),
    "no path": (Fault.status(404, body=b"404 page not found"), BadReplyError, "answered 404: "),
    "400": (Fault.status(400, "bad\nformat"), LLMError, "answered 400: bad format"),
    "null error": (Fault.status(500, body=b'{"error": null}'), OverloadedError, "answered 500: "),
    "error list": (Fault.status(503, body=b'["busy"]'), OverloadedError, "answered 503: "),
    "a page": (Fault.status(503, body=b"<html>"), OverloadedError, "answered 503: a web page$"),
    "a page with 200": (Fault.body(b"<html>Sign in"), BadReplyError, "sent an invalid reply"),
    "not JSON": (Fault.body(b"yes"), BadReplyError, "sent an invalid reply"),
    "no body": (Fault.body(b""), BadReplyError, "sent an invalid reply"),
    "error with 200": (Fault.body(b'{"error": "oops"}'), OverloadedError, "answered 500: oops$"),
    "an array": (Fault.body(b"[1]"), BadReplyError, "sent "),
    "compressed": (
        Fault.body(b"x", headers={"Content-Encoding": "gzip"}),
        BadReplyError,
        "sent a compressed reply",
    ),
    "empty": (Fault.says(""), UselessReplyError, "tiny at .* gave an empty reply"),
}
"""By name: the fault, the class of the error, and its message."""


@BOTH
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.sampled(6)
async def test_every_fault_has_its_class(
    name: str, server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """Every fault of a server is one error of prism's tree, with its server, and is one request."""
    fault, kind, message = FAULTS[name]
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


OF_LM_STUDIO = Fault.body(b'{"error": "Unexpected endpoint or method."}')


@pytest.mark.parametrize("fault", [None, OF_LM_STUDIO], ids=["404", "200"])
@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
async def test_a_forgotten_dialect_is_an_error_that_says_so(
    fault: Fault | None, server: FakeOllama, tmp_path: Path
) -> None:
    """A server of OpenAI's dialect that is asked in Ollama's: a run, a question, the doctor."""
    if fault is not None:
        for path in ("/api/chat", "/api/generate", "/api/tags"):
            server.fail_always(fault, path=path)
    there = f"openai:tiny@{server.host} answers there"
    async with Model("tiny", server.host) as model:
        with pytest.raises(ModelMissingError, match=there):
            await model.as_client().chat(HELLO)
        (check,) = [each async for each in model.diagnose()]
    assert (check.ok, check.found.endswith(there)) == (False, True)
    run = Run("vaccination", 10, model=f"tiny@{server.host}")
    with pytest.raises(ModelMissingError, match=there):
        await asyncio.to_thread(run.keep, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert {asked.path for asked in server.questions} <= {"/api/chat", "/api/generate"}


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@BOTH
@pytest.mark.parametrize(
    "host",
    ["http://127.0.0.1:{closed}", "http://nowhere.invalid", "https://127.0.0.1:{server}"],
    ids=["refused", "no such name", "no TLS"],
)
@pytest.mark.sampled(2)
async def test_a_server_that_is_not_there_is_unreachable(
    server: FakeOllama, connect: Connect, host: str
) -> None:
    """A failure to connect is a ConnectionError; it says which host, why, and what to do."""
    host = host.format(closed=free_port(), server=server.host.rpartition(":")[2])
    with pytest.raises(
        ConnectionError, match=rf"cannot reach tiny at {host} \(.+\): check"
    ) as caught:
        await connect(host).chat(HELLO)
    assert type(caught.value) is UnreachableError
