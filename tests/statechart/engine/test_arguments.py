"""Calls that cannot be meant."""

import asyncio
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import PolicyReasoner
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition

S = AgentState
POST = {"post_id": "p1"}
REASONER = PolicyReasoner(seed=1)


class Post:
    """Something that an event is about."""


class Event(StrEnum):
    """Triggers as an enum of their own."""

    GO = "go"
    NONE = "nothing"


class Name(Enum):
    """An enum that is no text."""

    GO = "go"


@pytest.fixture
def chart() -> Statechart[S]:
    """Return a chart with one move out of IDLE, which may be ambiguous."""
    return Statechart(
        S,
        [Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.IDLE, S.RESTING)],
        S.IDLE,
        decision_states=[S.IDLE],
    )


@pytest.fixture
def agent() -> SimpleNamespace:
    """Return an agent that has not moved."""
    return SimpleNamespace(state=S.IDLE, state_history=[], ticks_in_state=4)


def call(chart: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Call ``fire`` or ``afire`` of a chart."""
    if method == "fire":
        return chart.fire(*args, **kwargs)
    return asyncio.run(chart.afire(*args, **kwargs, reasoner=REASONER))


RIGHT = {
    "fire": "write chart.fire(agent, 'go', context)",
    "afire": "write await chart.afire(agent, 'go', context, reasoner=reasoner)",
}


@pytest.mark.parametrize("method", RIGHT)
@pytest.mark.parametrize("context", [None, POST, Post(), S.IDLE])
def test_a_current_state_is_refused_by_name_and_by_place(
    method: str, context: Any, chart: Statechart[S], agent: SimpleNamespace
) -> None:
    """A call that gives a state as well gets an error with the right call."""
    for args, kwargs in [
        ((), {"trigger": "go", "current_state": S.IDLE, "agent": agent, "context": context}),
        ((agent, "go"), {"current_state": S.IDLE}),
        ((agent, "go", context), {"current_state": None}),
        (("go", S.IDLE, agent, context), {}),
        (("go", S.IDLE, agent), {"current_state": context}),
        ((agent, "go", S.IDLE, context), {}),
        ((S.IDLE, "go", agent, context), {}),
    ]:
        with pytest.raises(
            TypeError, match=rf"^{method} takes no current state: the agent knows"
        ) as caught:
            call(chart, method, *args, **kwargs)
        assert str(caught.value).endswith(RIGHT[method])
    assert vars(agent) == {"state": S.IDLE, "state_history": [], "ticks_in_state": 4}


@pytest.mark.parametrize("method", RIGHT)
@pytest.mark.parametrize("rest", [(S.IDLE,), (S.IDLE, "agent"), ("agent",), ("agent", POST)])
def test_a_text_is_no_agent(
    method: str, rest: tuple[Any, ...], chart: Statechart[S], agent: SimpleNamespace
) -> None:
    """A trigger in the agent's place is told the call to write, with that trigger."""
    args = [agent if item == "agent" else item for item in rest]
    with pytest.raises(
        AgentError, match=r"cannot drive the text 'go': .* write chart.fire\(agent, 'go', context\)"
    ):
        call(chart, method, "go", *args)
    with pytest.raises(
        AgentError, match=r"cannot drive the text <AgentState.IDLE: 'idle'>: the agent comes first"
    ):
        call(chart, method, S.IDLE, *args)
    assert agent.state is S.IDLE


@pytest.mark.parametrize("drive", ["fire", "afire", "fire_to", "enabled_targets"])
@pytest.mark.parametrize(
    "args", [(S.IDLE, "go"), (POST, "go"), (Post(), "go"), (3, "go"), (None, "go"), (Name.GO, "go")]
)
def test_what_stands_before_its_trigger_is_refused(
    drive: str, args: tuple[Any, Any], chart: Statechart[S], agent: SimpleNamespace
) -> None:
    """A state or a context in the trigger's place is refused by everything that takes a trigger."""
    misplaced, trigger = args
    calls = {
        "fire": lambda: chart.fire(agent, misplaced, trigger),
        "afire": lambda: asyncio.run(chart.afire(agent, misplaced, trigger, reasoner=REASONER)),
        "fire_to": lambda: chart.fire_to(agent, misplaced, S.RESTING, trigger),
        "enabled_targets": lambda: chart.enabled_targets(agent, misplaced, trigger),
    }
    message = (
        r"the trigger must be the name of an event, got .* write chart.fire\(agent, 'go', context\)"
    )
    with pytest.raises(TypeError, match=message):
        calls[drive]()
    assert agent.state is S.IDLE


@pytest.mark.parametrize("drive", ["fire", "afire", "fire_to", "enabled_targets", "explain"])
def test_a_states_text_before_a_trigger_is_refused(drive: str, chart: Statechart[S]) -> None:
    """An agent's text state before the trigger gets an error with the right call."""
    agent = SimpleNamespace(state="idle")
    calls = {
        "fire": lambda: chart.fire(agent, agent.state, "go"),
        "afire": lambda: asyncio.run(chart.afire(agent, agent.state, "go", reasoner=REASONER)),
        "fire_to": lambda: chart.fire_to(agent, agent.state, S.RESTING, "go"),
        "enabled_targets": lambda: chart.enabled_targets(agent, agent.state, "go"),
        "explain": lambda: chart.explain(agent, agent.state, "go"),
    }
    message = (
        r"the trigger must be the name of an event, got 'idle'; .* "
        r"write chart.fire\(agent, 'go', context\)"
    )
    with pytest.raises(TypeError, match=message):
        calls[drive]()
    assert agent.state == "idle"


@pytest.mark.parametrize(
    ("trigger", "context"),
    [
        ("idle", None),
        ("idle", "about"),
        ("idle", ["go"]),
        ("nothing", "go"),
        ("go", "idle"),
        ("go", "go"),
    ],
)
def test_a_text_that_may_be_meant_passes(trigger: str, context: Any, chart: Statechart[S]) -> None:
    """A state's text is refused only before a trigger of the chart."""
    agent = SimpleNamespace(state="idle")
    assert chart.fire(agent, trigger, context) is (S.SCROLLING if trigger == "go" else None)


def test_a_chart_may_name_events_as_its_states(agent: SimpleNamespace) -> None:
    """A state's text that is a trigger of the chart is one, whatever comes with it."""
    chart = Statechart(
        S, [Transition("resting", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE)], S.IDLE
    )
    assert chart.fire(agent, "resting", "go") is S.RESTING
    assert chart.fire(agent, "resting", "go") is None


@pytest.mark.parametrize("context", [{}, {"context": POST}])
def test_afire_without_a_reasoner_is_told_the_call(
    context: dict[str, Any], chart: Any, agent: SimpleNamespace
) -> None:
    """A call of afire without a reasoner gets an error with the right call, in every state."""
    for state in (S.IDLE, S.RESTING):
        agent.state = state
        for args in ((agent, "go"), ("go", agent)):
            with pytest.raises(
                TypeError, match=r"^afire needs a reasoner; the agent comes first"
            ) as caught:
                asyncio.run(chart.afire(*args, **context))
            assert str(caught.value).endswith(RIGHT["afire"])
        with pytest.raises(TypeError, match=r"^afire takes no current state") as caught:
            asyncio.run(chart.afire(trigger="go", current_state=state, agent=agent, **context))
        assert str(caught.value).endswith(RIGHT["afire"])
        assert agent.state is state


def test_a_state_alone_is_no_trigger(chart: Statechart[S], agent: SimpleNamespace) -> None:
    """A state of the chart in the trigger's place is refused also without a context."""
    with pytest.raises(
        TypeError, match=r"must be the name of an event, got <AgentState\.SCROLLING"
    ):
        chart.fire(agent, S.SCROLLING)


def test_a_trigger_may_be_of_an_enum(chart: Statechart[S], agent: SimpleNamespace) -> None:
    """Triggers of a text enum are triggers, those that do not apply included."""
    assert chart.fire(agent, Event.NONE, "about") is None
    assert chart.fire(agent, Event.GO, "about") is S.SCROLLING


def test_a_trigger_may_be_a_state_where_the_chart_says_so(agent: SimpleNamespace) -> None:
    """A chart whose events are named by states takes its own states as triggers, in every state."""
    chart = Statechart(S, [Transition(S.RESTING, S.IDLE, S.RESTING)], S.IDLE)
    assert chart.fire(agent, S.RESTING) is S.RESTING
    assert chart.fire(agent, S.RESTING) is None
    assert chart.enabled_targets(agent, S.RESTING) == []


def test_an_action_is_told_as_well(agent: SimpleNamespace) -> None:
    """A wrong call inside an action is the action's fault: logged, or raised by a strict chart."""
    told = []

    def again(agent: Any, context: Any) -> None:
        try:
            chart.fire(trigger="go", current_state=agent.state, agent=agent)  # type: ignore[arg-type]
        except TypeError as error:
            told.append(str(error))

    chart = Statechart(S, [Transition("go", S.IDLE, S.RESTING, action=again)], S.IDLE)
    assert chart.fire(agent, "go") is S.RESTING
    assert [message.endswith(RIGHT["fire"]) for message in told] == [True]


def test_a_state_that_cannot_be_read_is_told_from_one_that_is_missing(chart: Statechart[S]) -> None:
    """An object whose class has a state that fails says why, one without any says how to get it."""

    class Broken:
        @property
        def state(self) -> Any:
            raise AttributeError("no mood today")

    with pytest.raises(
        AgentError, match=r"cannot drive 'Broken': its 'state' cannot be read \(no mood today\)"
    ):
        chart.fire(Broken(), "go")
    with pytest.raises(
        AgentError, match=r"cannot drive 'Post': it has no 'state'; give it one, call chart.adopt"
    ):
        chart.fire(Post(), "go")


def test_what_has_no_state_is_told_a_way_that_works(chart: Statechart[S]) -> None:
    """The advice for frozen values and pydantic models works: both can be driven afterwards."""

    @dataclass(frozen=True)
    class Stone:
        name: str = "Ada"

    class Model(BaseModel):
        name: str = "Ada"

    class Declared(Model):
        state: S = S.IDLE

    class Holder(StatechartMixin):
        def __init__(self, held: Stone) -> None:
            self.held = held

    with pytest.raises(
        AgentError,
        match=r"it has no 'state'; .*; if it is frozen, keep it in a field of an agent",
    ):
        chart.fire(Stone(), "go")
    assert chart.fire(Holder(Stone()), "go") is S.SCROLLING
    with pytest.raises(
        AgentError, match=r"'Model': it has no 'state'; declare one as a field of the model; if"
    ) as caught:
        chart.fire(Model(), "go")
    assert "derive" not in str(caught.value)
    assert chart.fire(Declared(), "go") is S.SCROLLING
