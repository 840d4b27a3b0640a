"""What decisions cost, within the limits of slots, time and budget."""

import asyncio
import json
from time import perf_counter
from typing import Any

import pytest

from prism.errors import FieldValueError
from prism.reasoner import Budget, Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.reasoners import S, answer, ask, crowd, outcomes
from tests.kit.servers import HELLO, Connect, Gate, impatient, unpaused
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


# Limits


@pytest.mark.parametrize("limit", ["max_calls", "max_tokens", "deadline"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_limits_are_above_zero(limit: str, value: float) -> None:
    """A limit that is not above 0 is a ValueError that names it."""
    with pytest.raises(FieldValueError, match=f"{limit} must be a number above 0, got {value!r}"):
        Budget(**{limit: value})


@pytest.mark.parametrize(
    ("limits", "costs", "taken", "reason"),
    [
        ({"max_calls": 3}, {}, 3, "budget spent: 3 calls"),
        ({"max_calls": 3}, {"retries": 1}, 2, "budget spent: 3 calls"),
        ({"max_calls": 1}, {"retries": 5}, 1, "budget spent: 1 calls"),
        ({"max_tokens": 100}, {"tokens": 50}, 2, "budget spent: 100 tokens"),
        ({"max_tokens": 100}, {"tokens": 99}, 2, "budget spent: 100 tokens"),
        ({"max_calls": 2, "max_tokens": 10}, {"tokens": 10}, 1, "budget spent: 10 tokens"),
        ({"max_calls": 2, "deadline": 3600.0}, {}, 2, "budget spent: 2 calls"),
    ],
)
def test_what_is_spent_is_spent(limits: Any, costs: Any, taken: int, reason: str) -> None:
    """Calls can be taken until they, their retries or tokens reach a limit, which is named then."""
    budget = Budget(**limits)
    for _ in range(taken):
        assert budget.take() is None
        budget.add(**costs)
    assert budget.spent() == budget.take() == budget.take() == reason
    assert budget.calls == taken * (1 + costs.get("retries", 0))


def test_the_deadline_counts_from_the_first_question(clock: Clock) -> None:
    """A deadline begins with the first question, and when it is over nothing can be taken."""
    budget = Budget(deadline=5)
    budget.clock = clock
    clock.time += 60
    assert budget.take() is None
    assert budget.seconds_left() == 5.0
    clock.time += 4
    assert budget.seconds_left() == 1.0
    clock.time += 2
    assert budget.seconds_left() == 0.0
    assert budget.take() == "budget spent: 5 seconds"
    assert budget.calls == 1


@pytest.mark.parametrize(
    "fault",
    [
        *(None, Fault.drop(), Fault.status(502)),
        # each is followed by a request without what was refused
        *(Fault.status(400, "no think"), Fault.status(400, "Bad Request")),
    ],
    ids=["well", "drops", "502", "part", "unexplained"],
)
@pytest.mark.parametrize(("max_calls", "attempts"), [(1, 3), (10, 3), (10, 1), (25, 4)])
@pytest.mark.sampled(6)
async def test_no_request_is_sent_beyond_the_budget(
    fault: Fault | None, max_calls: int, attempts: int, server: FakeOllama, connect: Connect
) -> None:
    """However many questions are under way and fail, no more requests are sent than allowed."""
    if fault is not None:
        server.fail_always(fault)
    client = impatient(connect(concurrency=16, attempts=attempts), pause=0.001, patience=60)
    client.backoff = lambda state: 0.0
    reasoner = Reasoner(client, mode="chat", budget=Budget(max_calls=max_calls))
    decisions = await reasoner.answer(crowd(40))
    assert server.asked == reasoner.budget.calls == max_calls
    assert sum(one.cost.attempts for one in decisions if one.cost) == max_calls


async def test_tokens_that_no_server_reports_are_estimated(
    server: FakeOllama, connect: Connect
) -> None:
    """A limit on tokens holds where the server reports none: prompts and replies are estimated."""
    message = {"role": "assistant", "content": answer("idle") + " " * 400}
    server.fail_always(Fault.body(json.dumps({"message": message, "done": True}).encode()))
    budget = Budget(max_tokens=1000)
    reasoner = Reasoner(connect(concurrency=1), mode="chat", budget=budget)
    decisions = await reasoner.answer(crowd(100, options=(S.IDLE, S.RESTING)))
    assert decisions[0].source == "model"
    written = sum(len(f"{asked.prompt}{message['content']}") for asked in server.questions)
    assert 1000 <= budget.tokens < 1300
    assert budget.tokens == pytest.approx(written / 4, rel=0.1)


async def test_what_a_server_refuses_costs_no_tokens(server: FakeOllama, connect: Connect) -> None:
    """Nobody has read a prompt that was refused."""
    server.fail_always(Fault.status(404, "no such path"))
    reasoner = Reasoner(connect(), mode="chat")
    await reasoner.answer(crowd(3))
    assert (reasoner.budget.calls, reasoner.budget.tokens) == (3, 0)
