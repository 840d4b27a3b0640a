"""What decisions cost, within the limits of slots, time and budget."""

import asyncio
from time import perf_counter
from typing import Any

import pytest

from prism.reasoner import Reasoner
from prism.statechart import Budget
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.reasoners import S, ask, crowd, outcomes
from tests.kit.servers import HELLO, Connect, Gate, unpaused
from tests.kit.waiting import MOST_SECONDS, until

BUSY = Fault.status(503, headers={"Retry-After": "0"})


async def test_equal_questions_under_way_are_one_request(
    server: FakeOllama, connect: Connect, heard: Any
) -> None:
    """Equal questions of several agents are one request, whose cost is logged once."""
    server.latency = 0.02
    reasoner = Reasoner(connect(), mode="chat")
    decisions = await reasoner.decide_many([ask() for _ in range(10)])
    assert outcomes(decisions) == [(S.COMPOSING, "model")] * 10
    assert len(server.questions) == 1
    assert sorted(event["attempts"] for event in heard) == [0] * 9 + [1]


@pytest.mark.parametrize("leaver", [0, 1])
async def test_cancelling_one_of_two_equal_questions_leaves_the_other(
    leaver: int, server: FakeOllama, connect: Connect, heard: Any
) -> None:
    """Of two equal questions one may be cancelled: the other is answered, and bears the cost."""
    gate = server.latency = Gate()
    reasoner = Reasoner(connect(), mode="chat")
    tasks = [asyncio.create_task(reasoner.decide_many([ask()])) for _ in range(2)]
    await until(lambda: len(server.questions) == 1)
    tasks[leaver].cancel()
    await asyncio.wait({tasks[leaver]})
    gate.is_open = True
    assert outcomes(await tasks[1 - leaver]) == [(S.COMPOSING, "model")]
    assert (tasks[leaver].cancelled(), len(server.questions)) == (True, 1)
    (event,) = heard
    assert event["attempts"] == reasoner.budget.calls == 1
    assert event["input_tokens"] + event["output_tokens"] == reasoner.budget.tokens > 0


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
@pytest.mark.parametrize(("mode", "model"), [("chat", "tiny"), ("auto", "llama3.2")])
@pytest.mark.sampled(6)
async def test_cancelling_all_equal_questions_cancels_the_request(
    kind: str, mode: Any, model: str, server: FakeOllama, connect: Connect
) -> None:
    """When all who share a request are cancelled it is, and no connection stays open."""
    server.fail_always(Fault.hang())
    client = connect(kind=kind, model=model)
    client.temperature = 0
    reasoner = Reasoner(client, model=model if kind == "ollama" else None, mode=mode)
    tasks = [asyncio.create_task(reasoner.decide_many([ask()])) for _ in range(3)]
    await until(lambda: len(server.questions) == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: server.open_connections == 0)
    server.recover()
    assert outcomes(await reasoner.decide_many([ask()]))[0][1] == "model"


async def test_the_deadline_ends_calls_under_way(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """Calls under way end at the deadline and nothing is asked after it, for one plain reason."""
    server.fail_always(Fault.hang())
    reasoner = Reasoner(connect(concurrency=2), mode="chat", budget=Budget(deadline=4))
    deciding = asyncio.create_task(reasoner.decide_many(crowd(5)))
    await loop_clock.passes(4, when=lambda: server.asked == 2)
    # long before the time-outs of the servers
    decisions = await asyncio.wait_for(deciding, MOST_SECONDS / 3)
    assert {decision.reason for decision in decisions} == {
        "BudgetSpentError: budget spent: 4 seconds"
    }
    attempts = sorted(decision.cost.attempts for decision in decisions if decision.cost)
    assert attempts == [0, 0, 0, 1, 1]
    await until(lambda: server.open_connections == 0)
    assert len(server.questions) <= 2


async def test_a_time_out_logs_the_requests_made(
    server: FakeOllama, connect: Connect, heard: Any, loop_clock: Clock
) -> None:
    """A decision that timed out logs the requests that were made, and the host."""
    server.fail(*[BUSY] * 2, Fault.hang())
    reasoner = Reasoner(unpaused(connect(attempts=4)), mode="chat", timeout=4)
    deciding = asyncio.create_task(reasoner.decide_many([ask()]))
    await loop_clock.passes(4, when=lambda: server.asked == 3)
    assert outcomes(await deciding) == [(S.COMPOSING, "fallback")]
    assert heard[0]["reason"].startswith("TimedOutError: no answer within 4 s: tiny at ")
    assert heard[0]["attempts"] == len(server.questions) == reasoner.budget.calls == 3
    assert heard[0]["host"] == server.host


async def test_the_time_for_an_answer_begins_with_the_slot(
    server: FakeOllama, connect: Connect, heard: Any, loop_clock: Clock
) -> None:
    """Questions that wait for a slot longer than the time-out are answered after that."""
    server.fail(Fault.hang())
    client = connect(concurrency=1, timeout=60)
    stuck = asyncio.create_task(client.chat(HELLO))
    await until(lambda: len(server.questions) == 1)
    reasoner = Reasoner(client, mode="chat", timeout=4)
    deciding = asyncio.create_task(reasoner.decide_many(crowd(3)))
    await until(lambda: client.waiting == 3)
    began = perf_counter()
    await loop_clock.passes(5)
    waited = perf_counter() - began
    assert (client.waiting, reasoner.budget.calls, heard) == (3, 0, [])
    stuck.cancel()
    assert outcomes(await deciding) == [(S.COMPOSING, "model")] * 3
    assert [event["attempts"] for event in heard] == [1, 1, 1]
    assert all(event["latency"] > waited for event in heard)
