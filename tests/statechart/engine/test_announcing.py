"""Every decision of `afire` is announced, and announced once."""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
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
from prism.telemetry import Instrument, instrumented

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


class AsksAboutAnother(Only):
    """A reasoner that asks a prism reasoner about some other agent first."""

    async def decide(self, *question: Any) -> Any:
        other = SimpleNamespace(state=S.IDLE, agent_id="other")
        await PolicyReasoner().decide(other, S.IDLE, "decide", [S.IDLE])
        return self.choice


def deciding_chart(**options: Any) -> Statechart[S]:
    moves = [Transition("decide", S.IDLE, target) for target in (S.COMPOSING, S.RESTING)]
    return Statechart(S, moves, S.IDLE, decision_states=(S.IDLE,), **options)


async def ask(reasoner: Decider, **options: Any) -> None:
    agent, post = SimpleNamespace(state=S.IDLE, agent_id="a1"), SimpleNamespace(post_id="p1")
    await deciding_chart(**options).afire(agent, "decide", post, reasoner=reasoner)


def decisions(entries: list[Any]) -> list[str]:
    """Return the agents of the announced decisions."""
    return [entry["agent_id"] for entry in entries if entry["event"] == "reasoner.decision"]


@pytest.mark.parametrize("choice", [S.RESTING, "resting"])
async def test_the_decision_of_a_reasoner_with_decide_alone_is_announced(
    choice: Any, events: list[Any]
) -> None:
    """A reasoner that only has ``decide`` leaves the event of a decision, before its transition."""
    await ask(Only(choice))
    assert events[0] == EVENT
    assert [entry["event"] for entry in events] == ["reasoner.decision", "statechart.transition"]


async def test_an_instrument_observes_it() -> None:
    """Whoever observes decisions gets it, also if nobody listens to the log."""
    seen: list[Any] = []

    class Observer(Instrument):
        def event(self, details: Any, /) -> None:
            seen.append(details.name)

    with instrumented(Observer()):
        await ask(Only())
    assert seen == ["reasoner.decision", "statechart.transition"]


@pytest.mark.parametrize("in_a_task", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_no_decision_is_announced_twice(
    depth: int, in_a_task: bool, events: list[Any]
) -> None:
    """A reasoner that asks another one, which announces the decision, adds nothing to the log."""
    reasoner: Decider = PolicyReasoner()
    for _ in range(depth):
        reasoner = Asks(reasoner, in_a_task=in_a_task)
    await ask(reasoner)
    assert decisions(events) == ["a1"]


async def test_a_decision_of_another_agent_is_another_decision(events: list[Any]) -> None:
    """What a reasoner asks about others meanwhile does not stand for its own decision."""
    await ask(AsksAboutAnother())
    assert decisions(events) == ["other", "a1"]


async def test_each_of_many_open_questions_is_announced(events: list[Any]) -> None:
    """Questions that are open at the same time are announced one by one, each once."""
    chart, reasoners = deciding_chart(), [Only(), PolicyReasoner(), Asks(Only(), in_a_task=True)]
    agents = [SimpleNamespace(state=S.IDLE, agent_id=str(number)) for number in range(9)]
    questions = [
        chart.afire(agent, "decide", reasoner=reasoners[number % 3])
        for number, agent in enumerate(agents)
    ]
    await asyncio.gather(*questions)
    assert sorted(decisions(events)) == [str(number) for number in range(9)]


async def test_a_discarded_decision_is_announced(events: list[Any]) -> None:
    """A decision that comes too late is in the log, and that it was discarded after it."""
    agent = SimpleNamespace(state=S.IDLE, agent_id="a1")

    class Meddler(Only):
        async def decide(self, *question: Any) -> Any:
            agent.state = S.EVALUATING
            return self.choice

    await deciding_chart().afire(agent, "decide", reasoner=Meddler())
    assert [entry["event"] for entry in events] == [
        "reasoner.decision",
        "statechart.answer_discarded",
    ]


async def test_a_forgotten_question_disturbs_no_other(events: list[Any]) -> None:
    """Closing a question that nobody awaits any more, from within another, changes nothing."""
    forgotten: Coroutine[Any, Any, None] = ask(Only())
    copy_context().run(forgotten.send, None)

    class Closes(Only):
        async def decide(self, *question: Any) -> Any:
            forgotten.close()
            return await PolicyReasoner().decide(*question)

    await ask(Closes())
    assert decisions(events) == ["a1"]
