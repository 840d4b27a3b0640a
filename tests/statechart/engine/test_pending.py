"""Asking a reasoner, and answers that come too late."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
import structlog
from hypothesis import assume, given
from hypothesis import strategies as st
from structlog.testing import LogCapture

from prism.errors import ReasonerError
from prism.statechart import PolicyReasoner, State
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


def leave(chart: Any, agent: Any) -> None:
    chart.fire(agent, "look")


def leave_and_come_back(chart: Any, agent: Any) -> None:
    chart.fire(agent, "look")
    chart.fire(agent, "look")


@pytest.mark.parametrize(
    ("meanwhile", "now_in", "bare"),
    [
        (leave, S.EVALUATING, True),
        (leave, S.EVALUATING, False),
        (leave_and_come_back, S.IDLE, False),
    ],
)
async def test_a_stale_answer_is_discarded(
    decider: Any, bare: bool, meanwhile: Any, now_in: S, events: list[Any]
) -> None:
    """An answer for an agent that moved meanwhile, even back, is discarded with a warning."""
    chart = decision_chart(name="c")
    agent = StateOnly(ready=True, done=[], agent_id="a1") if bare else decider
    chart.fire(type(agent)(), "look")
    reasoner = Chooser(S.COMPOSING, meanwhile=lambda: meanwhile(chart, agent))
    assert await chart.afire(agent, "decide", reasoner=reasoner) is None
    assert agent.state is now_in
    assert agent.done == []
    assert [entry for entry in events if entry["log_level"] == "warning"] == [
        {
            "event": "statechart.answer_discarded",
            "log_level": "warning",
            "chart": "c",
            "agent_id": "a1",
            "trigger": "decide",
            "asked_in": "idle",
            "now_in": now_in.value,
            "chosen": "composing",
            "reason": "moved",
        }
    ]


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

TRUTHS = st.sampled_from([True, False, "raise"])
TARGETS = (S.SCROLLING, S.COMPOSING, S.RESTING)


def guard_number(number: int) -> Any:
    """Make a guard whose outcome stands in the agent's ``truths``."""

    def guard(agent: Any, context: Any) -> bool:
        if agent.truths[number] == "raise":
            raise LookupError(number)
        return bool(agent.truths[number])

    return guard


def guarded_chart(targets: Sequence[S], logger: Any) -> Statechart[S]:
    """Make a chart that decides among targets, each behind a guard of its own."""
    moves = [
        Transition("decide", S.IDLE, target, guard_number(number))
        for number, target in enumerate(targets)
    ]
    return chart_of(*moves, decision_states=(S.IDLE,), logger=logger, name="c")


def discarded(entries: Sequence[Any]) -> list[tuple[str, str, str, str]]:
    """Return where the agents of discarded answers were asked and are, what, and why."""
    return [
        (entry["asked_in"], entry["now_in"], entry["chosen"], entry["reason"])
        for entry in entries
        if entry["event"] == "statechart.answer_discarded"
    ]


@given(st.data(), st.lists(st.sampled_from(TARGETS), min_size=2, max_size=4))
async def test_a_decision_is_made_if_a_guard_of_the_chosen_target_still_passes(
    data: st.DataObject, targets: list[S]
) -> None:
    """Whatever guards say meanwhile, those of the chosen target decide when the answer comes.

    With two guards or more that pass when the reasoner is asked.
    """
    before, after = (data.draw(st.tuples(*[TRUTHS] * len(targets))) for _ in range(2))
    # the first guard of two targets passes, so that there is something to ask
    passing = [targets.index(target) for target in dict.fromkeys(targets)][:2]
    before = tuple(True if number in passing else it for number, it in enumerate(before))
    options = {
        target: number
        for number, target in reversed([*enumerate(targets)])
        if before[number] is True
    }
    assume(len(options) > 1)
    chosen = data.draw(st.sampled_from(sorted(options)))
    capture = LogCapture()
    chart = guarded_chart(targets, structlog.wrap_logger(None, processors=[capture]))
    agent = StateOnly(truths=before)

    reasoner = Chooser(chosen, meanwhile=lambda: setattr(agent, "truths", after))
    moved = await chart.afire(agent, "decide", reasoner=reasoner)

    passes = any(after[at] is True for at, target in enumerate(targets) if target is chosen)
    assert moved is (chosen if passes else None)
    assert agent.state is (chosen if passes else S.IDLE)
    lost = [("idle", "idle", chosen.value, "not_enabled")]
    assert discarded(capture.entries) == ([] if passes else lost)


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
