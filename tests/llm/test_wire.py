"""A reply, read with a bound and looked at before anybody takes it for one."""

import json
from collections.abc import Callable, Iterable, Iterator

import pytest

from prism.errors import BadReplyError, LLMError, OverloadedError
from prism.reasoner import Cost
from prism.testing import FakeOllama, Fault
from prism.testing._faults import Exchange
from tests.kit.servers import BOTH, HELLO, Connect, Serve
from tests.kit.waiting import until

LIMIT = 1024 * 1024
MEGABYTE = 2**20

Pieces = Callable[[int], Iterable[bytes]]


def sends(pieces: Iterable[bytes], headers: Iterable[tuple[str, str]] = ()) -> Fault:
    """Answer 200 with these pieces of a body."""

    def reply(exchange: Exchange) -> None:
        exchange.begin(200, headers)
        for piece in pieces:
            exchange.send(piece)
        exchange.end()

    return Fault("sends", reply)


def brackets(megabytes: int) -> Iterator[bytes]:
    yield b"[" + b"[],"
    for _ in range(megabytes):
        yield b"[]," * 349_525


def blanks(megabytes: int) -> Iterator[bytes]:
    for _ in range(megabytes):
        yield b" " * MEGABYTE


def one_text(megabytes: int) -> Iterator[bytes]:
    yield b'{"message": {"role": "assistant", "content": "'
    for _ in range(megabytes):
        yield b"x" * MEGABYTE
    yield b'"}}'


@BOTH
@pytest.mark.parametrize("pieces", [brackets, blanks, one_text])
@pytest.mark.sampled(6)
async def test_a_reply_is_read_to_its_bound(
    pieces: Pieces, server: FakeOllama, connect: Connect
) -> None:
    """A reply that is too long is a bad reply, its connection is closed, and the next is read."""
    server.fail(sends(pieces(3)))
    client = connect()
    with pytest.raises(BadReplyError, match=f"^{server.host} sent a reply of more than {LIMIT} by"):
        await client.chat(HELLO)
    await until(lambda: server.open_connections == 0)
    assert (await client.chat(HELLO)).text == "Hello."


@BOTH
@pytest.mark.parametrize("status", [400, 401, 500, 503])
@pytest.mark.sampled(3)
async def test_a_long_error_keeps_its_status(
    status: int, server: FakeOllama, connect: Connect
) -> None:
    """Of an error the beginning is read: its status says what is wrong, however long it is."""

    def reply(exchange: Exchange) -> None:
        exchange.begin(status)
        for piece in blanks(3):
            exchange.send(b"busy" + piece)
        exchange.end()

    server.fail(Fault("long error", reply))
    with pytest.raises(LLMError, match=f"answered {status}: busy(: .*_API_KEY.*)?$") as caught:
        await connect().chat(HELLO)
    assert isinstance(caught.value, OverloadedError) is (status >= 500)
    await until(lambda: server.open_connections == 0)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.sampled(3)
async def test_a_proxy_of_the_environment_is_used(
    variable: str, serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is asked through the proxy that the environment names, for replies as they are."""
    proxy, encodings = serve(), list[str | None]()

    def reply(exchange: Exchange) -> None:
        encodings.append(exchange.headers["Accept-Encoding"])
        exchange.respond(200, {"message": {"role": "assistant", "content": "by proxy"}})

    too_long = Fault.body(b" " * 2 * LIMIT)
    proxy.fail(Fault("proxy", reply), too_long, path="http://models.invalid/api/chat")
    monkeypatch.setenv(variable, proxy.host)
    client = connect("http://models.invalid:80")
    assert (await client.chat(HELLO)).text == "by proxy"
    assert encodings == ["identity"]
    with pytest.raises(BadReplyError, match="sent a reply of more than"):
        await client.chat(HELLO)


async def test_a_server_on_this_machine_is_asked_past_the_proxy(
    serve: Serve, server: FakeOllama, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy is for the world outside, also where no_proxy does not say so."""
    monkeypatch.setenv("http_proxy", serve(models=["other"]).host)
    monkeypatch.setenv("no_proxy", "")
    assert (await connect().chat(HELLO)).text == "Hello."


USED = {"role": "assistant", "content": "Hello."}


async def test_a_reply_says_why_it_ended(server: FakeOllama, connect: Connect) -> None:
    """The reason why a reply ended is in its cost, cut where it is no word."""
    body = {"message": USED, "done_reason": "x" * 1000}
    server.fail(Fault.body(json.dumps(body).encode()))
    for reason in ("x" * 40, "stop"):
        cost = Cost()
        assert (await connect().chat(HELLO, cost=cost)).text == "Hello."
        assert cost.done_reason == reason
