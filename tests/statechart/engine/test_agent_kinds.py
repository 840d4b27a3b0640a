"""Any kind of object with a state can be driven; its own things stay its own."""

import asyncio
import itertools
from collections import deque, namedtuple
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import numpy as np
import pydantic
import pytest

from prism import Model, Reasoner
from prism.agents import SocialAgent
from prism.errors import AgentError
from prism.reasoner import PolicyReasoner
from prism.statechart import AgentState, History, State, Statechart, StateTransition, Transition
from prism.testing import assert_path
from tests.kit.moves import Post, StateOnly, chart_of, moves_of

S = AgentState


@dataclass(slots=True)
class Slots:
    state: S = S.IDLE


@dataclass(slots=True)
class SlotRecord:
    state: S = S.IDLE
    ticks_in_state: int = 3


@dataclass
class Text:
    state: str = "idle"
    ticks_in_state: int = 3
    state_history: Any = field(default_factory=lambda: deque(maxlen=9))


class Validated(pydantic.BaseModel):
    state: S = S.IDLE
    ticks_in_state: int = 3


class OwnAgent:
    """Keeps its own records, as an agent class written before this library may."""

    def __init__(self) -> None:
        self.state: Any = S.IDLE
        self.ticks_in_state = 3
        self.state_history: list[Any] = []
        self.moves: list[Any] = []

    def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
        self.moves.append((self.state, new_state, trigger, context))
        self.state = new_state


@pytest.mark.parametrize("make", [Slots, SlotRecord, StateOnly, Text, Validated])
def test_anything_with_a_state_can_be_driven(make: Any) -> None:
    """Slots, dataclasses, models and plain objects are written in the fields they have."""
    agent = make()
    fields, kind = set(dir(agent)), type(agent.state)
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    for expected in (S.SCROLLING, S.IDLE) * 2:
        assert chart.fire(agent, "go") is expected
        assert agent.state == expected
        # text stays text
        assert type(agent.state) is kind
        assert getattr(agent, "ticks_in_state", 0) == 0
    assert set(dir(agent)) == fields
    if make is Slots:
        with pytest.raises(AgentError, match="Slots has no room for 'ticks_in_state'"):
            chart.adopt(agent)


@pytest.mark.parametrize("kind", [str, np.str_])
@pytest.mark.parametrize("states", [S, [State(S.RESTING, [S.IDLE, S.SCROLLING])]])
def test_a_move_returns_the_member_though_the_state_is_text(states: Any, kind: Any) -> None:
    """So the result can be compared by identity in any chart; the agent's own state stays text."""
    go, late = Transition("go", S.IDLE, S.SCROLLING), Transition("timeout", S.SCROLLING, S.IDLE)
    chart = Statechart(states, [go, late], S.IDLE)
    agent: Any = SimpleNamespace(state=kind("idle"), ticks_in_state=0, timeout_threshold=1)
    assert chart.begin(agent) is S.IDLE
    assert chart.fire(agent, "go") is S.SCROLLING
    assert [chart.tick(agent), chart.tick(agent)] == [None, S.IDLE]
    assert chart.fire_to(agent, "go", S.SCROLLING) is S.SCROLLING
    assert type(agent.state) is str


def test_own_transition_to_is_the_only_write_path(events: list[Any]) -> None:
    """A class with its own transition_to is written only through it."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    agent = OwnAgent()
    assert [chart.fire(agent, "go", Post("p1")) for _ in range(2)] == [S.SCROLLING, S.IDLE]
    assert agent.moves == [
        (S.IDLE, S.SCROLLING, "go", {"post_id": "p1"}),
        (S.SCROLLING, S.IDLE, "go", {"post_id": "p1"}),
    ]
    assert (agent.ticks_in_state, agent.state_history) == (3, [])
    assert [entry["ticks_in_state"] for entry in events] == [3, 3]

    class Restless(OwnAgent):
        def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
            if new_state is S.SCROLLING:
                assert chart.fire(self, "go") is None
            super().transition_to(new_state, trigger, context)

    # a fire meanwhile waits
    assert chart.fire(Restless(), "go") is S.IDLE


def chart_noting(seen: list[Any]) -> Statechart[S]:
    return chart_of(Transition("go", S.IDLE, S.SCROLLING, None, lambda *_: seen.append(1)))


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        (lambda self, new_state: None, "too many positional arguments"),
        (lambda self, state, trigger, context, when: None, "missing a required argument: 'when'"),
    ],
)
def test_a_transition_to_that_cannot_be_called_is_refused(own: Any, problem: str) -> None:
    """The error shows how to define it, and comes before the action runs."""
    message = rf"Odd.transition_to cannot write a transition \({problem}\): define it as  def "
    seen: list[Any] = []
    with pytest.raises(AgentError, match=message):
        chart_noting(seen).fire(type("Odd", (OwnAgent,), {"transition_to": own})(), "go")
    stubborn = type("Stubborn", (OwnAgent,), {"transition_to": lambda *_: None})()
    with pytest.raises(AgentError, match=r"must set self.state to 'scrolling', but it is 'idle'"):
        chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(stubborn, "go")
    late = type("Late", (OwnAgent,), {"transition_to": AsyncMock()})()
    with pytest.raises(AgentError, match="transition_to is async"):
        chart_noting(seen).fire(late, "go")
    assert not seen


def test_a_read_only_field_is_refused_before_the_action_runs() -> None:
    """The error is Python's, and nothing has changed; also if a tick finds it."""

    class FixedState:
        state = property(lambda fixed: S.IDLE)

    class FixedTicks(StateOnly):
        ticks_in_state = property(lambda fixed: 4)

    seen: list[Any] = []
    for agent in (FixedState(), FixedTicks(), namedtuple("named", ["state"])(S.IDLE)):
        with pytest.raises(AttributeError, match=r"has no setter|can't set attribute"):
            chart_noting(seen).fire(agent, "go")
        assert agent.state is S.IDLE
    with pytest.raises(AttributeError, match="has no setter"):
        chart_noting(seen).tick(FixedTicks())
    assert not seen


