"""Asking a reasoner, and answers that come too late."""

import asyncio
import re
from typing import Any

import pytest

from prism.errors import ReasonerError
from prism.reasoner import PolicyReasoner
from prism.statechart import State
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import Post, StateOnly, chart_of, moves_of, snapshot

S = AgentState


class Chooser:
    """A reasoner that does what it is told, and keeps what it was asked."""

    def __init__(self, choice: Any, *, meanwhile: Any = None) -> None:
        self.choice, self.meanwhile, self.asked = choice, meanwhile, []

    async def decide(self, *question: Any) -> Any:
        self.asked.append(question)
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            self.meanwhile()
        return self.choice


class Patient:
    """A reasoner that answers when it is let."""

    def __init__(self, choice: Any) -> None:
        self.choice, self.asked, self.let = choice, asyncio.Event(), asyncio.Event()

    async def decide(self, *question: Any) -> Any:
        self.asked.set()
        await self.let.wait()
        return self.choice


def no(agent: Any, context: Any) -> bool:
    return False


def is_ready(agent: Any, context: Any) -> bool:
    return bool(agent.ready)


def doing(what: str) -> Any:
    """Make an action that notes what was done."""
    return lambda agent, _post: agent.done.append(what)


def decision_chart(**options: Any) -> Statechart[S]:
    return chart_of(
        Transition("decide", S.IDLE, S.COMPOSING, is_ready, doing("compose")),
        Transition("decide", S.IDLE, S.RESTING, None, doing("rest")),
        Transition("decide", S.IDLE, S.COMPOSING, None, doing("compose anyway")),
        Transition("decide", S.SCROLLING, S.COMPOSING),
        Transition("decide", S.SCROLLING, S.RESTING),
        Transition("look", S.IDLE, S.EVALUATING),
        Transition("look", S.EVALUATING, S.IDLE),
        Transition("same", S.IDLE, S.RESTING),
        Transition("same", S.IDLE, S.RESTING),
        **{"decision_states": (S.IDLE,), **options},
    )


@pytest.fixture
def decider(agent: Any) -> Any:
    """Return an agent that has something to decide, and that notes which action ran."""
    agent.ready, agent.done = True, []
    return agent


async def test_the_reasoner_is_asked_where_several_targets_are_enabled(decider: Any) -> None:
    """In a decision state the reasoner is asked once, with the distinct enabled targets."""
    reasoner, post = Chooser(S.RESTING), Post("p1")
    assert await decision_chart().afire(decider, "decide", post, reasoner=reasoner) is S.RESTING
    assert reasoner.asked == [(decider, S.IDLE, "decide", [S.COMPOSING, S.RESTING], post)]
    assert decider.done == ["rest"]
    assert moves_of(decider) == [("idle", "decide", "resting")]
    assert decider.state_history[0].context == {"post_id": "p1"}


@pytest.mark.parametrize(
    ("looks", "now_in", "bare"),
    [(1, S.EVALUATING, True), (1, S.EVALUATING, False), (2, S.IDLE, False)],
)
async def test_a_stale_answer_is_discarded(
    decider: Any, looks: int, now_in: S, bare: bool, events: list[Any]
) -> None:
    """An answer for an agent that moved meanwhile, even back, is discarded with a warning."""
    chart = decision_chart(name="c")
    agent = StateOnly(ready=True, done=[], agent_id="a1") if bare else decider
    chart.fire(type(agent)(), "look")

    def look() -> None:
        for _ in range(looks):
            chart.fire(agent, "look")

    reasoner = Chooser(S.COMPOSING, meanwhile=look)
    assert await chart.afire(agent, "decide", reasoner=reasoner) is None
    assert (agent.state, agent.done) == (now_in, [])
    (lost,) = [entry for entry in events if entry["log_level"] == "warning"]
    assert lost == {
        **{"event": "statechart.answer_discarded", "log_level": "warning", "chart": "c"},
        **{"agent_id": "a1", "trigger": "decide", "asked_in": "idle", "now_in": now_in.value},
        **{"chosen": "composing", "reason": "moved"},
    }


def test_an_answer_is_for_the_state_that_was_asked(agent: Any, events: list[Any]) -> None:
    """Another state that could make the same move, such as to stay, does not make it."""
    chart = chart_of(*(Transition("stay", state, state) for state in (S.IDLE, S.RESTING)))
    agent.ticks_in_state = 3
    assert chart.fire_to(agent, "stay", S.RESTING, asked_in=S.RESTING) is None
    assert (agent.ticks_in_state, events[0]["reason"]) == (3, "moved")
    assert chart.fire_to(agent, "stay", S.IDLE, asked_in=S.IDLE) is S.IDLE
    assert agent.ticks_in_state == 0


def test_an_answer_inside_an_action_waits_for_its_commit(agent: Any, events: list[Any]) -> None:
    """It is made then, unless it was about the state that the transition leaves."""

    def answers(agent: Any, asked_in: Any) -> None:
        chart.fire_to(agent, "on", S.RESTING, asked_in=asked_in)

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, None, answers),
        Transition("on", S.SCROLLING, S.RESTING),
        Transition("on", S.RESTING, S.IDLE),
    )
    assert chart.fire(agent, "go", S.SCROLLING) is S.RESTING
    chart.fire(agent, "on")
    assert chart.fire(agent, "go", S.IDLE) is S.SCROLLING
    assert events[-1]["event"] == "statechart.answer_discarded"
    assert [entry["event"] for entry in events[:-1]] == ["statechart.transition"] * 4


