"""Reasoners and writers of several models, one for each group of agents."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from prism.errors import FieldValueError, ReasonerError
from prism.llm import OllamaPool, Slots
from prism.statechart import BaseWriter, Budget, PolicyReasoner, Reasoner, TextCall, Writer, Written
from prism.statechart.reasoner import ReasonerByAgent, WriterByAgent
from prism.testing import FakeOllama
from tests.kit.reasoners import S, answer, ask, crowd, outcomes
from tests.kit.waiting import until


class Says:
    """A model that always says the same."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.prompts: list[str] = []

    async def run(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.text


def parity(agent: Any) -> str:
    return "even" if int(agent.agent_id[1:]) % 2 == 0 else "odd"


def by_parity(even: Any, odd: Any, **settings: Any) -> ReasonerByAgent:
    budget = Budget()
    return ReasonerByAgent(
        {"even": Reasoner(even, budget=budget), "odd": Reasoner(odd, budget=budget)},
        parity,
        **settings,
    )


async def test_each_agent_is_asked_of_its_own_model() -> None:
    """Questions go to the model of their agent, and the answers come back in their order."""
    even, odd = Says(answer("scrolling")), Says(answer("composing"))
    decisions = await by_parity(even, odd).decide_many(crowd(5))
    wanted = [S.SCROLLING, S.COMPOSING, S.SCROLLING, S.COMPOSING, S.SCROLLING]
    assert outcomes(decisions) == [(state, "model") for state in wanted]
    assert (len(even.prompts), len(odd.prompts)) == (3, 2)


async def test_models_are_asked_at_the_same_time() -> None:
    """No group of agents waits for the answers of another."""
    met = asyncio.Barrier(2)

    class Waits:
        async def run(self, prompt: str) -> str:
            await asyncio.wait_for(met.wait(), 5)
            return answer("scrolling")

    decisions = await by_parity(Waits(), Waits()).decide_many(crowd(2))
    assert [decision.source for decision in decisions] == ["model", "model"]


async def test_a_policy_may_decide_for_some() -> None:
    """Not all have to ask a model, and those who do not have no costs."""
    budget = Budget(max_calls=1)
    reasoner = ReasonerByAgent(
        {"even": PolicyReasoner(3), "odd": Reasoner(Says(answer("composing")), budget=budget)},
        parity,
    )
    decisions = await reasoner.decide_many(crowd(2))
    assert [decision.source for decision in decisions] == ["policy", "model"]
    assert decisions[:1] == await PolicyReasoner(3).decide_many(crowd(1))
    assert (reasoner.budget, reasoner.concurrency, reasoner.costs.to_dict()) == (budget, 16, {})


def test_budgets_of_their_own_are_refused() -> None:
    """What a run has spent is one number, so reasoners that count apart are told to share."""
    with pytest.raises(FieldValueError, match="even, odd must share one budget"):
        ReasonerByAgent({"even": Reasoner(Says("")), "odd": Reasoner(Says(""))}, parity)
    with pytest.raises(FieldValueError, match="at least one"):
        ReasonerByAgent({}, parity)


async def test_an_agent_of_nobody_is_told() -> None:
    """A name that no reasoner has is an error with the agent and the names that there are."""
    reasoner = ReasonerByAgent({"even": PolicyReasoner()}, parity)
    with pytest.raises(ReasonerError, match=r"agent 'n1' was given to 'odd', .* one of even"):
        await reasoner.answer([ask("n1")])


async def test_a_fault_ends_what_the_others_ask() -> None:
    """If one reasoner raises, the questions of the others are cancelled, and nothing is left."""

    class Breaks(PolicyReasoner):
        async def answer(self, questions: Sequence[Any]) -> Any:
            await until(lambda: bool(slow.begun))
            raise ZeroDivisionError

    class Slow(PolicyReasoner):
        begun, ended = False, False

        async def answer(self, questions: Sequence[Any]) -> Any:
            self.begun = True
            try:
                await asyncio.Event().wait()
            finally:
                self.ended = True

    slow = Slow()
    with pytest.raises(ZeroDivisionError):
        await ReasonerByAgent({"even": slow, "odd": Breaks()}, parity).answer(crowd(2))
    assert slow.ended


async def test_costs_are_counted_by_model() -> None:
    """What the log tells of a run's models: who has which, and what each has cost."""
    started: list[Any] = []
    with FakeOllama(models=["small", "large"]) as server:
        slots, budget = Slots(), Budget()
        parts: dict[str, Any] = {
            name: Reasoner(OllamaPool([server.host], model, slots=slots), budget=budget)
            for name, model in (("even", "small"), ("odd", "large"))
        }
        reasoner = ReasonerByAgent(parts, parity, on_start=started.append)
        told = reasoner.models_for([question.agent for question in crowd(5)])
        decisions = await reasoner.decide_many(crowd(5))
        await reasoner.close()

    keys = ("for", "agents", "asked", "model", "temperature", "hosts")
    assert [[entry[key] for key in keys] for entry in told] == [
        ["even", 3, "decisions", "small", 0.0, [server.host]],
        ["odd", 2, "decisions", "large", 0.0, [server.host]],
    ]
    assert started == [{"even": 3, "odd": 2}]
    costs = reasoner.costs.to_dict()
    assert {model: (each["answers"], each["calls"]) for model, each in costs.items()} == {
        "large": (2, 2),
        "small": (3, 3),
    }
    read = sum(decision.cost.input_tokens or 0 for decision in decisions if decision.cost)
    assert sum(each["input_tokens"] for each in costs.values()) == read > 0
    assert budget.calls == 5


async def test_texts_are_written_by_the_model_of_their_agent() -> None:
    """A writer by agent does with text calls what a reasoner does with questions."""

    class Nobody(BaseWriter):
        async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
            return [Written(None, "failed", reason="nobody") for _ in calls]

    calls = [TextCall(question.agent, "greeting", "Hello?") for question in crowd(3)]
    writer = WriterByAgent({"even": Writer(Says("Hi.")), "odd": Nobody()}, parity)
    texts = await writer.write_many(calls)
    assert [written.text for written in texts] == ["Hi.", None, "Hi."]
    assert writer.models_for([call.agent for call in calls])[1] == {
        "for": "odd",
        "agents": 1,
        "asked": "texts",
    }
