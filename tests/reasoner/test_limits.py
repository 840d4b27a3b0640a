"""What a budget never lets through, and where the time of a decision went."""

import json

import pytest

from prism.reasoner import Budget, Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import S, answer, crowd
from tests.kit.servers import Connect, impatient


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
    """A limit on tokens holds where the server reports none: those that were read are estimated."""
    message = {"role": "assistant", "content": answer("idle")}
    server.fail_always(Fault.body(json.dumps({"message": message, "done": True}).encode()))
    budget = Budget(max_tokens=1000)
    reasoner = Reasoner(connect(concurrency=1), mode="chat", budget=budget)
    decisions = await reasoner.answer(crowd(100, options=(S.IDLE, S.RESTING)))
    assert decisions[0].source == "model"
    prompts = sum(len(asked.prompt) for asked in server.questions)
    assert 1000 <= budget.tokens < 1300
    assert budget.tokens == pytest.approx(prompts / 4, rel=0.1)


async def test_what_a_server_refuses_costs_no_tokens(server: FakeOllama, connect: Connect) -> None:
    """Nobody has read a prompt that was refused."""
    server.fail_always(Fault.status(404, "no such path"))
    reasoner = Reasoner(connect(), mode="chat")
    await reasoner.answer(crowd(3))
    assert (reasoner.budget.calls, reasoner.budget.tokens) == (3, 0)
