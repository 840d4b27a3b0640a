"""Every agent, with what it is and did."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prism.analysis import read_log
from tests.kit.tables import agents

WriteLog = Callable[..., Path]


def test_agents_are_those_of_the_log(folder: Path, events: list[dict[str, Any]]) -> None:
    """Facts, last states and counts of every agent are what a plain reading of the log gives."""
    table = {row["agent_id"]: row for row in agents(read_log(folder)).iter_rows(named=True)}
    joined = {each["agent_id"]: each for each in events if each["event"] == "agent.joined"}
    assert list(table) == sorted(joined)

    states = {name: each["state"] for name, each in joined.items()}
    counts: dict[str, Counter[str]] = {name: Counter() for name in joined}
    names = {
        "statechart.transition": "transitions",
        "post.weighed": "weighed",
        "reasoner.decision": "decisions",
    }
    for event in events:
        if event["event"] in names:
            counts[event["agent_id"]][names[event["event"]]] += 1
        if event["event"] == "statechart.transition":
            states[event["agent_id"]] = event["to_state"]

    for name, row in table.items():
        facts = ("display_name", "archetype", "interests", "following")
        assert {fact: row[fact] for fact in facts} == {fact: joined[name][fact] for fact in facts}
        assert row["state"] == states[name]
        assert {each: row[each] for each in names.values()} == {
            each: counts[name][each] for each in names.values()
        }


def test_numbers_in_names_are_sorted_as_numbers(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Agents come in natural order: by the numbers in their names, and not by the digits."""
    names = ["b_1", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "a", "02", "2", "10"]
    lines = [make.move(name, "on", "off") for name in names]
    table = agents(read_log(write_log(lines)))
    expected = ["02", "2", "10", "a", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "b_1"]
    assert table["agent_id"].to_list() == expected


def test_a_log_of_ones_own_has_what_it_tells(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Without joins facts are null; fallbacks are counted; several runs are told apart."""
    own = [
        make.move("ann", "a", "b"),
        make.decision("ann", ["a"], "a", source="fallback", reason="timed out"),
        make.decision("ann", ["a"], "a"),
    ]
    first = write_log(own, "first.jsonl")
    table = agents(read_log(first, write_log([make.move("ann", "b", "c")], "second.jsonl")))
    shown = ("run", "agent_id", "display_name", "state", "transitions", "decisions", "fallbacks")
    assert table.select(shown).rows() == [
        ("first", "ann", None, "b", 1, 2, 1),
        ("second", "ann", None, "c", 1, 0, 0),
    ]


def test_the_log_of_a_loop_has_no_columns_of_a_feed(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A log whose first line names no chart has columns of posts only if something was posted."""
    loop = [make.event("run.started", schema=1), make.move("x", "a", "b")]
    assert "posts" not in agents(read_log(write_log(loop))).columns
    assert "posts" in agents(read_log(write_log([*loop, make.post("x", "p1")]))).columns
