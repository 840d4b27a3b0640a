"""Elements in a text: which belongs to which, where each ends, and what is in doubt."""

import pytest

from prism.cognition._replies._elements import Element, Elements
from prism.cognition._replies._tags import Markup


def read(text: str) -> Elements:
    """Return the elements of a text."""
    return Elements(Markup(text))


def value_in(inner: str) -> Element:
    """Return the action of an agent with this value, and nothing else."""
    ((action,),) = (agent.actions for agent in read(f"<agent><action>{inner}</agent>").agents)
    return action


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("<value>a</value></action>", "a"),
        ("<value>a</value>", "a"),
        ("<value>a</action>", "a"),
        ("<value>a", "a"),
        ("<value>a<value></action>", "a"),
        ("<value>a</tags></action>", "a"),
        ("<value>a</valeu></action>", "a"),
        ("<value>a/value></action>", "a"),
        ("<value>a</b></action>", "a</b>"),
        ("<value><value>a</value></action>", "a"),
        ("<value><value>a</value></value></action>", "a"),
        ("<value><value>a</value>b</value></action>", "<value>a</value>b"),
        ("<value>a <value> b</value></action>", "a <value> b"),
        ("<value>a </value> b</value></action>", "a </value> b"),
        ("<value>a</value></value></action>", "a"),
        ("<value>a<tags>t</tags></action>", "a"),
        ("<value>a <type> b</value></action>", "a <type> b"),
        ("<value value='a'/></action>", "a"),
        ("<value></value></action>", ""),
    ],
)
def test_a_value_ends_where_only_other_things_can_follow(written: str, value: str) -> None:
    """A value has its closing tag, or another sign that it is over; tags in it are its text."""
    assert value_in(written).leaves["value"] == value


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("<agent></agent>", [True]),
        ("<agent/>", [True]),
        ("<agent>", [False]),
        ("<agent></agnet>", [True]),
        ("<agent></ag", [False]),
        ("<agent><agent></agent></agent>", [True]),
        ("<agent><type>a</type><agent></agent>", [False, True]),
        ("<agent></agent><agent>", [True, False]),
        ("<think><agent></agent></think><agent>", [False]),
        ("<agent></agent></think><agent/>", [True]),
        ("<agent></agent><|im_end|><agent/>", [True]),
        ("<agent><value>a<agent></agent>", [False, True]),
        ("<!-- <agent></agent> -->", []),
        ("<!-- <agent></agent>", []),
    ],
)
def test_agents_are_closed_or_not(text: str, closed: list[bool]) -> None:
    """Every agent element outside of thoughts and comments is found, and whether it ends."""
    assert [agent.is_closed for agent in read(text).agents] == closed


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [
        ("<agent><action><value>a</value></action></agent>", True),
        ("<agent><action><value>a</value></action></agent> I used </agent>.", True),
        ("<agent><action><value>a</value> b</value></action></agent>", True),
        ("<agent><action><value>a</value></action> b</value></agent>", False),
        ("<agent><action><value>a</value></action></agent> b</value>", False),
        ("<agent><action><value>a</action></value></agent>", False),
        ("<agent><action><value><![CDATA[a</value></action></agent>", False),
    ],
)
def test_doubt_where_a_value_ends_is_noted(text: str, is_clear: bool) -> None:
    """A closing tag of a value that comes too late leaves open where the value ends."""
    (agent,) = read(text).agents
    assert (agent.is_clear and all(action.is_clear for action in agent.actions)) == is_clear


def test_elements_without_an_agent_are_loose() -> None:
    """What has no agent element around it is found, too, and whether the text ends in it."""
    loose = read("<next_state>a</next_state><thinking_log>b").loose
    assert (loose.leaves, loose.is_closed) == ({"next_state": "a", "thinking_log": "b"}, False)
    assert read("<next_state>a</next_state>").loose.is_closed


def test_what_belongs_nowhere_is_kept() -> None:
    """Text between elements is kept as stray, and mended elements are marked."""
    (agent,) = read("<agent>a<type>b</type>c<type>d</type>&lt;</agent>").agents
    assert (agent.stray, agent.leaves, agent.is_mended) == ("ac<", {"type": "b"}, True)


def test_a_thought_that_does_not_end_is_noted() -> None:
    """A text that ends within a thought says so."""
    assert read("<think>so").is_thinking
    assert not read("<think>so</think>").is_thinking
