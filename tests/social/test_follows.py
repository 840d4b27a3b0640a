"""Agents that follow, unfollow, mute and unmute each other, and a feed's steps defined anew."""

from pathlib import Path

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError, SimulationError
from prism.social import Draft, Feed, Network, Reader
from prism.statechart import AgentState
from prism.worlds import during, treatment
from tests.kit.feeds import network_of_agents
from tests.kit.worlds import run_in


class Quarrel(Feed):
    """A feed whose agents take to others and away from them, also in steps of their own."""

    preset = "classic"

    def round_begins(self) -> None:
        """Have the first three change their minds about the others, each round another way."""
        acts = (self.follow, self.mute, self.unfollow, self.unmute)
        first, *others = self.agents[:12]
        for place, other in enumerate(others):
            acts[(place + self.round) % len(acts)](first, other)

    @during(AgentState.RESTING)
    def make_up(self, reader: Reader) -> None:
        """Follow the author of what was read last."""
        if reader.post is not None and reader.post.author_id != reader.agent_id:
            self.follow(reader.agent, reader.post.author_id)


def network_of_two(following: tuple[str, ...] = ()) -> tuple[Network, Reader]:
    network = network_of_agents([SocialAgent("ann", following=following), SocialAgent("ben")])
    return network, network.readers[0]


def publish(network: Network) -> None:
    network.publish("ben", Draft("post", "text", ()), None)


def test_a_follow_shows_what_comes_from_then_on() -> None:
    """What an author published before an agent followed it is not in the agent's feed."""
    network, ann = network_of_two()
    publish(network)
    network.change(ann, "follow", "ben")
    publish(network)
    network.refresh(ann)
    assert [post.number for post in ann.unread] == [1]


def test_an_unfollowed_author_is_not_shown_any_more() -> None:
    """Posts of an author who has been unfollowed reach the feed no more."""
    network, ann = network_of_two(following=("ben",))
    network.change(ann, "unfollow", "ben")
    publish(network)
    assert not network.refresh(ann)


def test_a_muted_author_is_not_shown_until_unmuted() -> None:
    """Muting empties the feed of an author's posts and keeps new ones out of it."""
    network, ann = network_of_two(following=("ben",))
    publish(network)
    network.refresh(ann)
    network.change(ann, "mute", "ben")
    publish(network)
    assert not network.refresh(ann)

    network.change(ann, "unmute", "ben")
    publish(network)
    network.refresh(ann)
    assert 2 in [post.number for post in ann.unread]


@pytest.mark.slow
def test_changes_of_mind_are_resumed_with_the_same_bytes(tmp_path: Path) -> None:
    """A run in which agents follow and mute others all the time is resumed to the same log."""
    options = Run(Quarrel, 30, rounds=4, seed=2)
    whole = run_in(tmp_path / "whole", options)
    assert b"follow.changed" in whole
    assert run_in(tmp_path / "stopped", options, [1, 2, 3]) == whole


@pytest.mark.parametrize(("one", "other"), [("agent_0001", "agent_0001"), ("agent_0001", "zoe")])
def test_only_another_agent_of_the_run_is_followed(one: str, other: str) -> None:
    """An agent follows neither itself nor somebody unknown."""

    class Wrong(Feed):
        def round_begins(self) -> None:
            self.follow(one, other)

    with pytest.raises(FieldValueError):
        Run(Wrong(), 5, rounds=1).run()


def test_nobody_is_muted_before_the_first_round() -> None:
    """A mute in setup is refused, as it would come again on resuming."""

    class Early(Feed):
        def setup(self) -> None:
            self.mute(*self.agents[:2])

    with pytest.raises(SimulationError, match="cannot mute"):
        Run(Early(), 5, rounds=1).run()


def test_following_is_told_by_the_agent() -> None:
    """What an agent follows after a change is in its ``following``."""

    class Friendly(Feed):
        @treatment(round=1)
        def befriend(self) -> None:
            """Have the first follow the last."""
            self.follow(self.agents[0], self.agents[-1])

    population = synthetic_population(6).agents
    Run(Friendly(), population, rounds=1).run()
    assert population[-1].agent_id in population[0].following
