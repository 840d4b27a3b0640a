"""The populations of OASIS."""

import csv
import json
from pathlib import Path

import pytest

from prism.agents import ARCHETYPES, load_population


def test_reddit_personas_load(data: Path) -> None:
    """The 36 Reddit personas of OASIS load with their names, interests and personalities."""
    path = data / "oasis" / "user_data_36.json"
    population = load_population(path)
    people = json.loads(path.read_text(encoding="utf-8"))
    assert len(population.agents) == 36
    assert not population.posts
    for agent, person in zip(population.agents, people, strict=True):
        assert (agent.agent_id, agent.name) == (person["username"], person["realname"])
        assert (agent.interests, agent.personality) == (
            person["interested_topics"],
            person["persona"],
        )
        assert agent.archetype in ARCHETYPES.values()
        assert agent.following == ()


@pytest.mark.parametrize(
    ("name", "follows"),
    [("twitter.csv", [2, 1, 3, 1, 1, 1, 0, 7]), ("twitter_large.csv", [2, 1, 1])],
)
def test_twitter_populations_load_with_their_follow_graph(
    data: Path, name: str, follows: list[int]
) -> None:
    """Both Twitter formats load with their follows, without self-follows and duplicates."""
    with (data / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    agents = load_population(data / name).agents
    ids = [row["username"] for row in rows]
    assert [agent.agent_id for agent in agents] == ids
    assert [(agent.name, agent.personality) for agent in agents] == [
        (row["name"], row["user_char"]) for row in rows
    ]
    assert [len(agent.following) for agent in agents] == follows
    for agent, row in zip(agents, rows, strict=True):
        followed = {ids[number] for number in json.loads(row["following_agentid_list"])}
        assert set(agent.following) == followed - {agent.agent_id}


def test_earlier_tweets_become_posts(data: Path) -> None:
    """Tweets become posts of their authors, in order and over several lines; blank ones do not."""
    population = load_population(data / "twitter.csv")
    texts = [(post.author_id, post.text) for post in population.posts]
    assert texts[:2] == [
        ("gardener_one", "Tomatoes are early this year.\nThe marrows are not."),
        ("gardener_one", "Compost, compost, compost!"),
    ]
    assert [text for author, text in texts if author == "baker_one"] == [
        "Sourdough, day one.",
        "Sourdough, day two:\n- flour\n- water\n- patience",
    ]
    interests = {agent.agent_id: tuple(agent.interests) for agent in population.agents}
    assert all(post.topics == interests[post.author_id] for post in population.posts)


def test_a_foreign_population_loads(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file with the peculiarities of published ones loads, and each is noted once."""
    path = data / "twitter_foreign.csv"
    agents = load_population(path).agents
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    ids = [agent.agent_id for agent in agents]
    assert [name.partition("#")[0] for name in ids] == [row["username"] for row in rows]
    assert [name for name in ids if "#" in name] == ["twin#5", "twin#9"]
    for number, (agent, row) in enumerate(zip(agents, rows, strict=True)):
        followed = dict.fromkeys(json.loads(row["following_agentid_list"]))
        assert agent.following == tuple(ids[other] for other in followed if other != number)
        assert (agent.personality, agent.attributes["user_id"]) == (
            row["user_char"],
            int(row["user_id"]),
        )

    assert [agent.agent_id for agent in agents if not agent.interests] == [
        "balloonist",
        "number",
        "silent",
        "emoji",
    ]
    notes = [record.getMessage().removeprefix(f"{path}: ") for record in caplog.records]
    assert notes == [
        "repeated user names are told apart by their row: ['twin#5', 'twin#9']",
    ]
