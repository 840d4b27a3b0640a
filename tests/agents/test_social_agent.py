"""The agent of a social media simulation, and its JSON."""

import copy
import json
import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import ARCHETYPES, SocialAgent
from prism.errors import FieldValueError
from prism.statechart import AgentState, StateTransition, social_media_chart
from prism.testing import ScriptedReasoner
from tests.kit.charts import ANY

S = AgentState


@dataclass
class Post:
    """A post of another simulation."""

    topics: list[str]
    text: str = ""


@pytest.mark.parametrize(("threshold", "state"), [(0.0, S.COMPOSING), (1.0, S.SCROLLING)])
async def test_decide_is_afire(threshold: float, state: S) -> None:
    """``decide`` asks the reasoner if several transitions of the chart are enabled."""
    agent = SocialAgent("ada", state=S.EVALUATING, engagement_threshold=threshold)
    chart, reasoner = social_media_chart(), ScriptedReasoner({"decides": S.COMPOSING})
    moved = await agent.decide(Post(["art"]), chart=chart, reasoner=reasoner)
    assert moved is agent.state is state
    assert len(reasoner.questions) == (threshold == 0.0)


def test_an_agent_needs_only_an_id() -> None:
    """Its name is the id, and it has neither persona nor plans."""
    agent = SocialAgent("agent_001")
    assert SocialAgent("ann", attributes={"age": 4}).to_dict()["attributes"] == {"age": 4}
    assert (agent.name, agent.interests, agent.personality) == ("agent_001", [], "")
    assert (agent.archetype, agent.following) == (None, ())
    assert (agent.pending_action, agent.random) == (None, None)
    assert repr(agent) == "SocialAgent('agent_001', state='idle')"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"agent_id": ""}, "agent_id must be a non-empty string, got ''"),
        ({"agent_id": 7}, "agent_id must be a non-empty string, got 7"),
        ({"interests": "tea"}, "must be a list of strings, got the text 'tea'"),
        ({"following": "bob"}, "following must be a list of strings, got the text"),
        ({"archetype": "troll"}, "archetype must be one of .'lurker', "),
    ],
)
def test_an_invalid_persona_is_a_value_error(fields: dict[str, Any], message: str) -> None:
    """Invalid ids, interests, follows and archetypes are refused with what to write instead."""
    with pytest.raises(FieldValueError, match=message):
        SocialAgent(**{"agent_id": "a", **fields})


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (0.6, True),
        (0.59, False),
        ({"topics": ["music"]}, True),
        (Post(["football"], "a word on music"), False),
        (None, False),
    ],
)
def test_engagement_begins_at_the_threshold(context: Any, expected: bool) -> None:
    """An agent engages if a number, mapping or post is at least as relevant as its threshold."""
    agent = SocialAgent("a", interests=["music"], engagement_threshold=0.6)
    assert agent.should_engage(context) is expected


def test_an_archetype_sets_the_thresholds() -> None:
    """An archetype, or its name, sets both thresholds."""
    for kind in ARCHETYPES.values():
        for agent in (SocialAgent("a", archetype=kind), SocialAgent("a", archetype=kind.name)):
            thresholds = (agent.engagement_threshold, agent.timeout_threshold)
            assert thresholds == (kind.engagement_threshold, kind.timeout_threshold)


# spec/data-model.md, Serialization
EXPORT = """{
  "agent_id": "agent_001",
  "current_state": "evaluating",
  "ticks_in_state": 2,
  "state_history": [
    {
      "from_state": "idle",
      "to_state": "scrolling",
      "trigger": "feed_ready",
      "timestamp": "2026-01-30T10:00:00Z",
      "context": null
    },
    {
      "from_state": "scrolling",
      "to_state": "evaluating",
      "trigger": "sees_post",
      "timestamp": "2026-01-30T10:00:01Z",
      "context": {"post_id": "post_123"}
    }
  ]
}"""

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
json_values = scalars | st.text(ANY, max_size=8) | st.lists(st.text(ANY, max_size=8), max_size=3)
records = st.builds(
    StateTransition,
    from_state=st.just(S.IDLE),
    to_state=st.sampled_from([state for state in S if state is not S.IDLE]),
    trigger=st.text(ANY, min_size=1, max_size=12),
    timestamp=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)),
    context=st.none() | st.dictionaries(st.text(ANY, max_size=8), json_values, max_size=3),
)
agents = st.builds(
    SocialAgent,
    agent_id=st.text(ANY, min_size=1, max_size=12),
    state=st.sampled_from(S),
    ticks_in_state=st.integers(0, 10**6),
    state_history=st.lists(records, max_size=6),
)


def test_the_export_has_the_shape_of_the_data_model() -> None:
    """The example of the data model is written with the same keys in order."""
    start = datetime(2026, 1, 30, 10, 0, tzinfo=UTC)
    history = [
        StateTransition(S.IDLE, S.SCROLLING, "feed_ready", start),
        StateTransition(
            *(S.SCROLLING, S.EVALUATING, "sees_post", start + timedelta(seconds=1)),
            {"post_id": "post_123"},
        ),
    ]
    agent = SocialAgent("agent_001", state=S.EVALUATING, ticks_in_state=2, state_history=history)
    assert json.dumps(agent.to_dict()) == json.dumps(json.loads(EXPORT))
    assert json.dumps(json.loads(agent.to_json())) == json.dumps(json.loads(EXPORT))


@given(agents)
def test_what_is_exported_can_be_read(agent: SocialAgent) -> None:
    """The JSON of any agent has its state and ticks, and its records are read back, or copied."""
    data = json.loads(agent.to_json())
    told = (data["agent_id"], S(data["current_state"]), data["ticks_in_state"])
    assert told == (agent.agent_id, agent.state, agent.ticks_in_state)
    for entry, record in zip(agent.state_history, data["state_history"], strict=True):
        pickled = pickle.loads(pickle.dumps(entry))
        for twin in (StateTransition.from_dict(record, S), pickled, copy.deepcopy(entry)):
            assert (twin, hash(twin), twin.to_dict()) == (entry, hash(entry), entry.to_dict())
