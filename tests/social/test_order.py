"""No place in a list gives an advantage."""

from collections import Counter
from collections.abc import Sequence

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.social import Feed


def readers_of(agents: Sequence[SocialAgent], seed: int, rounds: int = 1) -> dict[str, int]:
    """Count who looked at the opening post of each agent."""
    simulation = Run(Feed(preset="classic"), agents, rounds=rounds, seed=seed)
    simulation.run()
    posts = [post for post in simulation.world.posted.posts if post.post_id.startswith("post_")]
    authors = {post.number: post.author_id for post in posts[: len(agents)]}
    seen = Counter(
        authors[number]
        for reader in simulation.world.posted.readers
        for number in reader.seen
        if number in authors
    )
    return {agent.agent_id: seen[agent.agent_id] for agent in agents}


def rho(values: Sequence[float]) -> float:
    """Return Spearman's rank correlation of values with their places."""
    order = sorted(values)
    first = {value: order.index(value) for value in set(values)}
    count = Counter(values)
    ranks = [first[value] + (count[value] - 1) / 2 for value in values]
    middle = (len(values) - 1) / 2
    above = sum((rank - middle) * (place - middle) for place, rank in enumerate(ranks))
    squares = sum((rank - middle) ** 2 for rank in ranks)
    return above / (squares * sum((place - middle) ** 2 for place in range(len(ranks)))) ** 0.5


def test_the_order_of_the_list_changes_nothing() -> None:
    """The same agents, listed backwards, have the same readers."""
    forwards = readers_of(synthetic_population(120, seed=3).agents, 3)
    backwards = readers_of(synthetic_population(120, seed=3).agents[::-1], 3)
    assert forwards == backwards
    assert sum(forwards.values()) > 200


def posts_of(agents: Sequence[SocialAgent]) -> list[tuple[str, str, str]]:
    """Return the id, author and text of each post of a lively run."""
    feed = Feed(preset="classic")
    run = Run(feed, agents, rounds=3, seed=5)
    run.run()
    return [(post.post_id, post.author_id, post.text) for post in run.world.posts]


def test_drafts_at_the_end_of_a_round_are_published_in_any_order_of_the_list() -> None:
    """Agents that are interrupted by the end have their last turns in the order of the round."""
    topics = ["music", "tea", "chess", "film"]

    def crowd() -> list[SocialAgent]:
        return [
            SocialAgent(f"u{n}", "", [topics[n % 4], topics[(7 * n + 1) % 4]]) for n in range(40)
        ]

    assert posts_of(crowd()) == posts_of(crowd()[::-1])


@pytest.mark.long
def test_place_and_readers_are_unrelated() -> None:
    """Mean rank correlation over 6 seeds, in the whole list and within communities, below .05."""
    whole, within = [], []
    for seed in range(6):
        readers = list(readers_of(synthetic_population(1000, seed=seed).agents, seed).values())
        whole.append(rho(readers))
        within += [rho(readers[start : start + 100]) for start in range(0, 1000, 100)]

    assert abs(sum(whole) / len(whole)) < 0.05
    assert abs(sum(within) / len(within)) < 0.05
