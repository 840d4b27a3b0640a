"""A reply, read with a bound and looked at before anybody takes it for one."""

import asyncio
import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prism.errors import BadReplyError, LLMError, OverloadedError, TimedOutError
from prism.llm import Model
from prism.reasoner import Cost
from prism.testing import FakeOllama, Fault
from prism.testing._server.exchange import Exchange
from tests.kit.proxies import Proxy
from tests.kit.servers import BOTH, HELLO, Connect
from tests.kit.waiting import until

LIMIT = 1024 * 1024
MEGABYTE = 2**20
GZIP = [("Content-Encoding", "gzip")]

Pieces = Callable[[int], Iterable[bytes]]


def sends(pieces: Iterable[bytes], headers: Iterable[tuple[str, str]] = ()) -> Fault:
    """Answer 200 with these pieces of a body."""

    async def reply(exchange: Exchange) -> None:
        await exchange.begin(200, headers)
        for piece in pieces:
            await exchange.send(piece)
        await exchange.end()

    return Fault("sends", reply)


def compressed(pieces: Iterable[bytes], kind: str) -> Iterator[bytes]:
    """Compress a body as it is sent."""
    compressor = zlib.compressobj(9, wbits=31 if kind == "gzip" else 15)
    for piece in pieces:
        yield from filter(None, [compressor.compress(piece)])
    yield compressor.flush()


def brackets(megabytes: int) -> Iterator[bytes]:
    yield b"[" + b"[],"
    for _ in range(megabytes):
        yield b"[]," * 349_525


def blanks(megabytes: int) -> Iterator[bytes]:
    for _ in range(megabytes):
        yield b" " * MEGABYTE


def bomb(megabytes: int) -> Iterator[bytes]:
    return compressed((bytes(MEGABYTE) for _ in range(megabytes)), "gzip")


def one_text(megabytes: int) -> Iterator[bytes]:
    yield b'{"message": {"role": "assistant", "content": "'
    for _ in range(megabytes):
        yield b"x" * MEGABYTE
    yield b'"}}'


def nothing_at_all(megabytes: int) -> Iterator[bytes]:
    """Send empty blocks of gzip: they stand for no bytes at all."""
    yield gzip.compress(b"", mtime=0)[:10]
    for _ in range(megabytes):
        yield b"\x00\x00\x00\xff\xff" * (MEGABYTE // 5)


ENDLESS: list[tuple[str, Pieces, list[tuple[str, str]]]] = [
    ("brackets", brackets, []),
    ("blanks", blanks, []),
    ("bomb", bomb, GZIP),
    ("one text", one_text, []),
    ("nothing at all", nothing_at_all, GZIP),
]
CASES = [pytest.param(pieces, headers, id=name) for name, pieces, headers in ENDLESS]


@BOTH
@pytest.mark.parametrize(("pieces", "headers"), CASES)
@pytest.mark.sampled(12)
async def test_a_reply_is_read_to_its_bound(
    pieces: Pieces, headers: Any, server: FakeOllama, connect: Connect
) -> None:
    """A reply that is too long is a bad reply, its connection is closed, and the next is read."""
    server.fail(sends(pieces(3), headers))
    client = connect()
    with pytest.raises(BadReplyError, match=f"^{server.host} sent a reply of more than {LIMIT} by"):
        await client.chat(HELLO)
    await until(lambda: server.open_connections == 0)
    assert (await client.chat(HELLO)).text == "Hello."


SIZES = {"brackets": 60, "blanks": 200, "bomb": 1024, "one text": 200, "nothing at all": 200}
MOST_SECONDS, MOST_MEGABYTES = 1.0, 300
CHILD = """
import asyncio, resource, sys, time
from prism.errors import BadReplyError
from prism.llm import OllamaChatClient

async def main(host):
    worst = 0.0
    async def beat():
        nonlocal worst
        while True:
            # of this process, as others on the machine may hold it up
            began = time.process_time()
            await asyncio.sleep(0.01)
            worst = max(worst, time.process_time() - began)

    async with OllamaChatClient(host, "llama3.2", attempts=1, timeout=60) as client:
        await client.servers[0].kind()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        beating = asyncio.create_task(beat())
        await asyncio.sleep(0.05)
        try:
            await client.chat([{"role": "user", "content": "hello"}])
        except BadReplyError:
            pass
        await asyncio.sleep(0.05)
        beating.cancel()
    print(worst, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)

asyncio.run(main(sys.argv[1]))
"""


def many_values(megabytes: int) -> Iterator[bytes]:
    """Send what pydantic makes an error of each, in as few bytes as a reply may have."""
    yield b'{"message": {"role": "assistant", "tool_calls": [' + b"0," * 500_000 + b"0]}}"


def few_wrong_values(megabytes: int) -> Iterator[bytes]:
    """Send as many of these as are looked at."""
    yield b'{"message": {"role": "assistant", "tool_calls": [' + b"0," * 49_000 + b"0]}}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "headers", "megabytes"),
    [
        *(pytest.param(pieces, headers, SIZES[name], id=name) for name, pieces, headers in ENDLESS),
        pytest.param(many_values, [], 1, id="many values"),
        pytest.param(few_wrong_values, [], 1, id="few wrong values"),
    ],
)
def test_no_reply_stalls_the_loop(pieces: Pieces, headers: Any, megabytes: int) -> None:
    """Whatever a server sends, the loop goes on within a second, in less than 300 MB."""
    with FakeOllama() as server:
        server.fail(sends(pieces(megabytes), headers))
        ran = subprocess.run(
            [sys.executable, "-c", CHILD, server.host], capture_output=True, text=True, check=True
        )
    stall, memory = map(float, ran.stdout.split())
    assert stall < MOST_SECONDS
    assert memory < MOST_MEGABYTES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.integers(1, 4000),
    limit=st.integers(200, 3000),
    encoding=st.sampled_from(["identity", "gzip", "x-gzip", "deflate"]),
    cuts=st.lists(st.integers(1, 4000), max_size=5),
)
def test_a_reply_is_taken_if_it_is_within_its_bound(
    length: int, limit: int, encoding: str, cuts: list[int], server: FakeOllama
) -> None:
    """A reply is read whole if its decoded bytes are at most the bound, however it is sent."""
    body = json.dumps({"message": {"role": "assistant", "content": "x" * length}}).encode()
    pieces = [body[start:end] for start, end in pairwise(sorted({0, *cuts, len(body)}))]
    if encoding != "identity":
        pieces = list(compressed(pieces, encoding.removeprefix("x-")))
    server.fail(sends(pieces, [("Content-Encoding", encoding)]))

    async def ask() -> str | None:
        model = Model("tiny", [server.host], attempts=1, timeout=5, max_reply_bytes=limit)
        async with model.as_client() as pool:
            try:
                return (await pool.chat(HELLO)).text
            except BadReplyError:
                return None

    within = len(body) <= limit and sum(map(len, pieces)) <= limit
    assert asyncio.run(ask()) == ("x" * length if within else None)


