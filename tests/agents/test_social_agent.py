"""The agent of a social media simulation."""

import copy
import json
import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.agents import ARCHETYPES, Archetype, SocialAgent
from prism.agents._relevance import Terms, terms_of
from prism.errors import FieldTypeError, FieldValueError
from prism.statechart import (
    AgentState,
    RandomStream,
    StateTransition,
    Transition,
    social_media_chart,
    state_enum,
)

S = AgentState
NOON = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)

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
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
records = st.builds(
    StateTransition,
    from_state=st.just(S.IDLE),
    to_state=st.sampled_from([state for state in S if state is not S.IDLE]),
    trigger=st.text(min_size=1, max_size=12),
    timestamp=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)),
    context=st.none() | st.dictionaries(st.text(max_size=8), json_values, max_size=3),
)
agents = st.builds(
    SocialAgent,
    agent_id=st.text(min_size=1, max_size=12),
    state=st.sampled_from(S),
    ticks_in_state=st.integers(0, 10**6),
    state_history=st.lists(records, max_size=6),
)


@dataclass
class Post:
    """A post as another simulation may write it."""

    topics: list[str]
    text: str = ""


@dataclass
class PreparedPost:
    """A post that brings its terms, as those of a simulation do."""

    terms: Terms


def exported(**changes: Any) -> dict[str, Any]:
    return {**json.loads(EXPORT), **changes}


def with_record(**changes: Any) -> dict[str, Any]:
    record = {**json.loads(EXPORT)["state_history"][0], **changes}
    return exported(state_history=[record])


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


def test_an_agent_needs_only_an_id() -> None:
    """A new agent idles with an empty history and the thresholds of the data model."""
    agent = SocialAgent("agent_001")
    assert (agent.agent_id, agent.name, agent.interests, agent.personality) == (
        "agent_001",
        "agent_001",
        [],
        "",
    )
    assert (agent.archetype, agent.following, agent.pending_action, agent.random) == (
        None,
        (),
        None,
        None,
    )
    assert (agent.state, agent.ticks_in_state, list(agent.state_history)) == (S.IDLE, 0, [])
    assert (agent.engagement_threshold, agent.timeout_threshold, agent.max_history_depth) == (
        0.5,
        5,
        50,
    )
    assert repr(agent) == "SocialAgent('agent_001', state='idle')"


def test_agents_share_nothing() -> None:
    """Neither the list that two agents were made from nor the history of the one is the other's."""
    interests = ["tea"]
    one, other = SocialAgent("a", interests=interests), SocialAgent("b", interests=interests)
    interests.append("music")
    one.transition_to(S.SCROLLING, "feed_ready")
    assert (one.interests, other.interests, len(other.state_history)) == (["tea"], ["tea"], 0)


# The Validation Summary of spec/data-model.md, row by row.


@pytest.mark.parametrize("value", ["browsing", None, 3])
def test_a_state_outside_the_enum_is_a_value_error(value: Any) -> None:
    """Looking up a state that there is none of is a ValueError that lists the states."""
    with pytest.raises(
        ValueError, match=r"is not a valid AgentState: use one of idle, scrolling, .*, resting"
    ):
        AgentState(value)


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (
            ("go", "idle", S.RESTING),
            "source must be a member of a str-based Enum such as AgentState.IDLE, got 'idle'",
        ),
        (("go", S.IDLE, "resting"), "target must be a member .* got 'resting'"),
        (("", S.IDLE, S.RESTING), "trigger must be a non-empty string, got ''"),
    ],
)
def test_a_transition_that_could_never_work_is_a_value_error(move: Any, message: str) -> None:
    """A transition's source and target must be states and its trigger a text, from its construction on."""
    with pytest.raises(ValueError, match=message):
        Transition(*move)


@pytest.mark.parametrize("value", ["idle", None, state_enum("Mood", ["idle"])("idle")])
def test_a_state_of_another_type_is_a_type_error(value: Any) -> None:
    """Only a member of AgentState can be an agent's state, in the constructor and afterwards."""
    message = "state must be a member of AgentState, got .*: use one of AgentState.IDLE, .*AgentState.RESTING"
    agent = SocialAgent("a")
    with pytest.raises(TypeError, match=message):
        SocialAgent("a", state=value)
    with pytest.raises(FieldTypeError, match=message):
        agent.state = value
    assert agent.state is S.IDLE


