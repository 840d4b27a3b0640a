"""Readers, which represent social agents at their feeds."""

import pytest

from prism import Run
from prism.social import Feed, Reader
from prism.statechart import AgentState
from prism.worlds import during


class Curious(Feed):
    """A feed with a step of its own, which reads fields of the social agent."""

    late: bool = False
    writes: bool = False

    @during(AgentState.SCROLLING)
    def look_at_next(self, reader: Reader) -> None:
        """Look at fields of the social agent."""
        if self.late:
            reader.agent.mood = "calm"  # type: ignore[attr-defined]
            assert reader.mood == "calm"
        if self.writes:
            reader.interests = ()
        assert reader.interests is reader.agent.interests
        assert reader.pending_action is reader.agent.pending_action
        super().look_at_next(reader)


def test_a_reader_has_what_its_social_agent_has() -> None:
    """What is added to the agent during a run is read from the agent itself, as the error says."""
    assert Run(Curious(), 20, seed=1, rounds=1).run().rounds
    with pytest.raises(AttributeError, match=r"'mood' was added .* read it as \.object\.mood"):
        Run(Curious(late=True), 20, seed=1, rounds=1).run()


def test_what_a_social_agent_has_is_set_there() -> None:
    """A reader only shows it, and the error says where it is set."""
    with pytest.raises(AttributeError, match=r"attribute of SocialAgent: .* \.object\.interests ="):
        Run(Curious(writes=True), 20, seed=1, rounds=1).run()