async def test_a_cancelled_afire_leaves_the_agent_as_it_was(decider: Any) -> None:
    """Cancelling afire while a question is open changes nothing, and the agent can fire again."""
    chart, reasoner = decision_chart(), Patient(S.COMPOSING)
    decider.ticks_in_state = 4
    before = snapshot(decider)
    task = asyncio.create_task(chart.afire(decider, "decide", reasoner=reasoner))
    await reasoner.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert snapshot(decider) == before
    assert chart.fire(decider, "decide") is S.COMPOSING


@pytest.mark.parametrize("answer", [S.SCROLLING, "flying", None, S.EVALUATING])
async def test_an_answer_outside_the_options_is_an_error(decider: Any, answer: Any) -> None:
    """An answer outside the options is a ValueError that lists them, and nothing has changed."""
    before = snapshot(decider)
    message = re.escape(
        f"the reasoner chose {answer!r}, which is not among the options (composing, resting)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        await decision_chart().afire(decider, "decide", reasoner=Chooser(answer))
    assert isinstance(caught.value, ReasonerError)
    assert snapshot(decider) == before


# Announcing

EVENT = {
    **{"event": "reasoner.decision", "log_level": "info", "chart": "statechart"},
    **{"agent_id": "a1", "state": "idle", "trigger": "decide", "context": {"post_id": "p1"}},
    **{"options": ["composing", "resting"], "chosen": "resting", "source": "policy"},
    **{"reason": None, "probabilities": None},
}


class Asks:
    """A reasoner that has another one decide, within its own task or in one that it starts."""

    def __init__(self, *, in_a_task: bool) -> None:
        self.in_a_task = in_a_task

    async def decide(self, *question: Any) -> Any:
        answer = PolicyReasoner().decide(*question)
        return await (asyncio.ensure_future(answer) if self.in_a_task else answer)


@pytest.mark.parametrize(
    "reasoner",
    [Chooser(S.RESTING), Chooser("resting"), Asks(in_a_task=True), Asks(in_a_task=False)],
)
async def test_a_decision_is_announced_once_and_before_its_transition(
    reasoner: Any, events: list[Any]
) -> None:
    """By the reasoner, by the one that it asks, or in place of one that only has ``decide``."""
    moves = [Transition("decide", S.IDLE, target) for target in (S.COMPOSING, S.RESTING)]
    chart, agent = chart_of(*moves, decision_states=(S.IDLE,)), StateOnly(agent_id="a1")
    await chart.afire(agent, "decide", Post("p1"), reasoner=reasoner)
    assert [entry["event"] for entry in events] == ["reasoner.decision", "statechart.transition"]
    assert isinstance(reasoner, Asks) or events[0] == EVENT


# Answers that no longer apply


async def test_guards_are_evaluated_again_when_the_answer_comes(
    decider: Any, events: list[Any]
) -> None:
    """Another transition to the chosen target is made if one passes; else the answer is lost."""

    def unready() -> None:
        decider.ready = False

    chart, reasoner = decision_chart(), Chooser(S.COMPOSING, meanwhile=unready)
    assert await chart.afire(decider, "decide", reasoner=reasoner) is S.COMPOSING
    assert decider.done == ["compose anyway"]

    decider.state, decider.ready = S.IDLE, True
    moves = [each for each in chart.transitions if each.guard or each.target is S.RESTING]
    chart = chart_of(*moves, decision_states=(S.IDLE,))
    assert await chart.afire(decider, "decide", reasoner=reasoner) is None
    assert (decider.state, decider.done) == (S.IDLE, ["compose anyway"])
    (lost,) = [each for each in events if each["event"] == "statechart.answer_discarded"]
    assert (lost["chosen"], lost["reason"]) == ("composing", "not_enabled")


def notes_later(agent: Any, context: Any) -> Any:
    """Action: as a lambda does that calls an async function."""

    async def note() -> None:
        await asyncio.sleep(0)
        agent.notes.append(agent.state)

    return note()


FLAT = Statechart(S, [Transition("go", S.IDLE, S.RESTING, action=notes_later)], S.IDLE, name="c")
NESTED = Statechart(
    [S.IDLE, State(S.RESTING, [S.SCROLLING], entry=notes_later)],
    [Transition("go", S.IDLE, S.RESTING)],
    S.IDLE,
    name="c",
)


@pytest.mark.parametrize(
    "fire", [FLAT.fire, lambda agent, event: FLAT.machine.events[event].trigger(agent), NESTED.fire]
)
def test_an_action_that_returns_a_coroutine_has_failed(
    fire: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would await it, and nothing of it has run."""
    agent = StateOnly(notes=[], agent_id="ada")
    assert fire(agent, "go")
    assert agent.notes == []
    assert "returned the coroutine" in caplog.text


def test_a_guard_that_returns_a_coroutine_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    """It would count as passed, whatever it finds."""
    chart = Statechart(S, [Transition("go", S.IDLE, S.RESTING, notes_later)], S.IDLE)
    for fires in (chart.fire, chart.fire_to, chart.enabled_targets):
        arguments = [S.RESTING] if fires == chart.fire_to else []
        assert not fires(StateOnly(agent_id="ada"), "go", *arguments)
    assert caplog.text.count("a guard returned the coroutine") >= 3
