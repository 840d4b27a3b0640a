"""Attributes of an agent."""

import copy
import pickle
from enum import Enum
from math import nan
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.errors import FieldValueError

Colour = Enum("Colour", ["RED"])


def test_attributes_are_plain_data_of_the_agents_own() -> None:
    """Attributes are a dict of the agent's own, empty by default, that can be changed."""
    given: dict[str, Any] = {"age": 40, "likes": ["tea", {"more": None}]}
    agent = SocialAgent("ann", attributes=given)
    assert agent.attributes == given
    agent.attributes["age"] = 41
    assert (given["age"], SocialAgent("bo").attributes) == (40, {})


def test_attributes_survive_export_copies_and_pickles() -> None:
    """An agent's attributes are in its JSON, its copies and its pickles."""
    agent = SocialAgent("ann", attributes={"age": 40, "likes": ["tea"]})
    assert list(agent.to_dict())[-1] == "attributes"
    for again in (
        SocialAgent.from_dict(agent.to_dict()),
        copy.deepcopy(agent),
        pickle.loads(pickle.dumps(agent)),
    ):
        assert again.attributes == agent.attributes
        assert again.to_dict() == agent.to_dict()


def test_an_agent_without_attributes_is_exported_as_ever() -> None:
    """Without attributes the export has the keys of the specification and no other."""
    exported = SocialAgent("ann").to_dict()
    assert list(exported) == ["agent_id", "current_state", "ticks_in_state", "state_history"]
    assert SocialAgent.from_dict(exported).attributes == {}


def test_an_argument_replaces_exported_attributes() -> None:
    """Attributes given to from_dict replace those of the export, as all other fields do."""
    exported = SocialAgent("ann", attributes={"age": 40}).to_dict()
    assert SocialAgent.from_dict(exported, attributes={"age": 1}).attributes == {"age": 1}


@pytest.mark.parametrize(
    "value", [nan, float("inf"), (1, 2), {1}, {1: 2}, object(), b"a", 2**64, "\ud83d", Colour.RED]
)
def test_what_json_would_change_is_refused(value: Any) -> None:
    """A value that a checkpoint would give back as another one is refused by its name."""
    with pytest.raises(FieldValueError, match="attribute 'age' must have a text as its name, and"):
        SocialAgent("ann", attributes={"age": value})

    agent = SocialAgent("ann")
    agent.attributes["age"] = value
    with pytest.raises(FieldValueError, match="attribute 'age'"):
        agent.to_dict()


@pytest.mark.parametrize("attributes", [["age"], "age", 5, {1: 2}])
def test_attributes_need_names(attributes: Any) -> None:
    """Anything but a mapping whose keys are texts is refused."""
    with pytest.raises(FieldValueError, match="attribute"):
        SocialAgent("ann", attributes=attributes)
    with pytest.raises(FieldValueError, match="attribute"):
        SocialAgent.from_dict({**SocialAgent("a").to_dict(), "attributes": attributes})
