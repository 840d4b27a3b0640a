"""Where a model samples its answers, agents with one prompt answer independently of each other."""

from collections import Counter
from math import sqrt
from typing import Any

import pytest

from prism.llm import Model
from prism.randomness import RandomStream
from prism.reasoner import Decision
from prism.statechart import Question, Reasoner, TextCall, Writer
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit.reasoners import S, asked, crowd
from tests.kit.servers import Connect

AGENTS = 100
SHARE = 0.3

PROMPT = "You pass a shop.\n{options}"


class Twin:
    """One of many agents who differ in nothing but their ids."""

    name = "Ada"

    def __init__(self, number: int) -> None:
        self.agent_id = f"agent {number}"


def twins(count: int = AGENTS) -> list[Question]:
    """Return the same question to so many agents."""
    options = (S.COMPOSING, S.SCROLLING)
    return [Question(Twin(number), S.EVALUATING, "decides", options) for number in range(count)]


def sampled(question: Any) -> str:
    """Choose as a model does that gives the first option a share, by the seed of the request."""
    seed = question.body.get("options", question.body)["seed"]
    number = RandomStream(seed).random()
    return str(question.options[0 if number < SHARE else 1])


def is_near(count: int, share: float, of: int = AGENTS) -> bool:
    """Return True if a count is within four standard errors of a share."""
    return abs(count - share * of) <= 4 * sqrt(share * (1 - share) * of)


def chosen(decisions: list[Decision]) -> list[Any]:
    return [decision.chosen for decision in decisions]


@pytest.mark.slow
async def test_agents_with_one_prompt_draw_independently() -> None:
    """At another temperature than 0 the shares are those of the model, at a request for each."""
    with FakeOllama(choose=sampled) as server:
        async with Model("llama3.2", server.host, temperature=0.8) as model:
            reasoner = Reasoner(model, mode="chat", seed=3)
            first, second = [await reasoner.decide_many(twins()) for _ in range(2)]
    assert is_near(chosen(first).count(S.COMPOSING), SHARE)
    assert is_near(chosen(second).count(S.COMPOSING), SHARE)
    # whether an agent accepts says nothing about its next answer
    both = sum(a == b == S.COMPOSING for a, b in zip(chosen(first), chosen(second), strict=True))
    assert is_near(both, SHARE**2)
    assert server.asked == 2 * AGENTS
    seeds = [question.body["options"]["seed"] for question in server.questions]
    assert len({*seeds}) == 2 * AGENTS


@pytest.mark.slow
async def test_a_server_with_its_own_temperature_samples(
    server: FakeOllama, connect: Connect
) -> None:
    """A client that is told no temperature samples, as servers do that are told none."""
    server.choose = sampled
    decisions = await Reasoner(connect(kind="ollama"), model="tiny", mode="chat").decide_many(
        twins(60)
    )
    assert is_near(chosen(decisions).count(S.COMPOSING), SHARE, of=60)


async def test_a_seed_repeats_every_draw() -> None:
    """The same seed gives the same answers, whoever is asked first; another gives others."""
    found = []
    with FakeOllama(choose=sampled) as server:
        for seed, step in ((1, 1), (1, -1), (2, 1)):
            async with Model("llama3.2", server.host, temperature=0.8) as model:
                reasoner = Reasoner(model, mode="chat", seed=seed)
                decisions = await reasoner.decide_many(twins(40)[::step])
            found.append(chosen(decisions)[::step])
    assert found[0] == found[1] != found[2]


@pytest.mark.slow
async def test_shares_are_those_of_the_log_probabilities() -> None:
    """A server that samples by its log-probabilities is as often told what these say."""
    with (
        FakeOpenAI() as by_logprobs,
        FakeOllama(choose=sampled) as by_seed,
        FakeOllama(models=["llama3.2"], choose=sampled) as cold,
    ):
        shares = Model("llama3.2", by_logprobs.host, server="openai", temperature=1.0)
        async with shares as model:
            decisions = await Reasoner(model, mode="auto").decide_many(twins())
        chances = decisions[0].probabilities or {}
        async with Model("llama3.2", by_seed.host, temperature=1.0) as model:
            texts = await Reasoner(model, mode="chat", prompt=PROMPT).decide_many(twins())
        async with Model("llama3.2", cold.host) as model:
            frozen = await Reasoner(model, mode="chat", prompt=PROMPT).decide_many(twins())
    # the agents draw from probabilities that one request has for all
    assert (by_logprobs.asked, by_seed.asked, cold.asked) == (1, AGENTS, 1)
    for option in (S.COMPOSING, S.SCROLLING):
        assert is_near(chosen(decisions).count(option), chances[option.value])
    assert len({*chosen(texts)}) == 2
    assert len({*chosen(frozen)}) == 1


@pytest.mark.slow
async def test_a_chat_in_place_of_a_decision_is_sampled() -> None:
    """A server that turns out to give no log-probabilities is asked for each agent."""
    with FakeOllama(logprobs=False, choose=sampled) as server:
        server.fail(Fault.status(404), path="/api/show")
        async with Model("llama3.2", server.host, temperature=0.8) as model:
            decisions = await Reasoner(model).decide_many(twins(40))
    assert len({*chosen(decisions)}) == 2
    assert asked(server).count("/api/chat") == 41


async def test_a_fallback_says_which_seed_was_drawn() -> None:
    """Every question that took a number says so, that a resumed run may take it again."""
    with FakeOllama() as server:
        server.fail_always(Fault.status(400))
        async with Model("llama3.2", server.host, temperature=0.8) as model:
            decisions = await Reasoner(model, mode="chat").decide_many(crowd(3))
    assert Counter(decision.source for decision in decisions) == {"fallback": 3}
    assert len({decision.sampling_seed for decision in decisions} - {None}) == 3


@pytest.mark.slow
async def test_texts_for_one_prompt_are_written_independently() -> None:
    """Agents that are given one prompt write texts of their own, the same in every run."""
    calls = [TextCall(f"agent {number}", "post", "Write a post.") for number in range(20)]
    runs = []
    for temperature in (0.8, 0.8, 0.0):
        with FakeOllama(write=lambda _prompt, _schema: "Hi.") as server:
            async with Model("llama3.2", server.host, temperature=temperature) as model:
                await Writer(model, seed=3).write_many(calls)
        runs.append({question.body["options"]["seed"] for question in server.questions})
    assert runs[0] == runs[1]
    assert [len(seeds) for seeds in runs] == [20, 20, 1]
