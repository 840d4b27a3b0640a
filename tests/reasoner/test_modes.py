"""Which way a model is asked: chat or decision questions."""

import asyncio
from typing import Any

import pytest

from prism.llm import Model as LanguageModel
from prism.reasoner import Reasoner
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.clients import Counting, bare
from tests.kit.clocks import Clock
from tests.kit.pools import impatient
from tests.kit.reasoners import OPTIONS, S, ask, asked, crowd, mixed, outcomes
from tests.kit.servers import CHAT, DECISIONS, Connect, watched


@pytest.mark.parametrize(
    ("mode", "model", "paths"),
    [
        ("auto", "tiny", [CHAT]),
        ("auto", "nimble", [DECISIONS]),
        ("chat", "nimble", [CHAT]),
        ("decision", "nimble", [DECISIONS]),
    ],
)
@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
@pytest.mark.sampled(4)
async def test_mode_auto_takes_decisions_where_they_are_offered(
    kind: str, mode: Any, model: str, paths: list[str], server: FakeOllama, connect: Connect
) -> None:
    """Mode auto asks a decision model for decisions, others to chat; the other modes are fixed."""
    server.choose = lambda question: "scrolling"
    reasoner = Reasoner(
        connect(kind=kind, model=model),
        model=model if kind == "ollama" else None,
        mode=mode,
        pick="argmax",
    )
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.SCROLLING, "model")]
    assert asked(server) == paths


@pytest.mark.slow
async def test_capabilities_are_looked_up_once(server: FakeOllama) -> None:
    """A hundred questions, together or each on its own, and later ones look once at the model."""
    client = bare(server.host, Counting)
    reasoner = Reasoner(client, model="nimble")
    alone = (
        reasoner.decide(one.agent, one.state, one.trigger, list(OPTIONS)) for one in crowd(100)
    )
    await asyncio.gather(*alone, reasoner.decide_many(crowd(100)))
    await reasoner.decide_many(crowd(5))
    await client.close()
    assert client.shown == 1
    assert set(asked(server)) == {DECISIONS}


async def test_a_failed_capability_look_is_repeated_later(
    server: FakeOllama, caplog: pytest.LogCaptureFixture
) -> None:
    """While a look fails the server is asked to chat; it is repeated, and logged once."""
    client = bare(server.host, Counting)
    reasoner = Reasoner(client, model="nimble")
    server.fail(Fault.status(500), Fault.status(500), path="/api/show")
    async with asyncio.timeout(10):
        while DECISIONS not in asked(server):
            await reasoner.decide_many([ask()])
    await client.close()
    assert client.shown == 3
    assert asked(server)[0] == CHAT
    assert len(caplog.records) == 1


async def test_a_failed_capability_look_backs_off(
    server: FakeOllama, caplog: pytest.LogCaptureFixture, loop_clock: Clock
) -> None:
    """A look that took long and failed is not repeated with every question, and is logged once."""
    looks: list[str] = []
    server.fail_always(watched(Fault.hang(), looks), path="/api/show")
    client = bare(server.host, Counting)
    reasoner = Reasoner(client, model="nimble", timeout=4)
    for number in range(1, 3):
        deciding = asyncio.create_task(reasoner.decide_many(crowd(3)))
        await loop_clock.passes(4, when=lambda shown=number: len(looks) == shown)
        await deciding
        for _ in range(4):
            loop_clock.time += 9.9
            await reasoner.decide_many(crowd(3))
        assert client.shown == number
        loop_clock.time += 0.5
    await client.close()
    assert asked(server) == [CHAT] * 30
    assert [(record.levelname, record.__dict__["prism"]) for record in caplog.records] == [
        (
            "WARNING",
            {"event": "reasoner.mode_unknown", "error": "TimedOutError: no answer within 4 s"},
        )
    ]


