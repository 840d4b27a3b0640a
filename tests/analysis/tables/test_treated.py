"""Tables of who and what was treated."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from prism import Run
from prism.analysis import read_log
from prism.social import Dislikes, Feed, Likes, RemoveAgents
from tests.kit.tables import agents, arms, cascades, events_of


@pytest.fixture(scope="module")
def treated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with votes and removals."""
    folder = tmp_path_factory.mktemp("treated") / "run"
    votes = (Likes(1, share=0.4, experiment="v"), Dislikes(1, share=0.3, experiment="v"))
    treatments = (*votes, RemoveAgents(2, share=0.2))
    dislike = {"dislike_chance": 0.3}
    Run(
        Feed, 60, rounds=3, treatments=treatments, parameters={"preset": "classic", **dislike}
    ).keep(folder)
    return folder


@pytest.mark.slow
def test_arms_are_what_the_log_gives(treated: Path) -> None:
    """Means by arm are those of a count by hand; every assigned post is in one arm."""
    lines = (treated / "events.jsonl").read_bytes().splitlines()
    events = [orjson.loads(line) for line in lines]
    voted = {each["post_id"]: each for each in events if each["event"] == "post.voted"}
    by_arm: dict[str, list[tuple[int, int, int]]] = {}
    for each in events:
        if each["event"] == "treatment.assigned" and "post_id" in each:
            name = each["post_id"]
            likes = _count(events, "post.liked", post_id=name)
            votes = voted.get(name, {"likes": 0, "dislikes": 0})
            dislikes = _count(events, "post.disliked", post_id=name)
            replies = _count(events, "post.published", parent_id=name, kind="reply")
            score = likes - dislikes + votes["likes"] - votes["dislikes"]
            by_arm.setdefault(each["arm"], []).append((likes, replies, score))

    assert _count(events, "post.disliked")
    table = arms(read_log(treated))
    assert table["arm"].to_list() == ["control", "dislikes", "likes"]
    for row in table.iter_rows(named=True):
        likes, replies, scores = zip(*by_arm[row["arm"]], strict=True)
        assert row["posts"] == len(scores)
        assert row["likes"] == pytest.approx(sum(likes) / len(likes))
        assert row["replies"] == pytest.approx(sum(replies) / len(replies))
        assert row["score"] == pytest.approx(sum(scores) / len(scores))
        half = 1.96 * pl.Series(scores).std() / len(scores) ** 0.5
        assert row["score_high"] - row["score"] == pytest.approx(half, rel=1e-3)

    rounds = arms(read_log(treated), by_round=True)
    assert rounds["posts"].sum() == table["posts"].sum() == sum(map(len, by_arm.values()))


def test_agents_and_cascades_have_their_arm(treated: Path) -> None:
    """The arm of an agent, or of the root of a cascade, comes behind the id."""
    logs = read_log(treated)
    told = events_of(logs, "treatment.assigned")
    of_agents = told.drop_nulls("agent_id").select("agent_id", "arm")
    table = agents(logs)
    assert dict(table.select("agent_id", "arm").iter_rows()) == dict(of_agents.iter_rows())
    assert table.columns.index("arm") == table.columns.index("agent_id") + 1
    of_posts = set(told.drop_nulls("post_id").select("post_id", "arm").rows())
    roots = cascades(logs).select("root_id", "arm").drop_nulls()
    assert roots.height > 0
    assert set(roots.rows()) <= of_posts


def _count(events: list[dict[str, Any]], name: str, **wanted: Any) -> int:
    return sum(
        each["event"] == name and all(each[key] == value for key, value in wanted.items())
        for each in events
    )
