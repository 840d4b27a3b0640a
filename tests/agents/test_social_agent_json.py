"""The JSON of a social agent."""

import copy
import json
import pickle
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.statechart import AgentState, StateTransition
from tests.kit.charts import ANY

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
