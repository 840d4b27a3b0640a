"""No place in a list gives an advantage."""

from pathlib import Path

from prism.agents import synthetic_population
from prism.social import Feed
from tests.kit.worlds import run_logged


def test_the_order_of_the_list_changes_nothing(tmp_path: Path) -> None:
    """The same agents, listed backwards, look at the same posts, and publish and log the same."""
    agents, outcomes = synthetic_population(60, seed=3).agents, []
    for listed in (agents, agents[::-1]):
        feed = Feed(preset="classic", carries_over=False)
        done = run_logged(tmp_path, feed, listed, rounds=3, seed=3)
        posts = [(post.post_id, post.author_id, post.text) for post in feed.posts]
        looks = {reader.agent_id: {*reader.looked_at} for reader in feed.agents}
        outcomes.append((posts, looks, done.events("statechart.transition")))
    assert outcomes[0] == outcomes[1]
    assert sum(map(len, outcomes[0][1].values())) > 200
