"""What came of the posts that agents opened, and how far posts reached."""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import polars as pl
import pytest

from prism.analysis import reach, read_log, run_measures, views
from prism.errors import FieldValueError
from tests.kit.logs import AGENTS
from tests.kit.occupancy import cut_off, read_events

WriteLog = Callable[..., Path]
WAYS = {"decides": "decided", "ignores": "ignored", "timeout": "timed_out", "round_ends": "cut"}
OUTCOMES = ("decided", "ignored", "timed_out", "cut", "discarded", "other", "pending")


def of_kind(events: list[dict[str, Any]], name: str, **keys: Any) -> list[dict[str, Any]]:
    return [
        event
        for event in events
        if event["event"] == name and all(event[key] == value for key, value in keys.items())
    ]


@pytest.mark.slow
def test_every_view_has_one_outcome(
    folder: Path, faulty: Path, carried: Path, tmp_path: Path
) -> None:
    """Views are the sum of what came of them, by policy and model, and in logs that are cut off."""
    paths = [folder / "events.jsonl", carried / "events.jsonl", faulty]
    paths += cut_off(paths[0], tmp_path, 0.3, 0.6)

    for path in paths:
        events = read_events(path)
        table = views(read_log(path))
        (row,) = table.filter(pl.col("round").is_null()).iter_rows(named=True)
        opened = of_kind(events, "statechart.transition", trigger="sees_post")
        left = of_kind(events, "statechart.transition", from_state="evaluating")
        counts = Counter(WAYS[event["trigger"]] for event in left)
        assert row["views"] == len(opened) == sum(row[name] for name in OUTCOMES)
        assert {name: row[name] for name in WAYS.values()} == {
            name: counts[name] for name in WAYS.values()
        }
        assert row["pending"] == len(opened) - len(left)
        assert row["decisions"] == len(of_kind(events, "reasoner.decision", state="evaluating"))
        assert row["decisions"] - row["answers_discarded"] - row["decided"] in range(
            1 + row["pending"]
        )
        by_round = table.drop_nulls("round")
        assert by_round.drop("round").sum().row(0) == tuple(row.values())[1:]


def test_a_discarded_answer_is_an_outcome_of_its_own(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """An agent that was moved while its answer was under way was not timed out, nor cut."""
    see = {"trigger": "sees_post", "context": {"post_id": "p"}}
    lines = [
        make.post("z", "p"),
        make.move("x", "scrolling", "evaluating", **see),
        make.move("y", "scrolling", "evaluating", **see),
        make.decision("x", ["a", "b"], "a", state="evaluating"),
        make.move("x", "evaluating", "resting", "sent_away"),
        make.event("statechart.answer_discarded", agent_id="x", asked_in="evaluating"),
        make.move("y", "evaluating", "resting", "sent_away"),
    ]
    lines[4], lines[5] = lines[5], lines[4]
    table = views(read_log(write_log(lines)))
    assert table.select("views", "discarded", "other", "decisions").rows() == [(2, 1, 1, 1)] * 2


@pytest.mark.slow
def test_reach_is_that_of_the_events(folder: Path, events: list[dict[str, Any]]) -> None:
    """Readers of posts and cascades, and what agents opened, are counted plainly."""
    posts = {each["post_id"]: each for each in of_kind(events, "post.published")}
    readers, cascades, seen = defaultdict(list), defaultdict(list), defaultdict(list)
    for event in of_kind(events, "statechart.transition", trigger="sees_post"):
        post = event["context"]["post_id"]
        readers[post].append(event["agent_id"])
        cascades[posts[post]["root_id"]].append(event["agent_id"])
        seen[event["agent_id"]].append(post)

    logs = read_log(folder)
    for table, key, found in (
        (reach(logs, of="posts"), "post_id", readers),
        (reach(logs), "root_id", cascades),
    ):
        assert table[key].is_unique().all()
        for row in table.iter_rows(named=True):
            who = found[row[key]]
            assert (row["views"], row["readers"]) == (len(who), len(set(who)))
            assert row["share"] == pytest.approx(len(set(who)) / AGENTS)
    assert set(reach(logs, of="posts")["post_id"]) == set(posts)

    for row in reach(logs, of="agents").iter_rows(named=True):
        own = seen[row["agent_id"]]
        authors = {posts[post]["agent_id"] for post in own}
        assert (row["views"], row["posts"], row["authors"]) == (
            len(own),
            len(set(own)),
            len(authors),
        )
        mine = [post for post in posts if posts[post]["agent_id"] == row["agent_id"]]
        assert row["received"] == sum(len(readers[post]) for post in mine)
        assert row["readers"] == len({who for post in mine for who in readers[post]})

    with pytest.raises(FieldValueError, match="not 'likes'"):
        reach(logs, of="likes")  # type: ignore[arg-type]


OF = {"posts": "post_id", "cascades": "root_id", "agents": "agent_id"}


@pytest.mark.parametrize("of", OF)
@pytest.mark.slow
def test_reach_by_round_is_that_of_each_round(
    of: Literal["posts", "cascades", "agents"], folder: Path, events: list[dict[str, Any]]
) -> None:
    """Rows of a round count who opened what in it; those of all rounds are the table without."""
    logs = read_log(folder)
    table = reach(logs, of=of, by_round=True)
    in_all = table.filter(pl.col("round").is_null()).drop("round")
    assert in_all.rename({"published": "round"}, strict=False).equals(reach(logs, of=of))
    posts = {each["post_id"]: each for each in of_kind(events, "post.published")}
    opened = of_kind(events, "statechart.transition", trigger="sees_post")
    readers = {
        (each["round"], posts[each["context"]["post_id"]][OF[of]], each["agent_id"])
        for each in opened
    }
    summed = table.drop_nulls("round").group_by("round").agg(pl.col("views", "readers").sum())
    assert {number: views for number, views, _ in summed.iter_rows()} == Counter(
        each["round"] for each in opened
    )
    assert {number: found for number, _, found in summed.iter_rows()} == Counter(
        number for number, _, _ in readers
    )


def test_worlds_without_posts_have_no_views(market: Path) -> None:
    """A world without posts has no views, which a note says, and measures of its own."""
    logs = read_log(market)
    assert views(logs).is_empty()
    assert reach(logs).is_empty()
    assert [note.kind for note in logs.notes] == ["no_feed"]
    (row,) = run_measures(logs).iter_rows(named=True)
    assert (row["posts"], row["browsing"], row["singletons"]) == (0, None, None)
    assert row["mean_price"] > 0
