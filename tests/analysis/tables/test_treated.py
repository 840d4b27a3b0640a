"""Tables of who and what was treated."""

from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, stdev

import pytest

from prism import Run
from prism.analysis import read_log
from tests.kit.logs import events_in
from tests.kit.worlds import Leaving


@pytest.mark.slow
def test_arms_are_what_the_log_gives(tmp_path: Path) -> None:
    """Means by arm are those of a count by hand; every assigned post is in one arm."""
    votes = {"up_treated": 0.4, "down_treated": 0.3}
    values = {"preset": "classic", "dislike_chance": 0.3, **votes}
    run = Run(Leaving, 60, rounds=3, treatments=["leave@2"], parameters=values)
    run.keep(tmp_path / "run")
    events = events_in(tmp_path / "run")
    counts, voted = defaultdict[str, Counter[str]](Counter), Counter[str]()
    for each in events:
        if each["event"] in ("post.liked", "post.disliked"):
            counts[each["post_id"]][each["event"]] += 1
        elif each["event"] == "post.published" and each["kind"] == "reply":
            counts[each["parent_id"]]["reply"] += 1
        elif each["event"] == "post.voted":
            voted[each["post_id"]] += each["likes"] - each["dislikes"]

    by_arm = defaultdict[str, list[tuple[int, int, int]]](list)
    for each in events:
        if each["event"] == "treatment.assigned" and "post_id" in each:
            own = counts[each["post_id"]]
            score = own["post.liked"] - own["post.disliked"] + voted[each["post_id"]]
            by_arm[each["arm"]].append((own["post.liked"], own["reply"], score))

    assert any(own["post.disliked"] for own in counts.values())
    log = read_log(tmp_path / "run")
    rows = log.rows("arms")
    assert [row["arm"] for row in rows] == ["control", "dislikes", "likes"]
    for row in rows:
        likes, replies, scores = zip(*by_arm[row["arm"]], strict=True)
        assert row["posts"] == len(scores)
        means = (row["likes"], row["replies"], row["score"])
        assert means == pytest.approx((mean(likes), mean(replies), mean(scores)))
        half = 1.96 * stdev(scores) / len(scores) ** 0.5
        assert row["score_high"] - row["score"] == pytest.approx(half, rel=1e-3)

    rounds = log.rows("arms_by", ["round"])
    assert sum(row["posts"] for row in rounds) == sum(map(len, by_arm.values()))
