"""Deciding without a model."""

from math import exp
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.reasoner import PolicyReasoner, Question
from prism.statechart.states import AgentState

S = AgentState
OPTIONS = (S.COMPOSING, S.ENGAGING_LIKE, S.SCROLLING)


def ask(
    relevance: float | None = None, inclinations: dict[str, float] | None = None, **fields: Any
) -> Question:
    agent = SimpleNamespace(**{"agent_id": "a1", **fields})
    if relevance is not None:
        agent.relevance = lambda post: relevance
    if inclinations is not None:
        agent.archetype = SimpleNamespace(inclinations=inclinations)
    return Question(agent, S.EVALUATING, "decides", OPTIONS, "post")


async def choices(reasoner: PolicyReasoner, question: Question, count: int = 40) -> list[Any]:
    return [decision.chosen for decision in await reasoner.decide_many([question] * count)]


@pytest.mark.parametrize("temperature", [0, -1, float("nan")])
def test_temperature_must_be_above_zero(temperature: float) -> None:
    """A temperature that is not above 0 is a ValueError that says so."""
    with pytest.raises(FieldValueError, match="temperature must be above 0, got"):
        PolicyReasoner(temperature=temperature)


def test_probabilities_are_the_softmax_of_the_utilities() -> None:
    """An option's probability is proportional to exp(utility / temperature)."""
    chances = PolicyReasoner(temperature=2.0).probabilities(
        ask(0.5, {"scrolling": 1.5, "composing": 0.2})
    )
    weights = [exp(1.2 / 2), exp(1.0 / 2), exp(1.5 / 2)]
    assert chances == pytest.approx([weight / sum(weights) for weight in weights])


async def test_agents_do_not_disturb_each_other() -> None:
    """An agent's decisions are the same whether or not others decide in between."""
    alone = await choices(PolicyReasoner(7), ask())
    mixed = await PolicyReasoner(7).decide_many([ask(), ask(agent_id="a2")] * 40)
    assert [decision.chosen for decision in mixed[::2]] == alone
    assert [decision.chosen for decision in mixed[1::2]] != alone


async def test_an_agents_own_stream_is_used() -> None:
    """An agent decides by its stream if it has one, and by that of its name otherwise."""
    first = await choices(PolicyReasoner(1), ask(random=RandomStream(5, "a1")))
    second = await choices(PolicyReasoner(2), ask(random=RandomStream(5, "a1")))
    stream = RandomStream(5, "a1")
    assert first == second == [OPTIONS[stream.weighted_index([1 / 3] * 3)] for _ in first]
    for other in (None, 4):
        chosen = await choices(PolicyReasoner(1), ask(random=other), 1)
        assert chosen == [OPTIONS[RandomStream(1, "a1").weighted_index([1 / 3] * 3)]]


async def test_choices_follow_the_probabilities() -> None:
    """Over many draws every option is chosen about as often as its probability says."""
    reasoner, question = PolicyReasoner(3), ask(0.5)
    drawn = await choices(reasoner, question, 3000)
    for option, chance in zip(OPTIONS, reasoner.probabilities(question), strict=True):
        assert drawn.count(option) / 3000 == pytest.approx(chance, abs=0.03)