WRONG_FIELDS = [
    ("ticks_in_state", -1, "ticks_in_state must be a whole number from 0 on, got -1"),
    ("ticks_in_state", 1.5, "ticks_in_state must be a whole number from 0 on, got 1.5"),
    ("ticks_in_state", True, "ticks_in_state must be a whole number from 0 on, got True"),
    (
        "engagement_threshold",
        -0.01,
        "engagement_threshold must be a number from 0.0 to 1.0, got -0.01",
    ),
    (
        "engagement_threshold",
        1.01,
        "engagement_threshold must be a number from 0.0 to 1.0, got 1.01",
    ),
    (
        "engagement_threshold",
        float("nan"),
        "engagement_threshold must be a number from 0.0 to 1.0, got nan",
    ),
    (
        "engagement_threshold",
        "0.5",
        "engagement_threshold must be a number from 0.0 to 1.0, got '0.5'",
    ),
    ("timeout_threshold", 0, "timeout_threshold must be a whole number from 1 on, got 0"),
    ("timeout_threshold", 2.0, "timeout_threshold must be a whole number from 1 on, got 2.0"),
    ("max_history_depth", 0, "max_history_depth must be a whole number from 1 on, got 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG_FIELDS)
def test_a_number_outside_its_range_is_a_value_error(name: str, value: Any, message: str) -> None:
    """The fields with a range refuse what lies outside, in the constructor and afterwards, and keep what they had."""
    agent = SocialAgent("a")
    before = getattr(agent, name)
    with pytest.raises(ValueError, match=message):
        SocialAgent("a", **{name: value})
    with pytest.raises(FieldValueError, match=message):
        setattr(agent, name, value)
    assert getattr(agent, name) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"engagement_threshold": 0},
        {"engagement_threshold": 1},
        {"timeout_threshold": 1},
        {"ticks_in_state": 0},
        {"max_history_depth": 1},
    ],
)
def test_the_ends_of_a_range_belong_to_it(fields: dict[str, Any]) -> None:
    """The least and the greatest value of a field are taken."""
    agent = SocialAgent("a", **fields)
    assert {name: getattr(agent, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"agent_id": ""}, "agent_id must be a non-empty string, got ''"),
        ({"agent_id": 7}, "agent_id must be a non-empty string, got 7"),
        (
            {"interests": "tea"},
            r"interests must be a list of strings, got the text 'tea': write \['tea'\]",
        ),
        ({"interests": ["tea", " ", 5]}, "interests must be non-empty strings, got ' ', 5"),
        (
            {"following": "bob"},
            r"following must be a list of strings, got the text 'bob': write \['bob'\]",
        ),
        ({"following": [1]}, "following must be non-empty strings, got 1"),
        (
            {"archetype": "troll"},
            "archetype must be one of lurker, contributor, superuser, got 'troll'",
        ),
    ],
)
def test_a_persona_that_makes_no_sense_is_a_value_error(
    fields: dict[str, Any], message: str
) -> None:
    """Ids, interests, follows and archetypes of the wrong form are refused with what to write instead."""
    with pytest.raises(FieldValueError, match=message):
        SocialAgent(**{"agent_id": "a", **fields})


def test_a_move_to_the_same_state_is_not_recorded() -> None:
    """A self-transition changes and records nothing."""
    agent = SocialAgent("a", ticks_in_state=3)
    agent.transition_to(S.IDLE, "feed_ready")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (S.IDLE, 3, 0)


# Behaviour.


def test_a_move_resets_the_ticks_and_is_recorded() -> None:
    """A transition sets the state, begins to count ticks anew, and remembers what it was about, and when."""
    agent = SocialAgent("a", ticks_in_state=3)
    before = datetime.now(UTC)
    agent.transition_to(S.SCROLLING, "feed_ready", {"post_id": "p1"})
    (record,) = agent.state_history
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    assert (record.from_state, record.to_state, record.trigger) == (
        S.IDLE,
        S.SCROLLING,
        "feed_ready",
    )
    assert record.context == {"post_id": "p1"}
    assert (
        before - timedelta(milliseconds=1)
        <= record.timestamp
        <= datetime.now(UTC) + timedelta(milliseconds=1)
    )


