"""One router for all questions and texts of a run, each put to whoever answers for its agent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from prism.errors import FieldValueError, ReasonerError, TooManyFallbacksError
from prism.llm._pool import ModelPool
from prism.reasoner import Cost, Decision, Router
from prism.statechart import BaseWriter, Budget, PolicyReasoner, Reasoner, TextCall, Writer, Written
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


def by_parity(even: Any, odd: Any, **settings: Any) -> Router:
    budget = Budget()
    return Router(
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
    reasoner = Router(
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
        Router({"even": Reasoner(Says("")), "odd": Reasoner(Says(""))}, parity)
    with pytest.raises(FieldValueError, match="at least one"):
        Router({}, parity)


async def test_an_agent_of_nobody_is_told() -> None:
    """A name that no reasoner has is an error with the agent and the names that there are."""
    reasoner = Router({"even": PolicyReasoner()}, parity)
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
        await Router({"even": slow, "odd": Breaks()}, parity).answer(crowd(2))
    assert slow.ended


async def test_costs_are_counted_by_model() -> None:
    """A run's summary tells what each of its models has cost."""
    with FakeOllama(models=["small", "large"]) as server:
        budget = Budget()
        parts: dict[str, Any] = {
            name: Reasoner(ModelPool([server.host], model), budget=budget)
            for name, model in (("even", "small"), ("odd", "large"))
        }
        reasoner = Router(parts, parity)
        decisions = await reasoner.decide_many(crowd(5))
        await reasoner.close()

    costs = reasoner.costs.to_dict()
    assert {model: (each["answers"], each["calls"]) for model, each in costs.items()} == {
        "large": (2, 2),
        "small": (3, 3),
    }
    read = sum(decision.cost.input_tokens or 0 for decision in decisions if decision.cost)
    assert sum(each["input_tokens"] for each in costs.values()) == read > 0
    assert budget.calls == 5


async def test_texts_are_written_by_the_model_of_their_agent() -> None:
    """A router of writers does with text calls what one of reasoners does with questions."""

    class Nobody(BaseWriter):
        async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
            return [Written(None, "failed", reason="nobody") for _ in calls]

    calls = [TextCall(question.agent, "greeting", "Hello?") for question in crowd(3)]
    writer = Router({"even": Writer(Says("Hi.")), "odd": Nobody()}, parity)
    texts = await writer.write_many(calls)
    assert [written.text for written in texts] == ["Hi.", None, "Hi."]


class Knows:
    """Answers from before, for some agents."""

    def __init__(self, **answers: Decision) -> None:
        self.answers = answers

    def answer_to(self, asked: Any, prompt_hash: Any) -> Any:
        return self.answers.pop(asked.agent.agent_id, None)


async def test_an_earlier_answer_is_not_asked_for_again() -> None:
    """What is known goes before, once, and draws as if it had been asked; its cost counts."""
    cost = Cost(model="tiny", attempts=2)
    before = Decision(S.COMPOSING, "model", probabilities={"composing": 1.0}, cost=cost)
    policy = PolicyReasoner(3)
    router = Router({"all": policy})
    router.journal = Knows(n1=before)
    questions = crowd(3)
    decisions = [*await router.answer(questions), *await router.answer(questions)]
    assert decisions[1] is before
    assert router.costs.to_dict()["tiny"]["calls"] == 2

    alone = PolicyReasoner(3)
    expected = [*await alone.answer(questions), *await alone.answer(questions)]
    assert [*decisions[:1], *decisions[2:]] == [*expected[:1], *expected[2:]]


async def test_earlier_fallbacks_end_no_run() -> None:
    """Only what is asked now tells whether the model fails, not what a log says of another day."""
    fallback = Decision(S.SCROLLING, "fallback", reason="gone")
    router = Router({"all": Reasoner(Says(answer("scrolling")))}, stop_at=0.5)
    questions = crowd(200)
    router.journal = Knows(**{each.agent.agent_id: fallback for each in questions})
    assert {each.source for each in await router.decide_many(questions)} == {"fallback"}
    assert {each.source for each in await router.decide_many(questions)} == {"model"}


async def test_agents_are_switched_in_mid_run() -> None:
    """From then on another part answers for all."""
    router = by_parity(Says(answer("scrolling")), Says(answer("composing")))
    router.switch("odd")
    decisions = await router.decide_many(crowd(3))
    assert [each.chosen for each in decisions] == [S.COMPOSING, S.COMPOSING, S.COMPOSING]


@pytest.mark.slow
async def test_a_router_among_others_ends_the_run_as_well() -> None:
    """The limit of a router holds also where another one, such as a switch, asks it."""
    inner = Router({"all": Reasoner(Says("no"), fallback=S.SCROLLING)}, stop_at=1)
    outer = Router({"first": inner, "later": PolicyReasoner()}, lambda _agent: "first")
    with pytest.raises(TooManyFallbacksError, match="20 of the last 20"):
        await outer.decide_many(crowd(200))
