"""Types of tests that use the plugin, as users see them; checked by test_typing.py, never run."""

from typing import assert_type

from prism.agents import SocialAgent
from prism.reasoner import BaseReasoner, Question
from prism.statechart import AgentState, Statechart
from prism.testing import (
    AgentMaker,
    Exploration,
    FakeOllama,
    FakeOpenAI,
    Fault,
    FrozenClock,
    LateReasoner,
    RecordingReasoner,
    ScriptedReasoner,
    ScriptedWriter,
    ScriptMaker,
    TransitionLog,
    WriterMaker,
    assert_path,
    explore,
)


async def test_ada(
    social_chart: Statechart[AgentState],
    make_agent: AgentMaker,
    scripted_reasoner: ScriptMaker,
    scripted_writer: WriterMaker,
    transition_log: TransitionLog,
    fake_ollama: FakeOllama,
    fake_openai: FakeOpenAI,
    frozen_clock: FrozenClock,
) -> None:
    """The fixtures and what they make have the types that prism.testing names."""
    ada = make_agent("ada", interests=["travel"])
    reasoner = scripted_reasoner(["engaging_like"])
    assert_type(ada, SocialAgent)
    assert_type(reasoner, ScriptedReasoner)
    assert_type(scripted_writer(["a text", {"n": 1}]), ScriptedWriter)
    assert_type(scripted_writer({"see": "a text", "act": ["one", "two"]}), ScriptedWriter)
    assert_type(scripted_writer(lambda call: call.prompt), ScriptedWriter)
    assert_type(await social_chart.afire(ada, "decides", reasoner=reasoner), AgentState | None)
    assert_path(ada, "idle > scrolling")
    assert_path(ada, [AgentState.IDLE, AgentState.SCROLLING])
    assert_type(transition_log.transitions(ada), list[tuple[str, str, str]])
    assert_type(fake_ollama.url, str)
    assert_type(fake_openai.url, str)
    fake_ollama.fail(Fault.hang())
    frozen_clock.tick()
    assert_type(explore(social_chart, lambda: SocialAgent("bo")), type[Exploration])

    late = LateReasoner(reasoner, concurrency=2, seed=1)
    assert_type(late.reasoner, BaseReasoner)
    assert_type(RecordingReasoner(late).questions, list[Question])
