"""A run as numbers: totals, arms of treatments, and logs of a part of the agents."""

from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from prism import Run
from prism.analysis import Log, read_log
from prism.report import make_report
from tests.kit.logs import events_in
from tests.kit.worlds import Leaving

FORMS: list[dict[str, Any]] = [{"log_agents": 7}, {"log_agents": 0}]
TOTALS = "agents, agent_ticks, transitions, timeouts, decisions, fallbacks"


def kept(folder: Path, world: str = "epidemic", **form: Any) -> Log:
    """Keep a run of 90 agents in a folder, and return its log."""
    Run(world, 90, rounds=4, seed=3, **form).keep(folder)
    return read_log(folder)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("world", ["epidemic", "market", "feed"])
@pytest.mark.sampled(6)
def test_states_and_totals_are_those_of_everybody(
    form: dict[str, Any], world: str, tmp_path: Path
) -> None:
    """States at the end of rounds and totals are those of the log of all, even with none in it."""
    whole, some = kept(tmp_path / "whole", world), kept(tmp_path / "some", world, **form)
    columns = "select round, tick, state, sum(agents) from states"
    counts = some.sql(f"{columns} group by all order by all").fetchall()
    ends = "where (round, tick) in (select (round, max(tick)) from events group by round)"
    assert counts == whole.sql(f"{columns} {ends} group by all order by all").fetchall()
    shares = some.sql("select sum(share) from states group by round").fetchall()
    assert shares == [(pytest.approx(1.0),)] * 4
    for query in (
        f"select round, {TOTALS} from measured_in(1, null)",
        f"select {TOTALS} from measured_in(3, null) where round is null",
    ):
        assert some.sql(query).fetchall() == whole.sql(query).fetchall()


@pytest.mark.slow
def test_other_tables_are_of_the_sample(tmp_path: Path) -> None:
    """Tables of single agents hold those of the sample, and the note says which are of all."""
    log = kept(tmp_path / "some", log_agents=7)
    assert len(log.rows("agents")) == 7
    (measured,) = log.rows("run_measures")
    assert sum(row["count"] for row in log.rows("transitions")) < measured["transitions"]
    assert "has only 7 of 90 agents: states, measures and totals of" in log.notes[0].message
    assert "7 of 90 agents, 4 rounds" in make_report(log).html()
    (note,) = kept(tmp_path / "none", log_agents=0).notes
    assert "has only the rounds, and none of 90 agents: `prism log states`" in note.message


def test_a_round_that_did_not_end_is_not_counted(tmp_path: Path) -> None:
    """A sampled log that was cut off in its first round has no states, rather than a few."""
    kept(tmp_path / "some", log_agents=7)
    path = tmp_path / "some" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    ends = [index for index, line in enumerate(lines) if b'"round.ended"' in line]
    for end, rounds in ((ends[1], {1}), (ends[0], set())):
        path.write_bytes(b"".join(lines[:end]))
        assert {row["round"] for row in read_log(path).rows("states")} == rounds


@pytest.mark.slow
def test_measures_are_those_of_the_tables(folder: Path, events: list[dict[str, Any]]) -> None:
    """The row agrees with the tables that describe the same run, and with its own log."""
    log = read_log(folder)
    (row,) = log.rows("run_measures")
    ended = events[-1]
    trees = log.rows("cascades")
    acts = sum(ended[name] for name in ("posts", "replies", "reshares", "likes"))
    views = sum(each.get("trigger") == "sees_post" for each in events if "to_state" in each)
    last = log.rows("participation")[-1]
    viral = [tree["virality"] for tree in trees if tree["virality"] is not None]
    expected = {
        **{name: ended[name] for name in ("agent_ticks", "transitions", "posts", "replies")},
        **{name: ended[name] for name in ("reshares", "likes")},
        **{"decisions": ended["decisions_asked"], "fallbacks": 0},
        "timeouts": sum(ended["timeouts"].values()),
        **{"views": views, "browsing": views / (views + acts)},
        **{"cascades": len(trees), "singletons": mean(tree["size"] == 1 for tree in trees)},
        "beyond_one_degree": mean(tree["depth"] > 1 for tree in trees),
        "largest_cascade": max(tree["size"] for tree in trees),
        "deepest_cascade": max(tree["depth"] for tree in trees),
        "virality": mean(viral),
        **{name: last[name] for name in ("silent", "top_1", "gini")},
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_agents_who_left_take_no_steps(logs: dict[str, Path]) -> None:
    """Agent-ticks are the steps that the log counts, not agents times ticks."""
    (row,) = read_log(logs["leaving"]).rows("run_measures")
    assert row["agent_ticks"] == events_in(logs["leaving"])[-1]["agent_ticks"] < 30 * 36


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
