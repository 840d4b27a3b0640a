"""Decision questions on a server that gives log-probabilities, one chat for each."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from prism.llm import Model
from prism.reasoner import Reasoner
from prism.testing import FakeOpenAI, Fault
from tests.kit.reasoners import ask, crowd
from tests.kit.servers import Gate
from tests.kit.waiting import until


def serving(option_mass: float) -> FakeOpenAI:
    """Return a server whose options have so much probability."""
    server = FakeOpenAI(models=["tiny"])
    weights = {"A": 0.6 * option_mass, "B": 0.4 * option_mass, "Sure": 1 - option_mass}
    server.fail_always(Fault.weighs(weights))
    return server


async def test_options_with_hardly_any_mass_have_no_probabilities(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A choice that a grammar forces counts, and a warning says once what its odds are."""
    with serving(0.0013) as server:
        async with Model("tiny", [server.host], server="openai").as_client() as pool:
            reasoner = Reasoner(pool, mode="decision", seed=1)
            decisions = await reasoner.decide_many([ask("ada"), ask("bo")])
    assert [decision.source for decision in decisions] == ["model", "model"]
    assert [decision.probabilities for decision in decisions] == [None, None]
    assert all(0 < (decision.option_mass or 0) < 0.0014 for decision in decisions)
    (told,) = [
        record.getMessage()
        for record in caplog.records
        if "a probability of" in record.getMessage()
    ]
    assert "mode chat does not need them" in told


@pytest.mark.parametrize("text", ["composing", '{"letter": "composing"}'])
async def test_an_option_may_be_named_in_place_of_its_letter(text: str) -> None:
    """A server that ignores the schema lets models name the option, which says what they chose."""
    with serving(1.0) as server:
        server.fail_always(Fault.says(text))
        async with Model("tiny", [server.host], server="openai").as_client() as pool:
            (decision,) = await Reasoner(pool, mode="decision").decide_many([ask("ada")])
    assert (decision.source, str(decision.chosen)) == ("model", "composing")
    assert (decision.probabilities, decision.option_mass) == (None, None)


async def test_a_choice_counts_where_log_probabilities_stop_coming() -> None:
    """A proxy may pass questions to servers of which some give none: their choices count, too."""
    with serving(1.0) as server:
        async with Model("tiny", [server.host], server="openai").as_client() as pool:
            reasoner = Reasoner(pool, mode="decision")
            (first,) = await reasoner.decide_many([ask("ada")])
            server.logprobs = False
            (second,) = await reasoner.decide_many([ask("bo")])
    assert [first.source, second.source] == ["model", "model"]
    assert first.probabilities is not None
    assert (second.probabilities, second.option_mass) == (None, None)


async def test_the_mass_of_the_options_is_in_the_log(heard: list[Any]) -> None:
    """Where options have most of the mass there are probabilities, and the log tells the mass."""
    with serving(0.8) as server:
        async with Model("tiny", [server.host], server="openai").as_client() as pool:
            await Reasoner(pool, mode="decision", seed=1).decide_many([ask("ada")])
    (event,) = heard
    assert event["option_mass"] == pytest.approx(0.8)
    assert sum(event["probabilities"].values()) == pytest.approx(1, abs=1e-5)


async def test_questions_of_one_agent_are_asked_in_as_many_slots() -> None:
    """Each is a chat of its own, so none waits for another; one that fails spares the others."""
    agent, gate = ask("Ada").agent, Gate()
    questions = [replace(question, agent=agent) for question in crowd(3)]
    questions = [replace(each, trigger=f"decides{n}") for n, each in enumerate(questions)]
    with FakeOpenAI(models=["tiny"], latency=gate) as server:
        server.fail(Fault.says("nonsense"))
        async with Model("tiny", [server.host], server="openai", concurrency=3).as_client() as pool:
            deciding = asyncio.create_task(Reasoner(pool).decide_many(questions))
            await until(lambda: server.asked == 3)
            gate.is_open = True
            decisions = await deciding
    assert server.most_at_once == 3
    assert {decision.source for decision in decisions} == {"model"}
    # the one whose reply was of no use is asked once more
    assert sorted(one.cost.attempts for one in decisions if one.cost) == [1, 1, 2]


@pytest.mark.parametrize("busy_first", [True, False])
@pytest.mark.sampled(2)
async def test_a_busy_server_holds_up_no_server_that_can_only_chat(busy_first: bool) -> None:
    """Mode auto chats where that is possible, instead of waiting for one that is too busy."""
    with FakeOpenAI(models=["tiny"]) as busy, FakeOpenAI(models=["tiny"], logprobs=False) as free:
        busy.fail_always(Fault.status(429, headers={"Retry-After": "1"}))
        hosts = [busy.host, free.host] if busy_first else [free.host, busy.host]
        async with Model("tiny", hosts, server="openai").as_client() as pool:
            decisions = await Reasoner(pool, timeout=4).decide_many(crowd(8))
    assert [decision.source for decision in decisions] == ["model"] * 8
