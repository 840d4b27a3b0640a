"""Tables of who and what was treated."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from prism import Run
from prism.analysis import read_log
from tests.kit.tables import arms
from tests.kit.worlds import Leaving


@pytest.fixture(scope="module")
def treated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with votes and removals."""
    folder = tmp_path_factory.mktemp("treated") / "run"
    votes = {"up_treated": 0.4, "down_treated": 0.3}
    values = {"preset": "classic", "dislike_chance": 0.3, **votes}
    Run(Leaving, 60, rounds=3, treatments=["leave@2"], parameters=values).keep(folder)
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


def _count(events: list[dict[str, Any]], name: str, **wanted: Any) -> int:
    return sum(
        each["event"] == name and all(each[key] == value for key, value in wanted.items())
        for each in events
    )
