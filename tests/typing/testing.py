"""What type checkers say of tests that use the plugin. Checked by tests/test_typing.py, never run."""

from typing import assert_type

from prism.agents import SocialAgent
from prism.statechart import AgentState, Statechart
from prism.testing import (
    AgentMaker,
    Exploration,
    FakeOllama,
    Fault,
    FrozenClock,
    ScriptedReasoner,
    ScriptMaker,
    TransitionLog,
    assert_path,
    explore,
)


async def test_ada(
    social_chart: Statechart[AgentState],
    make_agent: AgentMaker,
    scripted_reasoner: ScriptMaker,
    transition_log: TransitionLog,
    fake_ollama: FakeOllama,
    frozen_clock: FrozenClock,
) -> None:
    ada = make_agent("ada", interests=["travel"])
    reasoner = scripted_reasoner(["engaging_like"])
    assert_type(ada, SocialAgent)
    assert_type(reasoner, ScriptedReasoner)
    assert_type(await social_chart.afire(ada, "decides", reasoner=reasoner), AgentState | None)
    assert_path(ada, "idle > scrolling")
    assert_path(ada, [AgentState.IDLE, AgentState.SCROLLING])
    assert_type(transition_log.moves(ada), list[tuple[str, str, str]])
    assert_type(fake_ollama.url, str)
    fake_ollama.fail(Fault.hang())
    frozen_clock.tick()
    assert_type(explore(social_chart, lambda: SocialAgent("bo")), type[Exploration])
