"""Readers, which represent social agents at their feeds."""

from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent
from prism.social import Feed, Reader
from prism.statechart import AgentState
from prism.worlds import during


class Curious(Feed):
    """A feed with a step of its own, which reads fields of the social agent."""

    writes: bool = False

    @during(AgentState.SCROLLING)
    def look_at_next(self, reader: Reader) -> None:
        """Look at fields of the social agent."""
        if self.writes:
            reader.interests = ()
        assert reader.interests is reader.agent.interests
        assert reader.pending_action is reader.agent.pending_action
        super().look_at_next(reader)


def test_a_reader_has_what_its_social_agent_has() -> None:
    """A step reads the fields of the social agent from its reader."""
    assert Run(Curious(), 20, seed=1, rounds=1).run().rounds


def test_what_a_social_agent_has_is_set_there() -> None:
    """A reader only shows it, and the error says where it is set."""
    with pytest.raises(AttributeError, match=r"attribute of SocialAgent: .* \.object\.interests ="):
        Run(Curious(writes=True), 20, seed=1, rounds=1).run()


class Aged(SocialAgent):
    """A social agent that may have an age."""

    def __init__(self, *args: Any, age: int | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if age is None:
            self.birthday = "unknown"
        else:
            self.age = age


def aged(number: int) -> SocialAgent:
    """Return an agent that has an age or a birthday."""
    return Aged(f"a{number}", "", ["music"], age=number % 2 or None)


def given_an_age(number: int) -> SocialAgent:
    """Return an agent of prism's own class, some of which are given an age."""
    agent: Any = SocialAgent(f"a{number}", "", ["music"])
    if number % 2:
        agent.age = 1
    return agent


@pytest.mark.parametrize("make", [aged, given_an_age])
@pytest.mark.parametrize("order", [1, -1])
def test_a_reader_has_what_only_some_social_agents_have(make: Any, order: int) -> None:
    """It does not matter which of them is given first."""
    seen = {}

    class Noting(Feed):
        @during(AgentState.SCROLLING)
        def look_at_next(self, reader: Reader) -> None:
            seen[reader.agent_id] = getattr(reader, "age", None)
            super().look_at_next(reader)

    Run(Noting(), [make(number) for number in range(4)][::order], seed=1, rounds=1).run()
    assert seen == {"a0": None, "a1": 1, "a2": None, "a3": 1}
