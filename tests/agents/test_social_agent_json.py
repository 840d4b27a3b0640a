"""The JSON of a social agent."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import ARCHETYPES, SocialAgent
from prism.errors import FieldValueError
from prism.statechart import AgentState, StateTransition
from tests.kit.texts import ANY

S = AgentState

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

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(ANY, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(ANY, max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
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


def exported(**changes: Any) -> dict[str, Any]:
    return {**json.loads(EXPORT), **changes}


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


def with_record(**changes: Any) -> dict[str, Any]:
    record = {**json.loads(EXPORT)["state_history"][0], **changes}
    return exported(state_history=[record])


def test_the_export_has_the_shape_of_the_data_model() -> None:
    """The example of the data model is read and written back with the same keys in order."""
    agent = SocialAgent.from_dict(json.loads(EXPORT))
    assert (agent.agent_id, agent.state, agent.ticks_in_state) == ("agent_001", S.EVALUATING, 2)
    assert agent.state_history[1].timestamp == datetime(2026, 1, 30, 10, 0, 1, tzinfo=UTC)
    assert json.dumps(agent.to_dict()) == json.dumps(json.loads(EXPORT))
    assert json.dumps(json.loads(agent.to_json())) == json.dumps(json.loads(EXPORT))


@given(agents)
def test_exporting_and_importing_is_a_round_trip(agent: SocialAgent) -> None:
    """The JSON of any agent gives an agent of the same state, ticks and history."""
    again = SocialAgent.from_dict(json.loads(agent.to_json()))
    assert (again.agent_id, again.state, again.ticks_in_state) == (
        agent.agent_id,
        agent.state,
        agent.ticks_in_state,
    )
    assert again.state_history == agent.state_history
    assert again.to_dict() == agent.to_dict()


def test_a_long_history_survives_the_round_trip() -> None:
    """A long history is read in full unless the caller sets a smaller depth."""
    agent = SocialAgent("a", max_history_depth=200)
    for number in range(120):
        agent.transition_to(S.RESTING if number % 2 else S.SCROLLING, f"t{number}")
    assert SocialAgent.from_dict(agent.to_dict()).to_dict() == agent.to_dict()
    short = SocialAgent.from_dict(agent.to_dict(), max_history_depth=2)
    assert [record.trigger for record in short.state_history] == ["t118", "t119"]


def test_times_are_exported_as_utc() -> None:
    """Times are written in UTC with a Z; a time without a zone counts as UTC."""
    eastern = datetime(2026, 1, 30, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    history = [
        StateTransition(S.IDLE, S.SCROLLING, "t", eastern),
        StateTransition(S.SCROLLING, S.IDLE, "t", datetime(2026, 1, 30, 10, 0, 0, 250_000)),
    ]
    times = [
        entry["timestamp"]
        for entry in SocialAgent("a", state_history=history).to_dict()["state_history"]
    ]
    assert times == ["2026-01-30T10:00:00Z", "2026-01-30T10:00:00.250000Z"]


def test_an_import_takes_further_fields() -> None:
    """from_dict passes further fields to the constructor, and returns a subclass's agents."""

    class Reader(SocialAgent):
        pass

    agent = Reader.from_dict(exported(), interests=["tea"], archetype="lurker")
    assert type(agent) is Reader
    assert (agent.interests, agent.engagement_threshold) == (
        ["tea"],
        ARCHETYPES["lurker"].engagement_threshold,
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            without(exported(), "ticks_in_state"),
            "agent: missing ticks_in_state: its keys are agent_id, current_state",
        ),
        (exported(mood="calm"), "agent: unknown mood: its keys are"),
        (
            without(exported(state="idle"), "current_state"),
            "agent: missing current_state; unknown state: its keys",
        ),
        ([], r"agent must be an object with the keys agent_id, .*, got \[\]"),
        (
            exported(current_state="browsing"),
            "'browsing' is not a state: use one of idle, scrolling",
        ),
        (exported(current_state=["idle"]), r"\['idle'\] is not a state"),
        (exported(agent_id=None), "agent_id must be a non-empty string, got None"),
        (exported(ticks_in_state=-1), "ticks_in_state must be a whole number, 0 or more, got -1"),
        (exported(ticks_in_state="2"), "ticks_in_state must be a whole number, 0 or more, got '2'"),
        (exported(state_history=None), "state_history must be a list of transitions, got None"),
        (exported(state_history={}), "state_history must be a list of transitions, got {}"),
        (
            exported(state_history=[5]),
            "state_history entry must be an object with the keys from_state, .*, got 5",
        ),
        (
            with_record(note="x"),
            "state_history entry: unknown note: its keys are from_state, to_state",
        ),
        (
            exported(state_history=[{}]),
            "state_history entry: missing from_state, to_state, trigger, timestamp, context",
        ),
        (with_record(to_state="asleep"), "'asleep' is not a state"),
        (with_record(trigger=""), "trigger must be a non-empty string, got ''"),
        (with_record(trigger=[]), r"trigger must be a non-empty string, got \[\]"),
        (with_record(context="p1"), "context must be an object or null, got 'p1'"),
        (with_record(timestamp=5), "a record of a transition cannot be read"),
        (
            with_record(timestamp="today"),
            "Invalid isoformat string: 'today'",
        ),
    ],
)
def test_an_invalid_import_is_refused(data: Any, message: str) -> None:
    """Missing and unknown keys and invalid values are refused by name."""
    with pytest.raises(FieldValueError, match=message):
        SocialAgent.from_dict(data)
