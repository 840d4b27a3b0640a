"""Retries for clients that make none themselves."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import ollama
import pytest

from prism.llm import Model
from prism.reasoner import Decision, Reasoner
from prism.reasoner.servers import FAILURES_TO_REST
from prism.testing import FakeOllama, Fault
from tests.kit.clients import bare as bare_client
from tests.kit.clocks import Clock
from tests.kit.reasoners import ask, crowd
from tests.kit.waiting import MOST_SECONDS

PASSING = [Fault.drop(), Fault.drop_midway(), *map(Fault.status, (429, 502, 503, 504))]
LASTING = [*map(Fault.status, (400, 401, 403, 404, 413)), Fault.body(b"<html>")]
# each pause between two requests is tested where it is the subject
pytestmark = pytest.mark.usefixtures("no_pauses")


class ChatClientError(Exception):
    """Raised by a framework in place of what its client raised."""


class Framework:
    """A client with ``get_response``, as agent-framework's, over Ollama's own."""

    def __init__(self, inner: ollama.AsyncClient) -> None:
        self.inner = inner

    async def get_response(self, messages: Any, *, options: Any = None) -> Any:
        try:
            reply = await self.inner.chat(
                "llama3.2",
                [{"role": "user", "content": messages}],
                format=options["response_format"],
            )
        except Exception as error:
            raise ChatClientError(f"Ollama chat request failed: {error}") from error
        return reply.message.content


class Noting(ollama.AsyncClient):
    """Ollama's client, counting how many chats have ended."""

    ended = 0

    async def chat(self, *arguments: Any, **named: Any) -> Any:
        try:
            return await super().chat(*arguments, **named)
        finally:
            self.ended += 1


async def decide(client: Any, **settings: Any) -> Decision:
    reasoner = Reasoner(client, model="llama3.2", **{"mode": "chat", **settings})
    return (await reasoner.decide_many([ask()]))[0]


def result(decision: Decision) -> tuple[str, int]:
    assert decision.cost is not None
    return decision.source, decision.cost.attempts


@pytest.fixture
async def bare(server: FakeOllama) -> AsyncIterator[ollama.AsyncClient]:
    """Return Ollama's own client, with a time-out of its own."""
    client = bare_client(server.host, Noting, timeout=httpx.Timeout(60, read=30))
    yield client
    await client.close()


@pytest.fixture(params=["ollama", "framework"])
def client(request: pytest.FixtureRequest, bare: ollama.AsyncClient) -> Any:
    """Return a client of each kind, by duck type."""
    return Framework(bare) if request.param == "framework" else bare


@pytest.mark.parametrize("fault", [*PASSING, *LASTING], ids=lambda fault: fault.name)
@pytest.mark.sampled(4)
async def test_what_passes_is_retried_and_what_lasts_is_not(
    fault: Fault, client: Any, server: FakeOllama
) -> None:
    """A busy server and a broken connection cost attempts, a refusal or nonsense the answer."""
    server.fail(fault, fault)
    expected = ("model", 3) if fault in PASSING else ("fallback", 1)
    assert result(await decide(client)) == expected
    server.recover()
    server.fail(fault, fault)
    assert result(await decide(client, attempts=2)) == ("fallback", 2 if fault in PASSING else 1)


@pytest.mark.parametrize(("header", "seconds"), [("20", 20), ("3600", 60)])
async def test_retry_after_is_respected(
    header: str, seconds: int, server: FakeOllama, bare: Any, loop_clock: Clock
) -> None:
    """A server is left alone for as long as it asks for, up to a minute, with all questions."""
    server.fail(Fault.status(503, headers={"Retry-After": header}))
    reasoner = Reasoner(bare, model="llama3.2", mode="chat")
    deciding = [asyncio.create_task(reasoner.decide_many([ask()]))]
    await loop_clock.passes(seconds - 0.1, when=lambda: bare.ended)
    deciding.append(asyncio.create_task(reasoner.decide_many([ask("bo")])))
    # long enough for a request that does not wait
    await asyncio.to_thread(time.sleep, 0.1)
    assert (server.asked, *(each.done() for each in deciding)) == (1, False, False)
    # and a moment, so that several runs do not come back together
    loop_clock.time += 0.5
    assert [result(decision) for (decision,) in await asyncio.gather(*deciding)] == [
        ("model", 2),
        ("model", 1),
    ]


async def test_a_client_that_keeps_failing_is_left_alone(
    server: FakeOllama, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few failures in a row questions fail at once, until a probe shows that it works."""
    monkeypatch.setattr("prism.reasoner.servers.random_backoff", lambda _failures: 60.0)
    server.fail_always(Fault.drop())
    reasoner = Reasoner(client, model="llama3.2", mode="chat", attempts=1)
    decisions = [(await reasoner.decide_many([ask()]))[0] for _ in range(20)]
    assert server.asked == FAILURES_TO_REST
    assert str(decisions[-1].reason).startswith("CircuitOpenError")


@pytest.mark.parametrize(
    ("said", "told", "waits"), [(None, {}, False), (60, {}, True), (60, {"patience": 0}, False)]
)
@pytest.mark.sampled(3)
async def test_patience_is_that_of_the_model_or_the_reasoner(
    said: float | None, told: Any, waits: bool, server: FakeOllama, bare: Any
) -> None:
    """What a `Model` says counts where nothing is said to a `Reasoner`; usually nobody waits."""
    server.fail_always(Fault.drop())
    model = Model("llama3.2", client=bare, patience=said)
    reasoner = Reasoner(model, mode="chat", attempts=1, **told)
    asking = asyncio.create_task(reasoner.answer(crowd(FAILURES_TO_REST + 1)))
    _, waiting = await asyncio.wait([asking], timeout=0.2 if waits else MOST_SECONDS)
    assert bool(waiting) is waits
    server.recover()
    # those who wait lose nothing
    assert {each.source for each in await asking} == {"model" if waits else "fallback"}
