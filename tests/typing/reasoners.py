"""Types of reasoners, as users see them; checked by test_typing.py, never run."""

from collections.abc import Sequence
from typing import Any, assert_type

from prism.agents import SocialAgent
from prism.llm import Model, OllamaChatClient
from prism.reasoner import (
    BaseReasoner,
    Budget,
    Decision,
    PolicyReasoner,
    Question,
    Reasoner,
    TextCall,
    Writer,
    Written,
)
from prism.statechart import AgentState, social_media_chart


class First(BaseReasoner):
    """A reasoner in the way of prism's own."""

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return [Decision(question.options[0], "policy") for question in questions]


class Temper:
    """A reasoner of the least: one method."""

    async def decide(
        self,
        agent: SocialAgent,
        current_state: AgentState,
        trigger: str,
        options: list[Any],
        context: object = None,
    ) -> AgentState:
        return AgentState.SCROLLING if trigger == "decides" else current_state


class Echo:
    """A client of the least."""

    async def run(self, prompt: str) -> str:
        return prompt


async def ask() -> None:
    chart, ada = social_media_chart(), SocialAgent("ada")
    assert_type(await ada.decide("a post", chart=chart, reasoner=Temper()), AgentState | None)
    client = OllamaChatClient("http://127.0.0.1:11434", "llama3.2")
    pool = Model("llama3.2", ["http://127.0.0.1:11434"], concurrency=4).as_client()
    reasoner = Reasoner(
        pool, mode="auto", fallback=AgentState.SCROLLING, budget=Budget(max_calls=10, deadline=3.5)
    )
    policy = PolicyReasoner(1, temperature=0.5)
    for asked in (reasoner, Reasoner(client), Reasoner(Echo()), policy, First()):
        assert_type(await chart.afire(ada, "decides", reasoner=asked), AgentState | None)
    assert_type(await chart.afire(ada, "decides", reasoner=Temper()), AgentState | None)
    question = Question(ada, ada.state, "decides", (AgentState.SCROLLING,))
    assert_type(await reasoner.decide_many([question]), list[Decision])
    assert_type(PolicyReasoner().probabilities(question), list[float])


async def write() -> None:
    call = TextCall("ada", "mood", "How is Ada?", {"type": "object"}, str.upper, tries=2)
    writer = Writer(Echo(), budget=Budget(max_calls=10))
    assert_type(await writer.write(call), Written)
    assert_type((await writer.write(call)).text, str | None)