@BOTH
@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        (b"\x1f\x8b\x08 and nonsense", "gzip", "sent a damaged reply"),
        (b"anything", "br", "encodes its reply as 'br'"),
        (b"anything", "gzip, gzip", "encodes its reply as 'gzip, gzip'"),
        (gzip.compress(b'{"message": {}}', mtime=0)[:-12], "gzip", "sent an invalid reply"),
    ],
)
@pytest.mark.sampled(8)
async def test_a_reply_that_cannot_be_decoded_is_a_bad_one(
    body: bytes, encoding: str, message: str, server: FakeOllama, connect: Connect
) -> None:
    """A damaged reply, or one that is encoded in a way that was not asked for, is a bad reply."""
    server.fail(sends([body], [("Content-Encoding", encoding)]))
    with pytest.raises(BadReplyError, match=message):
        await connect().chat(HELLO)


@BOTH
@pytest.mark.parametrize("status", [400, 401, 500, 503])
@pytest.mark.sampled(3)
async def test_a_long_error_keeps_its_status(
    status: int, server: FakeOllama, connect: Connect
) -> None:
    """Of an error the beginning is read: its status says what is wrong, however long it is."""

    async def reply(exchange: Exchange) -> None:
        await exchange.begin(status)
        for piece in blanks(3):
            await exchange.send(b"busy" + piece)
        await exchange.end()

    server.fail(Fault("long error", reply))
    with pytest.raises(LLMError, match=f"answered {status}: busy(: .*_API_KEY.*)?$") as caught:
        await connect().chat(HELLO)
    assert isinstance(caught.value, OverloadedError) is (status == 503)
    await until(lambda: server.open_connections == 0)


@BOTH
async def test_a_reply_of_very_many_values_is_not_looked_at(
    server: FakeOllama, connect: Connect
) -> None:
    """A reply within its bound that holds very many values is refused before it costs anything."""
    server.fail(sends(many_values(1)))
    with pytest.raises(BadReplyError, match="sent a reply of more than 50000 values"):
        await connect().chat(HELLO)


@BOTH
async def test_a_model_may_load_for_long_but_a_reply_has_to_end(
    server: FakeOllama, connect: Connect, dialect: str
) -> None:
    """What begins and goes on for ever is ended by the time of any reply, not that of a load."""
    path = "/api/generate" if dialect == "ollama" else "/v1/chat/completions"
    server.fail(Fault.trickle(), path=path)
    (host,) = connect(timeout=0.1, load_timeout=600).servers
    with pytest.raises(TimedOutError, match=r"began a reply that did not end within 0.1 s$"):
        await host.load()
    server.latency = 0.2
    await host.load()


