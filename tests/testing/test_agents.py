"""Agents for tests."""

import pytest

from prism.errors import FieldValueError
from prism.statechart import AgentState
from prism.testing import AgentMaker


def test_names_are_given_where_none_is() -> None:
    """Agents without an id are numbered, and every maker begins anew."""
    make = AgentMaker()
    assert [make().agent_id, make("ada").agent_id, make().agent_id] == ["agent_1", "ada", "agent_2"]
    assert AgentMaker()().agent_id == "agent_1"


def test_empty_name_is_refused() -> None:
    """An id that is given but empty is the test's mistake, and no reason to make one up."""
    with pytest.raises(FieldValueError, match="agent_id must be a non-empty string"):
        AgentMaker()("")


def test_fields_are_passed_on() -> None:
    """Fields of the agent can be set, and interests have a default."""
    agent = AgentMaker()("ada", interests=["travel"], state=AgentState.RESTING)
    assert (agent.interests, agent.state) == (["travel"], AgentState.RESTING)
    assert AgentMaker()().interests == ["music"]
