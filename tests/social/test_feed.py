"""The feed as a world: parameters, treatments, measures and events of one's own, and its files."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.agents import SeedPost, SocialAgent, load_population
from prism.errors import FieldValueError, InputError
from prism.social import Feed, Post, Reader
from prism.statechart import AgentState
from prism.worlds import measure, state, treatment


def parameters_of(feed: Feed) -> dict[str, Any]:
    """Return a feed's parameters as JSON has them."""
    fields = type(feed).fields.items()
    values = {name: getattr(feed, name) for name, each in fields if not each.is_state}
    return {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}


DATA = Path(__file__).parents[1] / "data"
AGENTS, ROUNDS = 40, 4


class Warned(Feed):
    """A feed whose readers are warned, and which counts those who were."""

    rounds = ROUNDS
    preset = "classic"
    threshold: float = 0.3
    warned: int = state(0)

    def should_engage(self, reader: Reader, post: Post) -> bool:
        return reader.relevance(post) > self.threshold

    def compose(self, reader: Reader, kind: Any, post: Any, topics: Any, stream: Any) -> str:
        self.log("composed", agent=reader, kind=kind)
        return "Is that so?"

    @treatment
    def warning(self) -> None:
        self.threshold = 0.9
        self.warned += len(self.agents)
        self.publish(self.agents[0], "Think before you share.", ["trust"])

    @measure
    def replies(self) -> int:
        return sum(post.kind == "reply" for post in self.posts)

    @measure
    def idle(self) -> float:
        return self.share(AgentState.IDLE)

    @measure
    def warned_so_far(self) -> int:
        return self.warned


def events_of(folder: Path, *names: str) -> list[dict[str, Any]]:
    """Return the events of a kept run."""
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    return [event for event in map(orjson.loads, lines) if not names or event["event"] in names]


def test_a_feed_of_ones_own_is_a_world(tmp_path: Path) -> None:
    """Parameters, treatments, measures and events of a feed stand in the log as any world's do."""
    world = Warned(threshold=0.1)
    Run(world, AGENTS, treatments=["warning@3"]).keep(tmp_path / "run")
    events = events_of(tmp_path / "run")
    assert events[0]["world"] == "Warned"
    assert events[0]["parameters"] == {**parameters_of(Warned(threshold=0.1)), "threshold": 0.1}
    ended = [event for event in events if event["event"] == "round.ended"]
    rounds = [event["measures"] for event in ended]
    assert [each["warned_so_far"] for each in rounds] == [0, 0, AGENTS, AGENTS]
    assert rounds[2]["replies"] > rounds[1]["replies"] > 0
    assert [each["idle"] * AGENTS for each in rounds] == [each["states"]["idle"] for each in ended]

    (treated,) = [event for event in events if event["event"] == "treatment.applied"]
    assert (treated["round"], treated["parameters"]) == (3, {"threshold": 0.9})
    posts = [event for event in events if event["event"] == "post.published"]
    (warning,) = [post for post in posts if post["text"] == "Think before you share."]
    assert (warning["agent_id"], warning["round"], warning["tick"]) == ("agent_0001", 3, 0)
    composed = [event for event in events if event["event"] == "world.composed"]
    assert len(composed) == sum(post["text"] == "Is that so?" for post in posts)

    def weighed(*rounds: int) -> int:
        decisions = [event for event in events if event["event"] == "reasoner.decision"]
        return sum(event["round"] in rounds for event in decisions)

    assert weighed(4) < weighed(2)


# Files


def test_a_twitter_population_lives(tmp_path: Path) -> None:
    """A run on a Twitter population begins with its tweets and uses its follow graph."""
    Run(Feed, DATA / "twitter.csv", rounds=2).keep(tmp_path)
    population = load_population(DATA / "twitter.csv")
    posts = [each for each in events_of(tmp_path, "post.published") if each["round"] == 0]
    assert sorted(each["text"] for each in posts) == sorted(each.text for each in population.posts)
    follows = {each["agent_id"]: each["follows"] for each in events_of(tmp_path, "agent.joined")}
    assert follows == {agent.agent_id: [*agent.following] for agent in population.agents}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a file of people and one of posts."""
    people, posts = tmp_path / "people.jsonl", tmp_path / "posts.jsonl"
    lines = (f'{{"agent_id": "{name}", "interests": ["art"]}}\n' for name in ("ann", "ben"))
    people.write_text("".join(lines))
    posts.write_text(
        '{"author_id": "ann", "text": "Look.", "topics": ["art"], "post_id": "post_000000"}\n'
        '{"author_id": "ben", "text": "Hm."}\n'
    )
    return people, posts


def test_a_run_begins_with_a_file_of_posts(files: tuple[Path, Path], tmp_path: Path) -> None:
    """They are published before the first round; made-up ids are never those of the file."""
    people, posts = files
    parameters = {"first_posts": str(posts), "posts_per_tick": 0.2}
    Run(Feed, people, rounds=1, parameters=parameters).keep(tmp_path / "run")
    published = events_of(tmp_path / "run", "post.published")
    opening = [
        (post["agent_id"], post["text"], post["topics"]) for post in published if not post["round"]
    ]
    assert sorted(opening) == [("ann", "Look.", ["art"]), ("ben", "Hm.", [])]
    ids = [post["post_id"] for post in published]
    assert "post_000000" in ids
    assert len(ids) == len({*ids}) > 3
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert str(posts) in config["inputs"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"author_id": "eve", "text": "x"}', "no agent of the population is called 'eve'"),
        ('{"author_id": "ann", "text": 7}', "must be text, got 7"),
        ('{"author_id": "ann", "text": "x", "likes": 7}', "unknown field; known are author_id, "),
    ],
)
def test_a_file_of_posts_that_does_not_fit_is_refused(
    line: str, message: str, files: tuple[Path, Path]
) -> None:
    """The message names file, line and field."""
    people, posts = files
    with posts.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=message) as refused:
        Run(Feed, people, rounds=1, parameters={"first_posts": str(posts)}).run()
    assert (refused.value.path, refused.value.line) == (str(posts), 3)
    twice = [SeedPost("ann", text, post_id="p") for text in ("one", "two")]
    with pytest.raises(FieldValueError, match="two have the id 'p'"):
        Run(Feed(first_posts=twice), [SocialAgent("ann")]).run()
