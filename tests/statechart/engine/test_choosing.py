"""Choosing a transition: the first candidate whose guard passes."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import UnknownStateError
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import Post, chart_of

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


def test_guards_and_actions_get_agent_and_context(agent: Any) -> None:
    """Guards and actions are called with the agent and the very object given as context."""
    seen: list[Any] = []

    def note(*given: Any) -> bool:
        seen.append(given)
        return True

    chart = chart_of(Transition("go", S.IDLE, S.RESTING, note, note))
    post = Post("p1")
    chart.fire(agent, "go", post)
    assert all(given[0] is agent and given[1] is post for given in seen)
    assert len(seen) == 2


def via_afire(chart: Any, agent: Any) -> Any:
    return asyncio.run(chart.afire(agent, "go", reasoner=Chooser(None)))


@pytest.mark.parametrize(
    "drive",
    [
        lambda chart, agent: chart.fire(agent, "go"),
        lambda chart, agent: chart.fire_to(agent, "go", S.RESTING),
        lambda chart, agent: chart.enabled_targets(agent, "go"),
        lambda chart, agent: chart.tick(agent),
        via_afire,
    ],
)
@pytest.mark.parametrize("state", ["flying", S.COMPOSING, None])
def test_unknown_state_is_an_error(drive: Any, state: Any) -> None:
    """A state outside the chart is a ValueError that lists the states, and nothing has changed."""
    chart = Statechart([S.IDLE, S.RESTING], [Transition("go", S.IDLE, S.RESTING)], S.IDLE, name="c")
    agent = SimpleNamespace(state=state, agent_id="a1", ticks_in_state=1)
    message = re.escape(
        f"agent 'a1' is in state {state!r}, which is not in chart 'c': use one of idle, resting"
    )
    with pytest.raises(ValueError, match=message) as caught:
        drive(chart, agent)
    assert isinstance(caught.value, UnknownStateError)
    assert (agent.state, agent.ticks_in_state) == (state, 1)
