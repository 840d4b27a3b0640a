"""Loading populations and posts from files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prism.agents import ARCHETYPES, Population, SeedPost, SocialAgent, load_population, load_posts

Write = Callable[[str, str | bytes], Path]


def line(**fields: Any) -> str:
    """Return one line of a JSON Lines file; a field that is None is left out."""
    agent = {"agent_id": "a", "interests": ["tea"], **fields}
    return json.dumps({name: value for name, value in agent.items() if value is not None}) + "\n"


def kinds(population: Population) -> list[Any]:
    """Return the id, archetype and follows of each agent."""
    return [(agent.agent_id, agent.archetype, agent.following) for agent in population.agents]


def test_json_lines_set_every_field_of_an_agent(write: Write) -> None:
    """A line of prism's own format sets persona, archetype, follows and thresholds."""
    ann = {
        "agent_id": "ann",
        "name": "Ann",
        "interests": ["tea", "open water"],
        "personality": "calm",
        "archetype": "superuser",
        "following": ["bob", "ann", "bob"],
        "engagement_threshold": 0,
        "timeout_threshold": 9,
        "max_history_depth": 3,
    }
    path = write(
        "a.jsonl", json.dumps(ann) + "\n\n" + line(agent_id="bob", archetype="contributor")
    )
    first, second = load_population(path).agents
    given = {name: getattr(first, name) for name in ann}
    assert given == {**ann, "archetype": ARCHETYPES["superuser"], "following": ("bob",)}
    assert (second.name, second.following, second.engagement_threshold) == ("bob", (), 0.5)


def test_archetypes_are_drawn_by_seed_and_name(write: Write) -> None:
    """An archetype that is not in the file depends only on the seed and the agent's id."""
    many = [line(agent_id=f"a{number}") for number in range(60)]
    path = write("a.jsonl", "".join(many))
    first = kinds(load_population(path, seed=1))
    assert kinds(load_population(path, seed=1)) == first
    assert kinds(load_population(path, seed=2)) != first
    assert kinds(load_population(write("b.jsonl", "".join(many[30:])), seed=1)) == first[30:]


def test_posts_load_in_order(write: Write) -> None:
    """A post needs author and text; topics and id are optional, and null counts as absent."""
    path = write(
        "posts.jsonl",
        '{"author_id": "bob", "text": "tea\\nis on", "topics": ["tea"], "post_id": "p1"}\n\n'
        '{"author_id": "ann", "text": "hello"}\n'
        '{"author_id": "ann", "text": "hello", "topics": null, "post_id": null}\n',
    )
    assert load_posts(path, [SocialAgent("ann"), SocialAgent("bob")]) == [
        SeedPost("bob", "tea\nis on", ("tea",), "p1"),
        *[SeedPost("ann", "hello")] * 2,
    ]
