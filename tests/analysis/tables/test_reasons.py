"""What an agent did about each post, and why."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import read_log, reasons
from prism.errors import InputError

WriteLog = Callable[..., Path]

ABOUT = {"post_id": "p1"}


def looks_at(make: SimpleNamespace, **keys: Any) -> dict[str, Any]:
    """Return the transition with which ann looks at a post."""
    event: dict[str, Any] = make.move(
        "ann", "scrolling", "evaluating", "sees_post", context=ABOUT, **keys
    )
    return event


def goes_on(make: SimpleNamespace, trigger: str, target: str = "scrolling") -> dict[str, Any]:
    """Return the transition with which ann is done with a post."""
    event: dict[str, Any] = make.move("ann", "evaluating", target, trigger, context=None)
    return event


def weighed(make: SimpleNamespace, relevance: float | None, threshold: float) -> dict[str, Any]:
    """Return the weighing of a post."""
    event: dict[str, Any] = make.event(
        "post.weighed", agent_id="ann", post_id="p1", relevance=relevance, threshold=threshold
    )
    return event


def looks_of(events: list[dict[str, Any]], agent: str) -> Iterator[tuple[Any, ...]]:
    """Yield the lines in which an agent is done with posts, with post, relevance and threshold."""
    found: dict[str, Any] = {}
    for number, event in enumerate(events, start=1):
        if event.get("agent_id") != agent:
            continue
        if event["event"] == "post.weighed":
            found = event
        if event.get("from_state") == "evaluating" and event["trigger"] in ("ignores", "decides"):
            yield number, found["post_id"], found["relevance"], found["threshold"]


@pytest.mark.slow
def test_every_post_has_its_reason(folder: Path, events: list[dict[str, Any]]) -> None:
    """Each has the relevance and threshold of its weighing, and the topics of the post."""
    logs = read_log(folder)
    topics = {each["post_id"]: each["topics"] for each in events if each.get("text") is not None}
    asked = 0
    for agent in sorted({each["agent_id"] for each in events if "agent_id" in each})[:15]:
        table = reasons(logs, agent)
        weighed = table.filter(table["trigger"].is_in(["ignores", "decides"]))
        shown = weighed.select("line", "post_id", "relevance", "threshold").rows()
        assert shown == list(looks_of(events, agent))
        for row in weighed.iter_rows(named=True):
            is_asked = row["relevance"] >= row["threshold"]
            assert (len(row["options"]) > 1) is is_asked
            assert (row["source"] == "policy") is is_asked
            assert row["topics"] == topics[row["post_id"]]
            asked += is_asked
    assert asked > 10
    assert logs.notes == ()


def test_each_way_of_leaving_a_post_has_its_phrase(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """What was open, what was chosen and why are told for each way in which a post is left."""
    asked = {"state": "evaluating", "context": ABOUT}
    options = ["composing", "scrolling"]
    failed = {"source": "fallback", "reason": "timed out"}
    lines = [
        make.post("ben", "p1", topics=["art"]),
        *(looks_at(make), weighed(make, 0.125, 0.5), goes_on(make, "ignores")),
        *(looks_at(make), weighed(make, 0.5, 0.5)),
        *(make.decision("ann", options, "scrolling", **asked), goes_on(make, "decides")),
        *(looks_at(make), weighed(make, 0.5, 0.5)),
        *(
            make.decision("ann", options, "scrolling", **asked, said="It is dull."),
            goes_on(make, "decides"),
        ),
        *(looks_at(make), weighed(make, 0.5, 0.5)),
        *(make.decision("ann", options, "scrolling", **asked, **failed), goes_on(make, "decides")),
        *(looks_at(make), weighed(make, 0.9, 0.5)),
        *(
            make.decision("ann", options, "composing", **asked),
            goes_on(make, "decides", "composing"),
        ),
        *(looks_at(make), goes_on(make, "timeout")),
        *(looks_at(make), goes_on(make, "round_ends", "idle")),
        *(looks_at(make), weighed(make, None, 0.5), goes_on(make, "ignores")),
    ]
    table = reasons(read_log(write_log(lines)), "ann")
    assert table.select("options", "chosen", "why").rows() == [
        (["scrolling"], "scrolling", "relevance 0.125 is below 0.5"),
        (options, "scrolling", "chose scrolling (policy)"),
        (options, "scrolling", 'chose scrolling (policy), saying "It is dull."'),
        (options, "scrolling", "chose scrolling (fallback: timed out)"),
        (options, "composing", "chose composing (policy)"),
        ([], "scrolling", "left by timeout before it was weighed"),
        ([], "idle", "the round ended before it was weighed"),
        (["scrolling"], "scrolling", "there was no other option"),
    ]
    assert set(table.select("post_id", "author_id").rows()) == {("p1", "ben")}
    assert table["topics"].to_list() == [["art"]] * 8


def test_a_log_without_weighings_says_so(
    write_log: WriteLog, make: SimpleNamespace, events: list[dict[str, Any]]
) -> None:
    """An older log has the same posts without relevance and threshold, and one note on it."""
    older = read_log(write_log([each for each in events if each["event"] != "post.weighed"]))
    newer = read_log(write_log(events, "newer.jsonl"))
    table, whole = reasons(older, "agent_0001"), reasons(newer, "agent_0001")
    same = ("round", "tick", "post_id", "topics", "options", "chosen", "source")
    assert table.select(same).equals(whole.select(same))
    assert table["relevance"].null_count() == table["threshold"].null_count() == table.height > 5
    assert [note.kind for note in older.notes] == ["not_weighed"]
    assert newer.notes == ()


def test_an_agent_that_is_not_there_is_refused(folder: Path) -> None:
    """An unknown agent is refused, with some that are there."""
    with pytest.raises(InputError, match="no agent 'nobody' in the log; the first in it are"):
        reasons(read_log(folder), "nobody")


def test_an_agent_that_looked_at_nothing_has_no_rows(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """An agent that is in the log and looked at nothing has an empty table."""
    assert reasons(read_log(write_log([make.joined("ann")])), "ann").is_empty()
