"""Tests of what a test hands to code in place of the real thing."""

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.reasoner import PolicyReasoner, Question
from prism.statechart import AgentState, social_media_chart
from prism.telemetry import instrumented
from prism.testing import (
    AgentMaker,
    FrozenClock,
    LateReasoner,
    RecordingReasoner,
    ScriptedReasoner,
    TransitionLog,
)

S = AgentState
OPTIONS = (S.COMPOSING, S.SCROLLING)


def test_agents_are_made_with_fields() -> None:
    """Fields of the agent can be set, and interests have a default; an empty id is refused."""
    agent = AgentMaker()("ada", interests=["travel"], state=AgentState.RESTING)
    assert (agent.interests, agent.state) == (["travel"], AgentState.RESTING)
    assert AgentMaker()().interests == ["music"]
    with pytest.raises(FieldValueError, match="agent_id must be a non-empty string"):
        AgentMaker()("")


def test_time_passes_only_when_the_test_moves_it() -> None:
    """The clock is moved by ticks, seconds or a timedelta, or set; without a zone it is in UTC."""
    clock = FrozenClock()
    assert clock() == clock() == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    clock.tick()
    clock.tick(2)
    clock.advance(1.5)
    clock.advance(timedelta(hours=1))
    assert clock.now == datetime(2026, 1, 1, 1, 3, 1, 500_000, tzinfo=UTC)
    clock.at(datetime(1999, 12, 31))
    assert clock.now == datetime(1999, 12, 31, tzinfo=UTC)
    there = FrozenClock(datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    assert there.now == datetime(2030, 1, 1, 10, tzinfo=UTC)


MOVES = [
    ("idle", "feed_ready", "scrolling"),
    ("scrolling", "sees_post", "evaluating"),
    ("evaluating", "decides", "engaging_like"),
]


async def live(name: str = "ada", **settings: Any) -> SocialAgent:
    """Let an agent move twice and then decide."""
    chart, agent = social_media_chart(**settings), SocialAgent(name, interests=["music"])
    chart.fire(agent, "feed_ready")
    chart.fire(agent, "sees_post", {"post_id": "p1"})
    await chart.afire(agent, "decides", 0.9, reasoner=ScriptedReasoner(["engaging_like"]))
    return agent


async def test_events_are_recorded_without_structlog(capsys: pytest.CaptureFixture[str]) -> None:
    """Transitions and decisions are recorded and not printed; a log that ended hears no more."""
    with instrumented(log := TransitionLog()):
        agent = await live()
        await live("bo")
    await live("cy")
    assert log.transitions(agent) == log.transitions("ada") == log.transitions("bo") == MOVES
    (decision,) = [event for event in log.of(agent) if event["event"] == "reasoner.decision"]
    assert decision["chosen"] == "engaging_like"
    assert len(log.named("reasoner.decision")) == 2
    assert log.named("statechart.transition")[1]["context"] == {"post_id": "p1"}
    assert log.of("cy") == []
    assert capsys.readouterr() == ("", "")


def test_agent_can_be_given_itself_or_by_id() -> None:
    """An agent is given itself, with or without an id, or by its id, which may be a number."""
    chart = social_media_chart()
    seven, nameless = SimpleNamespace(state="idle", unique_id=7), SimpleNamespace(state="idle")
    with instrumented(log := TransitionLog()):
        for agent in (seven, nameless):
            chart.fire(agent, "feed_ready")
    for agent in (seven, 7, "7", nameless, SimpleNamespace(unique_id=7)):
        assert log.transitions(agent) == MOVES[:1]
    assert log.transitions(8) == []


def crowd(size: int) -> list[Question]:
    """Return a question to each of several agents."""
    return [
        Question(SimpleNamespace(agent_id=f"a{number}"), S.EVALUATING, "decides", OPTIONS)
        for number in range(size)
    ]


@pytest.mark.parametrize("kind", [RecordingReasoner, LateReasoner])
async def test_answers_are_those_of_the_wrapped_reasoner(kind: type[RecordingReasoner]) -> None:
    """A wrapper answers like the wrapped reasoner, by default the policy."""
    wanted = await PolicyReasoner(3).decide_many(crowd(20))
    assert await kind(PolicyReasoner(3)).decide_many(crowd(20)) == wanted
    assert await kind().decide_many(crowd(20)) == await PolicyReasoner().decide_many(crowd(20))


async def test_questions_are_recorded_by_call() -> None:
    """All of every call are kept, as many at once as the wrapped reasoner takes."""
    recording, (first, second, third) = RecordingReasoner(), crowd(3)
    await recording.decide_many([first, second])
    await recording.decide_many([third])
    assert recording.batches == [(first, second), (third,)]
    assert recording.questions == [first, second, third]
    assert RecordingReasoner(LateReasoner(concurrency=7)).concurrency == 7
    assert RecordingReasoner().concurrency == 0


async def test_late_answers_overtake_each_other_in_the_same_way_for_a_seed() -> None:
    """The wrapped reasoner is asked in another order, which depends on the seed alone."""
    orders = []
    for seed in (1, 1, 2):
        late = LateReasoner(inner := RecordingReasoner(), seed=seed)
        await late.decide_many(crowd(20))
        orders.append([question.agent.agent_id for question in inner.questions])
    asked = [question.agent.agent_id for question in late.questions]
    assert asked == sorted(asked, key=lambda name: int(name[1:]))
    assert orders[0] == orders[1] != orders[2]
    assert asked not in orders
