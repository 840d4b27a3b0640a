"""Attributes of an agent that have the names of prism's fields, and hold something else."""

import asyncio
from collections import deque
from copy import copy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from prism import Model, Reasoner
from prism.agents import SocialAgent
from prism.statechart import (
    AgentState,
    History,
    PolicyReasoner,
    State,
    Statechart,
    StateTransition,
    Transition,
)

S = AgentState
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
