"""Loading populations and posts from files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.agents import ARCHETYPES, Population, SeedPost, SocialAgent, load_population, load_posts
from tests.kit.files import place, refusal

Write = Callable[[str, str | bytes], Path]

TWITTER_HEADER = "username,following_agentid_list,previous_tweets,user_char\n"


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


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", "x", "must end in one of .jsonl, .json, .csv, .yaml, .yml, got '.txt'"),
        ("a.jsonl", "", "is empty"),
        ("a.jsonl", "\n \n", "holds no agents"),
        ("a.json", "[]", "holds no agents"),
        ("a.csv", TWITTER_HEADER, "holds no agents"),
    ],
)
def test_a_file_without_agents_is_refused(
    write: Write, name: str, content: str, problem: str
) -> None:
    """A file of another kind, or without agents, is an InputError that names it."""
    path = write(name, content)
    error = refusal(load_population, path)
    assert (place(error), error.problem) == ((str(path), None, None), problem)


@pytest.mark.parametrize(
    ("content", "at", "field", "problem"),
    [
        (line() + '{"interests": ["tea"]}', 2, "agent_id", "is missing"),
        (line(agent_id="a\0"), 1, "agent_id", "contains a NUL or half a surrogate pair"),
        (line() + line(), 2, "agent_id", "'a' is already used on line 1"),
        (
            line() + "\n" + line(agent_id="b", following=["a", "c"]),
            3,
            "following",
            "no agent of this file is called 'c'",
        ),
        (
            line(engagement_threshold=1.5),
            1,
            "engagement_threshold",
            "engagement_threshold must be a number from 0.0 to",
        ),
    ],
)
def test_json_lines_are_refused_at_line_and_field(
    write: Write, content: str | bytes, at: int, field: str | None, problem: str
) -> None:
    """An error in JSON Lines names file, line and field."""
    path = write("a.jsonl", content)
    error = refusal(load_population, path)
    assert place(error) == (str(path), at, field)
    assert error.problem.startswith(problem)


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
