"""Questions to put, and models that answer them, for the tests of reasoners."""

import json
from types import SimpleNamespace
from typing import Any

from prism.reasoner import Decision, Question, Reasoner
from prism.statechart.states import AgentState, state_text

S = AgentState


OPTIONS = (S.COMPOSING, S.SCROLLING)


POST = SimpleNamespace(post_id="p1", author="bob", text="Rooks are overrated.")


def answer(state: str) -> str:
    return json.dumps({"next_state": state})


def ask(name: str = "Ada", **changes: Any) -> Question:
    agent = SimpleNamespace(agent_id=name, name=name, interests=["chess"], personality="dry")
    return Question(
        agent, S.EVALUATING, "decides", **{"options": OPTIONS, "context": POST, **changes}
    )


def crowd(size: int, **changes: Any) -> list[Question]:
    return [ask(f"n{number}", **changes) for number in range(size)]


async def decide(client: Any, **options: Any) -> Decision:
    return (await Reasoner(client, **options).decide_many([ask()]))[0]


def outcomes(decisions: list[Decision]) -> list[tuple[Any, str]]:
    return [(decision.chosen, decision.source) for decision in decisions]


async def prompt_of(question: Question, **settings: Any) -> str:
    """Return the prompt with which a reasoner asks a question."""
    prompts: list[str] = []

    class Listens:
        async def run(self, prompt: str) -> str:
            prompts.append(prompt)
            return answer(state_text(question.options[0]))

    await Reasoner(Listens(), **settings).decide_many([question])
    return prompts[0]
