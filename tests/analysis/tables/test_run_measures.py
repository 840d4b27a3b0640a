"""A run as one row of numbers."""

from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from prism.analysis import read_log
from tests.kit.occupancy import read_events
from tests.kit.tables import cascades, participation, run_measures


@pytest.mark.slow
def test_measures_are_those_of_the_tables(folder: Path, events: list[dict[str, Any]]) -> None:
    """The row agrees with the tables that describe the same run, and with its own log."""
    logs = read_log(folder)
    (row,) = run_measures(logs).iter_rows(named=True)
    ended = events[-1]
    for name in ("agent_ticks", "transitions", "posts", "replies", "reshares", "likes"):
        assert row[name] == ended[name]
    assert (row["decisions"], row["fallbacks"]) == (ended["decisions_asked"], 0)
    assert row["timeouts"] == sum(ended["timeouts"].values())

    trees = cascades(logs)
    acts = sum(ended[name] for name in ("posts", "replies", "reshares", "likes"))
    assert row["browsing"] == row["views"] / (row["views"] + acts)
    moves = [each for each in events if each["event"] == "statechart.transition"]
    opened = [each for each in moves if each["trigger"] == "sees_post"]
    assert row["views"] == len(opened)
    assert row["cascades"] == trees.height
    assert row["singletons"] == pytest.approx((trees["size"] == 1).mean())
    assert row["beyond_one_degree"] == pytest.approx((trees["depth"] > 1).mean())
    assert (row["largest_cascade"], row["deepest_cascade"]) == (
        trees["size"].max(),
        trees["depth"].max(),
    )
    assert row["virality"] == pytest.approx(trees["virality"].mean())
    last = participation(logs).row(-1, named=True)
    assert {name: row[name] for name in ("silent", "top_1", "gini")} == {
        name: last[name] for name in ("silent", "top_1", "gini")
    }


def test_trees_of_reshares_grow_from_posts_and_replies(
    folder: Path, events: list[dict[str, Any]]
) -> None:
    """A reshare of a reply belongs to a tree of its own, and replies end trees."""
    posts = {each["post_id"]: each for each in events if each["event"] == "post.published"}
    depths: dict[str, int] = {}
    largest = dict.fromkeys((key for key, each in posts.items() if each["kind"] != "reshare"), 0)
    for key, each in posts.items():
        depths[key] = 0 if each["kind"] != "reshare" else depths[each["parent_id"]] + 1
        origin = key
        while posts[origin]["kind"] == "reshare":
            origin = posts[origin]["parent_id"]
        largest[origin] = max(largest[origin], depths[key])

    (row,) = run_measures(read_log(folder)).iter_rows(named=True)
    heights = list(largest.values())
    assert row["reshare_singletons"] == pytest.approx(heights.count(0) / len(heights))
    deep = sum(height > 1 for height in heights)
    assert row["reshare_beyond_one_degree"] == pytest.approx(deep / len(heights))
    assert row["deepest_reshare"] == max(heights)


def test_the_pace_of_cascades_is_that_of_their_median_answers(
    folder: Path, events: list[dict[str, Any]]
) -> None:
    """For each cascade: the median answer's time since the root, as a share of the last one's."""
    length = read_log(folder).runs[0].ticks_per_round
    clocks: dict[str, list[int]] = {}
    for each in events:
        if each["event"] == "post.published":
            clock = max(each["round"] - 1, 0) * length + each["tick"]
            clocks.setdefault(each["root_id"] or each["post_id"], []).append(clock)
    after = [[one - begun for one in answers] for begun, *answers in clocks.values() if answers]
    places = [median(each) / max(each) for each in after if max(each)]

    (row,) = run_measures(read_log(folder)).iter_rows(named=True)
    assert row["median_place"] == pytest.approx(mean(places))


@pytest.mark.slow
def test_measures_are_the_same_to_the_bit(folder: Path) -> None:
    """However the rows of a table are grouped: sums of floats depend on their order."""
    logs = read_log(folder)
    first = run_measures(logs, by_round=True)
    assert all(run_measures(logs, by_round=True).equals(first) for _ in range(10))


@pytest.mark.slow
def test_a_burn_in_is_left_out(folder: Path, events: list[dict[str, Any]]) -> None:
    """From a round on, everything from before is left out, and rounds add up to the whole."""
    logs = read_log(folder)
    later = run_measures(logs, from_round=3, by_round=True)
    assert later["round"].to_list() == [3, 4, None]
    likes = sum(each["event"] == "post.liked" and each["round"] >= 3 for each in events)
    counts = ("agent_ticks", "transitions", "decisions", "posts", "likes", "views", "cascades")
    whole = later.row(-1, named=True)
    assert whole["likes"] == likes
    assert later.head(2).select(counts).sum().row(0, named=True) == {
        name: whole[name] for name in counts
    }
    every = run_measures(logs, by_round=True)
    assert every.filter(round=3).row(0, named=True)["views"] == later["views"][0]


def test_agents_who_left_take_no_steps(carried: Path) -> None:
    """Agent-ticks are the steps that the log counts, not agents times ticks."""
    (row,) = run_measures(read_log(carried)).iter_rows(named=True)
    *_, ended = read_events(carried / "events.jsonl")
    assert row["agent_ticks"] == ended["agent_ticks"] < 30 * 36


@pytest.mark.slow
def test_worlds_have_measures_of_their_own(rumours: list[Path]) -> None:
    """Of several runs each has its row, with the parameters, and its measures of the last round."""
    table = run_measures(read_log(*rumours))
    assert table["run"].to_list() == ["friends-4", "friends-8"]
    assert table["friends"].to_list() == [4, 8]
    by_round = run_measures(read_log(*rumours), by_round=True)
    last = by_round.filter(round=10)["reached"].to_list()
    assert table["reached"].to_list() == last