async def test_a_refused_decision_request_is_remembered(
    server: FakeOllama, connect: Connect
) -> None:
    """Once a decision question was refused everything is a chat, that question first."""
    server.fail_always(Fault.status(404, body=b"no such page"), path="/api/show")
    reasoner = Reasoner(connect(kind="ollama", model="tiny"), model="tiny")
    for _ in range(3):
        assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "model")]
    assert asked(server) == [DECISIONS, CHAT, CHAT, CHAT]


async def test_while_the_deciding_server_is_down_others_chat(
    server: FakeOllama, heard: Any
) -> None:
    """While the one server that decides is down the others chat; afterwards it decides again."""
    with FakeOllama() as decides:
        pool = impatient(mixed(server, decides), pause=0.05)
        reasoner = Reasoner(pool)
        assert {d.source for d in await reasoner.decide_many(crowd(8))} == {"model"}
        assert CHAT not in asked(server)
        decides.stop()
        assert {d.source for d in await reasoner.decide_many(crowd(8))} == {"model"}
        assert asked(server).count(CHAT) == 8
        assert sum(event["attempts"] for event in heard) == reasoner.budget.calls
        decides.start()
        async with asyncio.timeout(10):
            while len(decides.questions) < 9:
                await reasoner.decide_many([ask()])
        await pool.close()
    assert set(asked(decides)) == {DECISIONS}


async def test_a_hanging_capability_look_means_chat(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """A server that never says what it offers delays a decision by no more than the time-out."""
    looks: list[str] = []
    server.fail_always(watched(Fault.hang(), looks), path="/api/show")
    reasoner = Reasoner(connect(kind="ollama"), model="nimble", timeout=4)
    deciding = asyncio.create_task(reasoner.decide_many([ask()]))
    await loop_clock.passes(4, when=lambda: looks)
    assert outcomes(await deciding) == [(S.COMPOSING, "model")]
    assert asked(server) == [CHAT]


@pytest.mark.parametrize("kind", ["prism", "ollama"])
async def test_a_server_without_decisions_is_asked_to_chat(
    kind: str, server: FakeOllama, connect: Connect
) -> None:
    """A server that turns out to have no decisions is asked to chat, at once and from then on."""
    server.decides = False
    reasoner = Reasoner(
        connect(kind=kind, model="nimble"), model="nimble" if kind == "ollama" else None
    )
    assert outcomes(await reasoner.decide_many(crowd(4))) == [(S.COMPOSING, "model")] * 4
    assert server.questions
    server.questions.clear()
    await reasoner.decide_many(crowd(4))
    assert asked(server) == [CHAT] * 4


@pytest.mark.parametrize(("kind", "model"), [("prism", "tiny"), ("ollama", "tiny")])
async def test_mode_decision_never_chats(
    kind: str, model: str, server: FakeOllama, connect: Connect
) -> None:
    """In mode decision a model without log-probabilities is a fallback."""
    server.logprobs = False
    reasoner = Reasoner(
        connect(kind=kind, model=model), model=model if kind == "ollama" else None, mode="decision"
    )
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "fallback")]
    assert all("logprobs" in question.body for question in server.questions)


async def test_a_decision_question_that_leads_to_a_chat_is_paid_for() -> None:
    """Tokens and time of an answer without log-probabilities are in the cost of the decision."""
    with FakeOpenAI(models=["tiny"], logprobs=False, latency=0.02) as server:
        async with LanguageModel("tiny", server.host, server="openai").as_client() as pool:
            reasoner = Reasoner(pool)
            (decision,) = await reasoner.answer([ask()])
    cost = decision.cost
    assert cost is not None
    assert (decision.source, cost.attempts, server.asked) == ("model", 2, 2)
    assert cost.tokens == reasoner.budget.tokens
    assert cost.queue_seconds is not None
    assert cost.request_seconds is not None
    assert cost.queue_seconds >= 0.019
    assert cost.latency == pytest.approx(cost.queue_seconds + cost.request_seconds)