def test_a_move_to_no_state_changes_nothing() -> None:
    """A transition to something that is no state is a TypeError and leaves the agent as it was."""
    agent = SocialAgent("a", ticks_in_state=3)
    with pytest.raises(
        FieldTypeError, match="state must be a member of AgentState, got 'scrolling'"
    ):
        agent.transition_to("scrolling", "feed_ready")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (S.IDLE, 3, 0)


def test_the_history_forgets_the_oldest() -> None:
    """The history never outgrows its depth, and a smaller depth keeps the newest moves."""
    agent = SocialAgent("a", max_history_depth=3)
    for number in range(5):
        agent.transition_to(S.SCROLLING if number % 2 == 0 else S.RESTING, f"t{number}")
    assert [record.trigger for record in agent.state_history] == ["t2", "t3", "t4"]
    agent.max_history_depth = 2
    assert [record.trigger for record in agent.state_history] == ["t3", "t4"]
    agent.transition_to(S.IDLE, "t5")
    assert [record.trigger for record in agent.state_history] == ["t4", "t5"]


def test_time_out_is_strictly_after_the_threshold() -> None:
    """An agent has timed out once it has dwelt longer than its threshold, not when it reaches it."""
    agent = SocialAgent("a", timeout_threshold=2)
    assert [(agent.tick(), agent.is_timed_out()) for _ in range(3)] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    agent.transition_to(S.SCROLLING, "feed_ready")
    assert (agent.ticks_in_state, agent.is_timed_out()) == (0, False)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (0.6, True),
        (0.59, False),
        ({"relevance": 0.6}, True),
        ({"relevance": 0.1}, False),
        ({"topics": ["music"]}, True),
        ({"topics": ["football"]}, False),
        (Post(["MUSIC"]), True),
        (Post(["football"], "a word on music"), False),
        (Post([], "music"), True),
        (None, False),
    ],
)
def test_engagement_begins_at_the_threshold(context: Any, expected: bool) -> None:
    """An agent engages with what is at least as relevant as its threshold: a number, a mapping or a post."""
    agent = SocialAgent("a", interests=["music"], engagement_threshold=0.6)
    assert agent.should_engage(context) is expected


def test_a_rating_belongs_to_its_post() -> None:
    """Posts that bring their terms are rated each by its own, in whatever order they are asked for."""
    agent = SocialAgent("a", interests=["music"])
    music, football = PreparedPost(terms_of(["music"])), PreparedPost(terms_of(["football"]))
    assert [agent.relevance(post) for post in (music, music, football, None, music)] == [
        1.0,
        1.0,
        0.0,
        0.0,
        1.0,
    ]


@pytest.mark.parametrize("name", ARCHETYPES)
def test_an_archetype_sets_the_thresholds(name: str) -> None:
    """An archetype gives both thresholds, by its name or as itself."""
    kind = ARCHETYPES[name]
    for agent in (SocialAgent("a", archetype=name), SocialAgent("a", archetype=kind)):
        thresholds = agent.engagement_threshold, agent.timeout_threshold
        assert thresholds == (kind.engagement_threshold, kind.timeout_threshold)


def test_explicit_thresholds_win() -> None:
    """A threshold that is given counts, whatever the archetype says, and also if it is 0."""
    custom = Archetype("bot", engagement_threshold=0.9, timeout_threshold=9, share=0.0)
    one = SocialAgent("a", archetype=custom, engagement_threshold=0)
    other = SocialAgent("a", archetype=custom, timeout_threshold=2)
    assert (one.engagement_threshold, one.timeout_threshold) == (0.0, 9)
    assert (other.engagement_threshold, other.timeout_threshold) == (0.9, 2)


def test_a_chart_drives_the_agent() -> None:
    """The shared chart moves the agent by its guards, and every move lands in its history."""
    chart, agent = social_media_chart(), SocialAgent("a", interests=["music"])
    for trigger in ("feed_ready", "sees_post", "decides"):
        chart.fire(agent, trigger, Post(["music"]))
    agent.pending_action = "reply"
    chart.fire(agent, "compose_done")
    path = [record.to_state for record in agent.state_history]
    assert path == [S.SCROLLING, S.EVALUATING, S.COMPOSING, S.ENGAGING_REPLY]


# Serialization.