class Guarded(StateOnly):
    """Refuses to begin a time after it has taken the state, as a validator may."""

    def __setattr__(self, name: str, value: Any) -> None:
        if (name, value) == ("ticks_in_state", 0):
            raise ValueError("never scrolling")
        super().__setattr__(name, value)


def test_a_transition_that_a_field_refuses_is_not_made() -> None:
    """What a field's own code raises propagates, and nothing has changed."""
    agent = Guarded(ticks_in_state=4, state_history=deque([RECORD], maxlen=1))
    with pytest.raises(ValueError, match="never scrolling"):
        chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(agent, "go")
    assert (agent.state, agent.ticks_in_state, [*agent.state_history]) == (S.IDLE, 4, [RECORD])


class Named(StateOnly):
    """An agent whose base class names the id."""

    def __init__(self, number: int) -> None:
        super().__init__(state_only_id=number)


def test_agents_are_told_apart_in_the_log(events: list[Any]) -> None:
    """By an id, which a base class may name; else each by a name that no later object gets."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("back", S.SCROLLING, S.IDLE))

    def drive(make: Any, number: int) -> set[str]:
        alive = [make(each) for each in range(number)]
        for event in ("go", "back"):
            for agent in alive:
                chart.fire(agent, event)
        # those of each end here, and the next one may have its address
        alive.clear()
        for each in range(number, 2 * number):
            chart.fire(make(each), "go")
        names = [event["agent_id"] for event in events]
        assert names[:number] == names[number:-number]
        events.clear()
        return {*names}

    assert drive(Named, 20) == {*map(str, range(40))}
    nameless = type("Nameless", (StateOnly,), {"name": lambda self: "a method"})
    for kind in (nameless, type("Slim", (Slots,), {"__slots__": ()})):
        assert len(drive(lambda _, kind=kind: kind(), 20)) == 40


class Order:
    """Has its state under another name."""

    def __init__(self) -> None:
        self.status = "idle"


LIVE = {"state": property(lambda self: self.status, lambda self, to: setattr(self, "status", to))}


@pytest.mark.parametrize("drive", ["fire", "afire", "tick", "explain"])
async def test_a_state_may_be_a_property(drive: str) -> None:
    """It reads and sets a field of another name; an object without a state has Python's error."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING))
    more: dict[str, Any] = {"reasoner": None} if drive == "afire" else {}
    events = [] if drive == "tick" else ["go"]

    async def driven(agent: Any) -> Any:
        result = getattr(chart, drive)(agent, *events, **more)
        return await result if drive == "afire" else result

    with pytest.raises(AttributeError, match="'Order' object has no attribute 'state'"):
        await driven(Order())
    live: Any = type("Live", (Order,), LIVE)()
    await driven(live)
    assert live.status == ("scrolling" if "fire" in drive else "idle")


def test_adopt_adds_what_is_missing() -> None:
    """An adopted object is the same object with all fields of an agent, in the initial state.

    A copy of it has records of its own.
    """
    agent = SimpleNamespace(name="x", timeout_threshold=9)
    chart = Statechart(S, [Transition("go", S.RESTING, S.IDLE)], S.RESTING)
    assert chart.adopt(agent) is agent
    assert (agent.state, agent.ticks_in_state, agent.timeout_threshold) == (S.RESTING, 0, 9)
    assert chart.fire(agent, "go") is S.IDLE
    twin = copy(agent)
    agent.state = S.RESTING
    chart.fire(agent, "go")
    assert moves_of(twin) == [("resting", "go", "idle")]
    assert (len(agent.state_history), twin.state_history.maxlen) == (2, 50)


RECORD = StateTransition(S.IDLE, S.RESTING, "go", datetime(2026, 1, 1, tzinfo=UTC))

OWN: dict[str, Any] = {
    "a long list": ["moved"] * 200,
    "dicts": [{"from": "idle"}],
    "a full deque": deque(["moved"] * 50, maxlen=50),
    "records before its own": [RECORD, "moved"],
    "records behind its own": ["moved", *[RECORD] * 60],
    "a tuple": (1, 2),
    "a text": "moved",
    "a mapping": {"idle": 3},
    "a mock": MagicMock(),
}


