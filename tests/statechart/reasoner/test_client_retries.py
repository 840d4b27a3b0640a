"""Retries for clients that make none themselves."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import ollama
import pytest

from prism.errors import CircuitOpenError, FieldValueError, UnreachableError
from prism.statechart.reasoner import Decision, Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import ask
from tests.kit.servers import CHAT, DECISIONS, Connect

PASSING = [
    Fault.drop(),
    Fault.drop_midway(),
    *(Fault.status(code) for code in (429, 502, 503, 504)),
]
INTERNAL = [Fault.status(500), Fault.body(b'{"error": "the runner died"}')]
LASTING = [
    *(Fault.status(code) for code in (400, 401, 403, 404, 413)),
    Fault.body(b"<html>"),
    Fault.says("perhaps"),
]


class ChatClientError(Exception):
    """Raised by a framework in place of what its client raised."""


class Framework:
    """A client with ``get_response``, as agent-framework's, over Ollama's own."""

    def __init__(self, inner: ollama.AsyncClient) -> None:
        self.inner = inner

    async def get_response(self, messages: Any, *, options: Any = None) -> Any:
        try:
            reply = await self.inner.chat(
                "nimble",
                [{"role": "user", "content": messages}],
                format=options["response_format"],
            )
        except Exception as error:
            raise ChatClientError(f"Ollama chat request failed: {error}") from error
        return reply.message.content


async def decide(client: Any, **settings: Any) -> Decision:
    reasoner = Reasoner(client, model="nimble", **{"mode": "chat", **settings})
    return (await reasoner.decide_many([ask()]))[0]


def result(decision: Decision) -> tuple[str, int]:
    assert decision.cost is not None
    return decision.source, decision.cost.attempts


@pytest.fixture
async def bare(server: FakeOllama) -> AsyncIterator[ollama.AsyncClient]:
    """Return Ollama's own client, with a short time-out."""
    client = ollama.AsyncClient(host=server.host, timeout=httpx.Timeout(10, read=0.3))
    yield client
    await client.close()


@pytest.fixture(params=["ollama", "framework"])
def client(request: pytest.FixtureRequest, bare: ollama.AsyncClient) -> Any:
    """Return a client of each kind, by duck type."""
    return Framework(bare) if request.param == "framework" else bare


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.name)
@pytest.mark.sampled(12)
async def test_what_passes_is_retried(fault: Fault, client: Any, server: FakeOllama) -> None:
    """A busy server and a broken connection cost attempts, three at most, but not the answer."""
    server.fail(fault, fault)
    assert result(await decide(client)) == ("model", 3)
    server.fail(fault, fault)
    assert result(await decide(client, attempts=2)) == ("fallback", 2)


@pytest.mark.parametrize("fault", INTERNAL, ids=["500", "error in a 200"])
@pytest.mark.sampled(4)
async def test_an_internal_error_is_retried_once(
    fault: Fault, client: Any, server: FakeOllama
) -> None:
    """An error inside the server is worth one more request, unless there are to be none."""
    server.fail(fault)
    assert result(await decide(client)) == ("model", 2)
    server.fail(fault, fault)
    assert result(await decide(client)) == ("fallback", 2)
    server.fail(fault)
    assert result(await decide(client, attempts=1)) == ("fallback", 1)


@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: fault.name)
@pytest.mark.sampled(3)
async def test_what_lasts_is_not_retried(fault: Fault, client: Any, server: FakeOllama) -> None:
    """A refusal, and a reply that is none, are not asked about again."""
    server.fail(fault)
    assert result(await decide(client)) == ("fallback", 1)
    assert len(server.questions) == 1


async def test_decision_questions_are_retried(server: FakeOllama, bare: Any) -> None:
    """Decision questions of a bare client are retried like chats."""
    server.fail(Fault.status(503), Fault.drop(), path=DECISIONS)
    assert result(await decide(bare, mode="decision")) == ("model", 3)


async def test_a_time_out_of_the_client_is_retried(server: FakeOllama, client: Any) -> None:
    """A client's own time-out passes, as far as anybody knows."""
    server.fail(Fault.hang(), path=CHAT)
    assert result(await decide(client)) == ("model", 2)


@pytest.mark.parametrize("error", [UnreachableError("gone"), CircuitOpenError("open")])
async def test_what_prisms_clients_raise_has_been_retried(error: Exception) -> None:
    """A client of one's own over prism's is not asked again for what that has given up."""

    class Mine:
        async def run(self, prompt: str) -> str:
            raise error

    assert result(await decide(Mine())) == ("fallback", 1)


async def test_retry_after_is_respected(server: FakeOllama, bare: Any) -> None:
    """The pause of a bare client is at least as long as its server asks for."""
    server.fail(Fault.status(503, retry_after="0.5"))
    decision = await decide(bare)
    assert result(decision) == ("model", 2)
    assert decision.cost is not None
    assert decision.cost.latency >= 0.5


async def test_retries_stay_within_the_time_of_an_answer(server: FakeOllama, bare: Any) -> None:
    """The time-out of the reasoner ends a pause, too."""
    server.fail_always(Fault.status(503, retry_after="20"))
    decision = await decide(bare, timeout=0.3)
    assert result(decision) == ("fallback", 1)
    assert decision.reason == "TimedOutError: no answer within 0.3 s"


@pytest.mark.parametrize("kind", ["prism", "pool"])
def test_attempts_are_refused_where_the_client_has_its_own(kind: str, connect: Connect) -> None:
    """A pool has its own number of attempts, and another one would be ignored."""
    with pytest.raises(FieldValueError, match="attempts must be left out, got 2"):
        Reasoner(connect(kind=kind), attempts=2)


async def test_attempts_are_above_zero(bare: Any) -> None:
    """No attempt at all is refused."""
    with pytest.raises(FieldValueError, match="attempts must be above 0, got 0"):
        Reasoner(bare, model="tiny", attempts=0)
