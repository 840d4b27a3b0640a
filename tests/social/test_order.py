"""No place in a list gives an advantage."""

from prism import Run
from prism.agents import synthetic_population
from prism.social import Feed


def test_the_order_of_the_list_changes_nothing() -> None:
    """The same agents, listed backwards, look at the same posts, and publish the same."""
    agents, outcomes = synthetic_population(60, seed=3).agents, []
    for listed in (agents, agents[::-1]):
        feed = Feed(preset="classic")
        Run(feed, listed, rounds=3, seed=3).run()
        posts = [(post.post_id, post.author_id, post.text) for post in feed.posts]
        looks = {reader.agent_id: {*reader.looked_at} for reader in feed.agents}
        outcomes.append((posts, looks))
    assert outcomes[0] == outcomes[1]
    assert sum(map(len, outcomes[0][1].values())) > 200
