"""No place in a list gives an advantage."""

from collections import Counter
from collections.abc import Sequence
from math import isnan

import pytest
from scipy.stats import spearmanr

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.social import Feed


def ran(
    agents: Sequence[SocialAgent], seed: int, rounds: int = 1
) -> tuple[dict[str, int], list[tuple[str, str, str]]]:
    """Count who looked at the opening post of each agent, and return all posts."""
    feed = Feed(preset="classic")
    Run(feed, agents, rounds=rounds, seed=seed).run()
    authors = {post.number: post.author_id for post in feed.posts[: len(agents)]}
    looks = Counter(
        authors[number]
        for reader in feed.agents
        for number in reader.looked_at
        if number in authors
    )
    posts = [(post.post_id, post.author_id, post.text) for post in feed.posts]
    return {agent.agent_id: looks[agent.agent_id] for agent in agents}, posts


def test_the_order_of_the_list_changes_nothing() -> None:
    """The same agents, listed backwards, have the same readers, and publish the same."""
    agents = synthetic_population(120, seed=3).agents
    (forwards, posts), (backwards, others) = (ran(each, 3, 3) for each in (agents, agents[::-1]))
    assert forwards == backwards
    assert sum(forwards.values()) > 200
    assert posts == others


@pytest.mark.long
def test_place_and_readers_are_unrelated() -> None:
    """Mean rank correlation over 6 seeds, in the whole list and within communities, below .05."""
    whole, within = [], []
    for seed in range(6):
        readers = list(ran(synthetic_population(1000, seed=seed).agents, seed)[0].values())
        whole.append(spearmanr(readers, range(1000)).statistic)
        parts = [readers[start : start + 100] for start in range(0, 1000, 100)]
        within += [spearmanr(part, range(100)).statistic for part in parts]

    assert abs(sum(whole) / len(whole)) < 0.05
    assert abs(sum(each for each in within if not isnan(each)) / len(within)) < 0.05
