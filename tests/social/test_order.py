"""No place in a list gives an advantage."""

from collections import Counter
from collections.abc import Sequence
from math import isnan

import pytest
from scipy.stats import spearmanr

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.social import Feed


def readers_of(agents: Sequence[SocialAgent], seed: int, rounds: int = 1) -> dict[str, int]:
    """Count who looked at the opening post of each agent."""
    feed = Feed(preset="classic")
    Run(feed, agents, rounds=rounds, seed=seed).run()
    authors = {post.number: post.author_id for post in feed.posts[: len(agents)]}
    looks = Counter(
        authors[number]
        for reader in feed.agents
        for number in reader.looked_at
        if number in authors
    )
    return {agent.agent_id: looks[agent.agent_id] for agent in agents}


def test_the_order_of_the_list_changes_nothing() -> None:
    """The same agents, listed backwards, have the same readers."""
    agents = synthetic_population(120, seed=3).agents
    forwards, backwards = readers_of(agents, 3), readers_of(agents[::-1], 3)
    assert forwards == backwards
    assert sum(forwards.values()) > 200


def posts_of(agents: Sequence[SocialAgent]) -> list[tuple[str, str, str]]:
    """Return the id, author and text of each post of a lively run."""
    feed = Feed(preset="classic")
    Run(feed, agents, rounds=3, seed=5).run()
    return [(post.post_id, post.author_id, post.text) for post in feed.posts]


def test_drafts_at_the_end_of_a_round_are_published_in_any_order_of_the_list() -> None:
    """Agents that are interrupted by the end have their last turns in an order of their own."""
    topics = ["music", "tea", "chess", "film"]
    crowd = [SocialAgent(f"u{n}", "", [topics[n % 4], topics[(7 * n + 1) % 4]]) for n in range(40)]
    assert posts_of(crowd) == posts_of(crowd[::-1])


@pytest.mark.long
def test_place_and_readers_are_unrelated() -> None:
    """Mean rank correlation over 6 seeds, in the whole list and within communities, below .05."""
    whole, within = [], []
    for seed in range(6):
        readers = list(readers_of(synthetic_population(1000, seed=seed).agents, seed).values())
        whole.append(spearmanr(readers, range(1000)).statistic)
        parts = [readers[start : start + 100] for start in range(0, 1000, 100)]
        within += [spearmanr(part, range(100)).statistic for part in parts]

    assert abs(sum(whole) / len(whole)) < 0.05
    assert abs(sum(each for each in within if not isnan(each)) / len(within)) < 0.05
