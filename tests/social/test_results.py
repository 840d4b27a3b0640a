"""What a run comes to."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.social import Activity, Cascade, Draft, Post, RoundSummary
from prism.social._results import LARGEST_CASCADES, largest_cascades, summarize
from prism.worlds._results import fallback_group
from tests.kit.feeds import network_of_agents

COUNTS = (
    "agent_ticks",
    "transitions",
    "posts",
    "replies",
    "reshares",
    "likes",
    "decisions_asked",
    "decisions_answered",
)


def forest_of(choices: Sequence[int]) -> list[Post]:
    """Make posts, each an answer to the post of that number, or of its own if there is none."""
    network = network_of_agents([SocialAgent("ann")])
    for choice in choices:
        about = network.posts[choice] if 0 <= choice < len(network.posts) else None
        network.publish("ann", Draft("reply" if about else "post", "text", ()), about)
    return network.posts


def by_brute_force(posts: Sequence[Post], root: Post) -> tuple[int, int, int]:
    """Measure the tree below a root level by level."""
    levels = [[root]]
    while below := [post for post in posts if any(post.parent is above for above in levels[-1])]:
        levels.append(below)
    return sum(map(len, levels)), len(levels) - 1, max(map(len, levels))


@given(st.lists(st.integers(-1, 25), max_size=30))
def test_cascades_are_measured_as_by_brute_force(choices: list[int]) -> None:
    """Size, depth and breadth of every cascade are those found by walking it level by level."""
    posts = forest_of(choices)
    found = {cascade.root_id: cascade for cascade in largest_cascades(posts, most=len(posts))}
    expected = {post.post_id: by_brute_force(posts, post) for post in posts if post.parent is None}
    measured = {root_id: (one.size, one.depth, one.breadth) for root_id, one in found.items()}
    assert measured == {
        root_id: measures for root_id, measures in expected.items() if measures[0] > 1
    }


@given(st.lists(st.integers(-1, 25), max_size=30), st.integers(0, 6))
@example([-1, 0, 0, -1, 3, 4, -1, 6, 7], 3).via(
    "three of one size, the second and third deeper than the first"
)
def test_largest_cascades_come_first(choices: list[int], most: int) -> None:
    """Cascades are given by size, then depth, then age, and no more of them than asked for."""
    posts = forest_of(choices)
    every = largest_cascades(posts, most=len(posts))
    age = {post.post_id: post.number for post in posts}
    assert list(every) == sorted(every, key=lambda one: (-one.size, -one.depth, age[one.root_id]))
    assert largest_cascades(posts, most) == every[:most]


def test_five_cascades_are_reported() -> None:
    """Of more cascades the five largest are reported, each with its beginning."""
    network = network_of_agents([SocialAgent("ann"), SocialAgent("ben")])
    for size in range(1, 8):
        root = network.publish("ann", Draft("post", f"begin {size}", ()), None)
        for _ in range(size):
            network.publish("ben", Draft("reshare", "look", ()), root)
    cascades = summarize(network, []).cascades
    assert [cascade.size for cascade in cascades] == [8, 7, 6, 5, 4]
    assert len(cascades) == LARGEST_CASCADES
    assert cascades[0] == Cascade(
        network.posts[-8].post_id, "ann", "begin 7", size=8, depth=1, breadth=7
    )


def activity(number: int) -> Activity:
    counts = {name: number * place for place, name in enumerate(COUNTS, start=1)}
    return Activity(
        **counts,
        timeouts=Counter(resting=number),
        fallbacks=Counter({f"reason {number}": 1, "all": 2}),
    )


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_totals_are_the_sum_of_the_rounds(rounds: int) -> None:
    """Every count of the totals is the sum of that count over the rounds."""
    summaries = [
        RoundSummary(number, {"idle": 1}, activity(number)) for number in range(1, rounds + 1)
    ]
    totals = summarize(network_of_agents([SocialAgent("ann")]), summaries).totals
    total = sum(range(1, rounds + 1))
    assert {name: getattr(totals, name) for name in COUNTS} == {
        name: total * place for place, name in enumerate(COUNTS, start=1)
    }
    assert +totals.timeouts == +Counter(resting=total)
    assert +totals.fallbacks == +Counter(
        {"all": 2 * rounds} | {f"reason {number + 1}": 1 for number in range(rounds)}
    )


REASONS = st.sampled_from(["TimedOutError", "LLMError", "Odd_1"])
HOSTS = st.sampled_from([None, "http://a", "http://b:1"])


@given(st.lists(st.lists(st.tuples(REASONS, st.integers(), HOSTS))))
def test_fallbacks_are_counted_by_kind_and_host(rounds: list[list[tuple[str, int, Any]]]) -> None:
    """However many texts there are, each kind at each host is one count with its first text."""
    summaries = []
    for number, reasons in enumerate(rounds, start=1):
        stretch = Activity()
        for kind, detail, host in reasons:
            group, example = fallback_group(f"{kind}: request {detail} failed: so", host)
            stretch.fallbacks[group] += 1
            stretch.fallback_examples.setdefault(group, example)
        summaries.append(RoundSummary(number, {}, stretch))

    totals = summarize(network_of_agents([SocialAgent("ann")]), summaries).totals
    every = [
        (f"{kind} at {host}" if host else kind, f"{kind}: request {detail} failed: so")
        for reasons in rounds
        for kind, detail, host in reasons
    ]
    assert totals.fallbacks == Counter(group for group, _ in every)
    assert totals.fallback_examples == dict(reversed(every))


def test_results_are_plain_data() -> None:
    """Results as plain data survive JSON, with rounds, totals and cascades by their names."""
    network = network_of_agents([SocialAgent("ann")])
    root = network.publish("ann", Draft("post", "text", ()), None)
    network.publish("ann", Draft("reply", "text", ()), root)
    data = summarize(network, [RoundSummary(1, {"idle": 1}, activity(2))]).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert list(data) == ["agents", "totals", "rounds", "cascades"]
    assert data["rounds"][0] == {"round": 1, "states": {"idle": 1}, **data["totals"]}
    assert data["totals"]["fallbacks"] == {"all": 2, "reason 2": 1}
    assert data["cascades"][0]["root_id"] == root.post_id
