"""Every decision of `afire` is announced, and announced once."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart import (
    AgentState,
    Decider,
    PolicyReasoner,
    Statechart,
    Transition,
)

S = AgentState

EVENT = {
    "event": "reasoner.decision",
    "log_level": "info",
    "agent_id": "a1",
    "state": "idle",
    "trigger": "decide",
    "options": ["composing", "resting"],
    "chosen": "resting",
    "source": "policy",
    "reason": None,
    "probabilities": None,
    "context": {"post_id": "p1"},
}


class Only:
    """A reasoner that has a ``decide`` and nothing else."""

    def __init__(self, choice: Any = S.RESTING) -> None:
        self.choice = choice

    async def decide(self, *question: Any) -> Any:
        await asyncio.sleep(0)
        return self.choice


class Asks(Only):
    """A reasoner that has another one decide, within its own task or in one that it starts."""

    def __init__(self, other: Decider, *, in_a_task: bool) -> None:
        super().__init__()
        self.other, self.in_a_task = other, in_a_task

    async def decide(self, *question: Any) -> Any:
        answer = self.other.decide(*question)
        return await (asyncio.ensure_future(answer) if self.in_a_task else answer)


def deciding_chart(**options: Any) -> Statechart[S]:
    moves = [Transition("decide", S.IDLE, target) for target in (S.COMPOSING, S.RESTING)]
    return Statechart(S, moves, S.IDLE, decision_states=(S.IDLE,), **options)


async def ask(reasoner: Decider, **options: Any) -> None:
    agent, post = SimpleNamespace(state=S.IDLE, agent_id="a1"), SimpleNamespace(post_id="p1")
    await deciding_chart(**options).afire(agent, "decide", post, reasoner=reasoner)


@pytest.mark.parametrize("choice", [S.RESTING, "resting"])
async def test_the_decision_of_a_reasoner_with_decide_alone_is_announced(
    choice: Any, events: list[Any]
) -> None:
    """A reasoner that only has ``decide`` leaves the event of a decision, before its transition."""
    await ask(Only(choice))
    assert events[0] == EVENT
    assert [entry["event"] for entry in events] == ["reasoner.decision", "statechart.transition"]


@pytest.mark.parametrize("in_a_task", [False, True])
async def test_no_decision_is_announced_twice(in_a_task: bool, events: list[Any]) -> None:
    """A reasoner that asks another one, which announces the decision, adds nothing to the log."""
    await ask(Asks(PolicyReasoner(), in_a_task=in_a_task))
    assert [each["event"] for each in events].count("reasoner.decision") == 1
