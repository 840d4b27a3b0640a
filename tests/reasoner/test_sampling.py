"""Where a model samples its answers, agents with one prompt answer independently of each other."""

from math import sqrt
from typing import Any

import pytest

from prism.llm import Model
from prism.randomness import RandomStream
from prism.reasoner import Decision
from prism.statechart import Question, Reasoner
from prism.testing import FakeOllama
from tests.kit.reasoners import S

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
