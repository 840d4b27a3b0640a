"""One agent's whole story."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from prism.analysis import read_log
from prism.errors import InputError
from prism.worlds import Run
from tests.kit.tables import agent_story
from tests.kit.textbook import Moran

WriteLog = Callable[..., Path]


def test_story_has_all_events_of_the_agent(folder: Path, events: list[dict[str, Any]]) -> None:
    """A story has the agent's own events, likes of its posts and answers to them, in order."""
    logs = read_log(folder)
    for agent in sorted({event["agent_id"] for event in events if "agent_id" in event})[:2]:
        own = {
            event["post_id"]
            for event in events
            if event["event"] == "post.published" and event["agent_id"] == agent
        }
        expected = [
            number
            for number, event in enumerate(events, start=1)
            if agent in (event.get("agent_id"), event.get("author_id"))
            or event.get("parent_id") in own
        ]
        assert agent_story(logs, agent)["line"].to_list() == expected


def test_every_event_has_a_sentence(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Every kind of event has a sentence from the agent's point of view."""
    about = {"post_id": "p9"}
    lines = [
        make.joined("ann", archetype="lurker"),
        make.joined("ben"),
        make.move("ann", "idle", "a", "wakes", context=about),
        make.move("ann", "a", "b", ticks_in_state=3),
        make.move("ann", "b", "a", ticks_in_state=None),
        make.decision("ann", ["b", "c"], "b", probabilities={"b": 0.75, "c": 0.25}, context=about),
        make.decision("ann", ["b", "c"], "b", source="fallback", reason="timed out"),
        make.decision("ann", ["b", "c"], "c", source="model", model="llama"),
        make.post("ann", "p1", text="hi"),
        make.post("ben", "p2", "p1", "p1", text="ho"),
        make.post("ben", "p3", "p1", "p1", kind="reshare", text="look"),
        make.post("ann", "p4", "p2", "p1", text="well"),
        make.post("ann", "p5", "p2", "p1", kind="reshare", text="see"),
        make.like("ann", "p2", "ben"),
        make.like("ben", "p1", "ann"),
        make.event("statechart.guard_failed", agent_id="ann", trigger="go", error="ValueError: no"),
        make.event(
            "statechart.action_failed", agent_id="ann", trigger="go", error="ValueError: no"
        ),
        make.event("statechart.answer_discarded", agent_id="ann", trigger="go", chosen="b"),
        *(
            make.event(
                "statechart.answer_discarded",
                agent_id="ann",
                trigger="go",
                chosen="b",
                reason=reason,
            )
            for reason in ("moved", "not_enabled")
        ),
    ]
    assert agent_story(read_log(write_log(lines)), "ann")["what"].to_list() == [
        "joins as a lurker, idle",
        "idle to a on wakes after 1 tick, about p9",
        "a to b on go after 3 ticks",
        "b to a on go",
        "chooses b among b 75%, c 25% (policy), about p9",
        "chooses b among b, c (fallback: timed out)",
        "chooses c among b, c (llama)",
        "posts p1: hi",
        "ben replies to its p1 with p2: ho",
        "ben reshares its p1 as p3: look",
        "replies to p2 with p4: well",
        "reshares p2 as p5: see",
        "likes p2 of ben",
        "ben likes its p1",
        "the guard of go fails: ValueError: no",
        "the action of go fails: ValueError: no",
        "the answer b to go comes too late",
        "the answer b to go comes too late",
        "the answer b to go is no longer possible",
    ]


def test_a_world_by_rates_tells_times_in_rounds(tmp_path: Path) -> None:
    """How long an agent was in a state is the time between two events, not whole ticks."""
    Run(Moran, 9, seed=1, rounds=4, ticks=2).keep(tmp_path / "run")
    lines = map(orjson.loads, (tmp_path / "run" / "events.jsonl").read_bytes().splitlines())
    moved = next(line["agent_id"] for line in lines if line["event"] == "statechart.transition")
    story = agent_story(read_log(tmp_path / "run"), moved)
    moves = story.filter(event="statechart.transition")
    joined = story.filter(event="agent.joined")["timestamp"][0]
    for now, before, what in zip(
        moves["timestamp"], [joined, *moves["timestamp"]], moves["what"], strict=False
    ):
        # a round of two ticks takes two minutes
        assert f" after {(now - before).total_seconds() / 120:.3g} rounds" in what


def test_unknown_agent_is_refused(folder: Path) -> None:
    """An unknown agent is refused, with some known ones named."""
    with pytest.raises(InputError, match="no agent 'nobody' in the log"):
        agent_story(read_log(folder), "nobody")


def test_a_text_that_is_none_is_told_with_what_stands_for_it(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Where a fallback was taken, the story says which, and why."""
    about = {"agent_id": "ann", "key": "reply", "prompt_hash": "0", "reason": "too slow"}
    text = make.event("text.written", **about, source="fallback", text="Well.")
    story = agent_story(read_log(write_log([make.joined("ann"), text])), "ann")
    assert story["what"][1] == "has no text for reply, and takes Well.: too slow"