@pytest.mark.parametrize("name", OWN)
def test_a_history_of_its_own_is_left_alone(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The agent moves and ticks, nothing else of it is touched, and one warning says so."""

    class Walker(SimpleNamespace):
        pass

    own, ticks = copy(OWN[name]), {"idle": 3}
    agent = Walker(state=S.IDLE, ticks_in_state=ticks, state_history=own, max_history_depth=50)
    chart = Statechart(
        S,
        [Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE)],
        S.IDLE,
        decision_states=[S.RESTING],
    )
    reasoner = PolicyReasoner(seed=1)
    assert chart.fire(agent, "go") is S.RESTING
    assert asyncio.run(chart.afire(agent, "go", reasoner=reasoner)) is S.IDLE
    chart.tick(agent)
    chart.begin(agent)
    assert agent.state_history is own
    assert agent.ticks_in_state is ticks
    assert name == "a mock" or own == OWN[name]
    (told,) = [each for each in caplog.messages if "Walker.state_history" in each]
    assert "the application's own, so chart.history(agent) has the records" in told
    assert [each.to_state for each in chart.history(agent)] == [S.RESTING, S.IDLE]
    # so is a property that returns a copy
    copies = type("Copies", (), {"state_history": property(lambda _: []), "ticks_in_state": 0})()
    copies.state = S.IDLE
    assert chart.fire(copies, "go") is S.RESTING
    assert len(chart.history(copies)) == 1
    # beside prism's ticks, too
    full = deque(["moved"] * 3, maxlen=3)
    beside = StateOnly(ticks_in_state=0, state_history=full)
    assert [chart.fire(beside, "go") for _ in range(3)] == [S.RESTING, S.IDLE, S.RESTING]
    assert ([*full], len(chart.history(beside))) == (["moved"] * 3, 3)


def test_a_history_has_the_depth_that_its_agent_says_now() -> None:
    """By default 50 records, also in a deque without a bound of its own."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE))
    bare: Any = StateOnly(ticks_in_state=0, state_history=deque())
    for agent, depth in itertools.product([bare, chart.adopt(StateOnly())], [50, 3, 60]):
        if depth != 50:
            agent.max_history_depth = depth
        assert [chart.fire(agent, "go") for _ in range(70)]
        assert len(agent.state_history) == depth


@pytest.mark.parametrize(
    "agent",
    [
        MagicMock(state=S.IDLE),
        Mock(spec=SocialAgent, state=S.IDLE),
        MagicMock(spec=SocialAgent("ada", interests=["tea"]), state=S.IDLE),
    ],
    ids=["magic", "class", "object"],
)
def test_a_mock_is_an_object_with_a_state(agent: Any) -> None:
    """Its other attributes, which are mocks, are no fields and no ``transition_to``."""
    ran: list[Any] = []
    go = Transition("go", S.IDLE, S.RESTING, action=lambda agent, context: ran.append(1))
    chart = Statechart(S, [go], S.IDLE)
    assert chart.fire(agent, "go") is agent.state is S.RESTING
    assert chart.tick(agent) is None
    assert_path(agent, "idle > resting", chart=chart)
    assert (len(ran), len(chart.history(agent)), agent.transition_to.called) == (1, 1, False)


CLIENTS = {
    "any method": AsyncMock(),
    "plain": MagicMock(),
    "spec": AsyncMock(spec=["run"], **{"run.return_value": '{"next_state": "composing"}'}),
    "model": Mock(spec=Model),
    "policy": None,
}


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_mock_decides_and_remembers_as_any_object(client: str) -> None:
    """In a chart with histories and timers, too; a mocked client answers or is replaced."""
    chart = Statechart(
        [S.IDLE, State(S.SCROLLING, [S.EVALUATING, S.COMPOSING]), S.RESTING],
        [
            Transition("go", S.IDLE, History(S.SCROLLING)),
            Transition("next", S.EVALUATING, S.COMPOSING),
            Transition("next", S.EVALUATING, S.RESTING),
            Transition("stop", S.COMPOSING, S.IDLE),
            Transition("slept", S.RESTING, S.IDLE, after=1),
        ],
        S.IDLE,
        decision_states=[S.EVALUATING],
    )
    agent = MagicMock(state=S.IDLE)
    chart.fire(agent, "go", MagicMock())
    asked = CLIENTS[client]
    reasoner = PolicyReasoner(seed=1) if asked is None else Reasoner(asked)
    chosen = await chart.afire(agent, "next", {"post_id": MagicMock()}, reasoner=reasoner)
    assert chosen in ([S.COMPOSING] if client == "spec" else [S.COMPOSING, S.RESTING])
    assert (chart.tick(agent) or chart.fire(agent, "stop")) is S.IDLE
    left = S.EVALUATING if chosen is S.RESTING else chosen
    assert chart.fire(agent, "go") is left
    assert [each.trigger for each in chart.history(agent)][:2] == ["go", "next"]