def test_the_export_has_the_shape_of_the_data_model() -> None:
    """The example of the data model is read, and written again key by key in its order."""
    agent = SocialAgent.from_dict(json.loads(EXPORT))
    assert (agent.agent_id, agent.state, agent.ticks_in_state) == ("agent_001", S.EVALUATING, 2)
    assert agent.state_history[1].timestamp == datetime(2026, 1, 30, 10, 0, 1, tzinfo=UTC)
    assert json.dumps(agent.to_dict()) == json.dumps(json.loads(EXPORT))
    assert json.dumps(json.loads(agent.to_json())) == json.dumps(json.loads(EXPORT))


@settings(max_examples=60, deadline=None)
@given(agents)
def test_exporting_and_importing_is_a_round_trip(agent: SocialAgent) -> None:
    """Whatever has happened to an agent, its JSON gives an agent of the same state, ticks and history."""
    again = SocialAgent.from_dict(json.loads(agent.to_json()))
    assert (again.agent_id, again.state, again.ticks_in_state) == (
        agent.agent_id,
        agent.state,
        agent.ticks_in_state,
    )
    assert again.state_history == agent.state_history
    assert again.to_dict() == agent.to_dict()


def test_a_long_history_survives_the_round_trip() -> None:
    """A history longer than usual is not cut when it is read, unless the reader asks for less."""
    agent = SocialAgent("a", max_history_depth=200)
    for number in range(120):
        agent.transition_to(S.RESTING if number % 2 else S.SCROLLING, f"t{number}")
    assert SocialAgent.from_dict(agent.to_dict()).to_dict() == agent.to_dict()
    short = SocialAgent.from_dict(agent.to_dict(), max_history_depth=2)
    assert [record.trigger for record in short.state_history] == ["t118", "t119"]


def test_times_are_exported_as_utc() -> None:
    """A time of another zone is written as UTC with a Z, and one without a zone is taken as UTC."""
    eastern = datetime(2026, 1, 30, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    moves = [
        StateTransition(S.IDLE, S.SCROLLING, "t", eastern),
        StateTransition(S.SCROLLING, S.IDLE, "t", datetime(2026, 1, 30, 10, 0, 0, 250_000)),
    ]
    times = [
        entry["timestamp"]
        for entry in SocialAgent("a", state_history=moves).to_dict()["state_history"]
    ]
    assert times == ["2026-01-30T10:00:00Z", "2026-01-30T10:00:00.250000Z"]


def test_an_import_takes_the_persona_besides() -> None:
    """What the export does not hold is given to the constructor, and a subclass reads its own kind."""

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
        (exported(ticks_in_state=-1), "ticks_in_state must be a whole number from 0 on, got -1"),
        (exported(ticks_in_state="2"), "ticks_in_state must be a whole number from 0 on, got '2'"),
        (exported(state_history=None), "state_history must be a list of moves, got None"),
        (exported(state_history={}), "state_history must be a list of moves, got {}"),
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
        (with_record(timestamp=5), "timestamp must be a time such as 2026-01-30T10:00:00Z, got 5"),
        (
            with_record(timestamp="today"),
            "timestamp must be a time such as 2026-01-30T10:00:00Z, got 'today'",
        ),
    ],
)
def test_an_import_that_is_no_export_is_refused(data: Any, message: str) -> None:
    """Missing and unknown keys are named, and every value must be one that its key can have."""
    with pytest.raises(FieldValueError, match=message):
        SocialAgent.from_dict(data)


# Copies.


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
def test_a_copy_is_equal_and_independent(duplicate: Any) -> None:
    """A deep copy and a pickle keep every field, go on drawing the same numbers, and change without the original."""
    agent = SocialAgent(
        "a", "Ann", ["tea"], "calm", archetype="lurker", following=["b"], max_history_depth=4
    )
    agent.transition_to(S.SCROLLING, "feed_ready", {"post_id": "p1"})
    agent.random = RandomStream(1, "a")
    agent.random.random()
    again = duplicate(agent)
    kept = (
        "agent_id",
        "name",
        "interests",
        "personality",
        "archetype",
        "following",
        "state",
        "state_history",
    )
    assert [getattr(again, name) for name in kept] == [getattr(agent, name) for name in kept]
    assert (again.engagement_threshold, again.max_history_depth) == (0.7, 4)
    assert again.relevance({"topics": ["tea"]}) == 1.0
    assert again.random.random() == agent.random.random()
    again.transition_to(S.RESTING, "timeout")
    assert (agent.state, len(agent.state_history)) == (S.SCROLLING, 1)
    assert again.interests is not agent.interests