@BOTH
@pytest.mark.sampled(4)
async def test_the_bound_can_be_set(server: FakeOllama, connect: Connect) -> None:
    """A pool that is told to read more reads more."""
    server.fail(Fault.says("x" * 2 * LIMIT))
    reply = await connect(max_reply_bytes=3 * LIMIT).chat(HELLO)
    assert len(reply.text) == 2 * LIMIT


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.sampled(3)
async def test_a_proxy_of_the_environment_is_used(
    variable: str, proxy: Proxy, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is asked through the proxy that the environment names, for replies as they are."""
    monkeypatch.setenv(variable, proxy.address)
    client = connect("http://models.invalid:80")
    assert (await client.chat(HELLO)).text == "by proxy"
    ((target, headers),) = proxy.requests
    assert target == "http://models.invalid/api/chat"
    assert headers["Accept-Encoding"] == "identity"

    proxy.body = b" " * 2 * LIMIT
    with pytest.raises(BadReplyError, match="sent a reply of more than"):
        await client.chat(HELLO)


@BOTH
async def test_a_server_that_closes_what_it_keeps_gets_new_connections(
    server: FakeOllama, connect: Connect, dialect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs one question one request more, and neither a trial nor an answer."""

    served, read = set(), Exchange.next_request

    async def read_one(exchange: Exchange) -> Any:
        request = await read(exchange)
        if exchange in served:
            return None

        served.add(exchange)
        return request

    monkeypatch.setattr(Exchange, "next_request", read_one)
    async with connect(attempts=2) as pool:
        costs = [Cost() for _ in range(4)]
        for cost in costs:
            assert (await pool.chat(HELLO, cost=cost)).text == "Hello."
    assert [cost.attempts for cost in costs] == [1, 2, 1, 1]
    assert len(server.questions) == 4

    async with Model("tiny", server.host, server=dialect) as model:
        assert all([check.ok async for check in model.diagnose() if check.ok is not None])


USED = {"role": "assistant", "content": "Hello."}
COUNTS = [
    (7, 7),
    (0, 0),
    (10_000_000, 10_000_000),
    (-1, None),
    (10_000_001, None),
    (10**30, None),
    (1.5, None),
    (1e300, None),
    ("12", None),
    (True, None),
    ([], None),
    (None, None),
]


@pytest.mark.parametrize(("told", "counted"), COUNTS)
@pytest.mark.sampled(12)
async def test_a_count_that_cannot_be_true_is_not_reported(
    told: Any, counted: int | None, server: FakeOllama, connect: Connect
) -> None:
    """A count below 0, above 10 million, or none at all is not reported; the reply stays."""
    counts = {"prompt_eval_count": told, "eval_count": 3, "total_duration": told}
    server.fail(Fault.body(json.dumps({"message": USED, **counts}).encode()))
    cost = Cost()
    reply = await connect().chat(HELLO, cost=cost)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("Hello.", counted, 3)
    assert (cost.input_tokens, cost.output_tokens) == (counted, 3)


TOLD = {
    "prompt_eval_count": 5000,
    "eval_count": 7,
    "total_duration": 9,
    "done_reason": "length",
}
UNUSABLE: list[dict[str, Any]] = [
    {"message": None},
    {"message": {"role": "assistant", "content": ""}},
    {"message": {"role": "assistant", "content": 3}},
    {"message": {"role": "assistant", "content": ["x"]}},
    {"error": "out of memory"},
    {},
    {"message": "x"},
]


@pytest.mark.parametrize("body", UNUSABLE, ids=str)
@pytest.mark.sampled(7)
async def test_tokens_of_a_reply_that_is_of_no_use_count(
    body: dict[str, Any], server: FakeOllama, connect: Connect
) -> None:
    """What a model read and wrote is part of the cost, whatever is wrong with its reply."""
    server.fail(Fault.body(json.dumps({**TOLD, **body}).encode()))
    cost = Cost()
    with pytest.raises(BadReplyError):
        await connect().chat(HELLO, cost=cost)
    assert (cost.input_tokens, cost.output_tokens) == (5000, 7)
    assert (cost.total_duration, cost.done_reason) == (9, "length")


async def test_a_reply_says_why_it_ended(server: FakeOllama, connect: Connect) -> None:
    """The reason why a reply ended is in its cost, cut where it is no word."""
    body = {"message": USED, "done_reason": "x" * 1000}
    server.fail(Fault.body(json.dumps(body).encode()))
    for reason in ("x" * 40, "stop"):
        cost = Cost()
        assert (await connect().chat(HELLO, cost=cost)).text == "Hello."
        assert cost.done_reason == reason
