"""One agent's whole story."""

from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.errors import InputError
from prism.worlds import Run
from tests.kit import make
from tests.kit.logs import LogOf, events_in
from tests.kit.textbook import Moran


def test_story_has_all_events_of_the_agent(folder: Path, events: list[dict[str, Any]]) -> None:
    """A story has the agent's own events, likes of its posts and answers to them, in order."""
    log = read_log(folder)
    posts = [each for each in events if each["event"] == "post.published"]
    for agent in sorted({event["agent_id"] for event in events if "agent_id" in event})[:2]:
        own = {each["post_id"] for each in posts if each["agent_id"] == agent}
        expected = [
            number
            for number, event in enumerate(events, start=1)
            if agent in (event.get("agent_id"), event.get("author_id"))
            or event.get("parent_id") in own
        ]
        assert [row["line"] for row in log.rows("agent", agent)] == expected
    with pytest.raises(InputError, match="no agent 'nobody' in the log"):
        log.table("agent", "nobody")


def test_every_event_has_a_sentence(log_of: LogOf) -> None:
    """Every kind of event has a sentence from the agent's point of view."""
    about = {"post_id": "p9"}
    chances = {"probabilities": {"b": 0.75, "c": 0.25}, "context": about}
    own = {"agent_id": "ann", "trigger": "go"}
    late = make.event("statechart.answer_discarded", **own, chosen="b")
    text = {"agent_id": "ann", "key": "reply", "text": "Well.", "reason": "too slow"}
    lines = [
        make.joined("ann", archetype="lurker"),
        make.move("ann", "idle", "a", "wakes", context=about),
        make.move("ann", "a", "b", ticks_in_state=3),
        make.move("ann", "b", "a", ticks_in_state=None),
        make.decision("ann", ["b", "c"], "b", **chances),
        make.decision("ann", ["b", "c"], "b", source="fallback", reason="timed out"),
        make.decision("ann", ["b", "c"], "c", source="model", model="llama"),
        make.post("ann", "p1", text="hi"),
        make.post("ben", "p2", "p1", "p1", text="ho"),
        make.post("ben", "p3", "p1", "p1", kind="reshare", text="look"),
        make.post("ann", "p4", "p2", "p1", text="well"),
        make.post("ann", "p5", "p2", "p1", kind="reshare", text="see"),
        make.like("ann", "p2", "ben"),
        make.like("ben", "p1", "ann"),
        make.event("statechart.guard_failed", **own, error="ValueError: no"),
        make.event("statechart.action_failed", **own, error="ValueError: no"),
        *(late, {**late, "reason": "moved"}, {**late, "reason": "not_enabled"}),
        make.event("text.written", **text, source="fallback"),
        make.event("agent.left", agent_id="ann", state="a"),
    ]
    assert [row["what"] for row in log_of(lines).rows("agent", "ann")] == [
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
        *["the answer b to go comes too late"] * 2,
        "the answer b to go is no longer possible",
        "has no text for reply, and takes Well.: too slow",
        "leaves the run, a",
    ]


@pytest.mark.parametrize(
    ("program", "sentences"),
    [
        (
            "workflow",
            [
                "has a text for 1:go (script): Off I go.",
                "turn 3, step back may not go to home: the condition 'tired' is false",
                "has no text for 5:go: E: gone",
                "turn 5, step go failed: E: gone",
            ],
        ),
        (
            "thinking",
            [
                "starts over in thinking: there is no state dreaming",
                "cycle 11, paging (soft_limit): moved out m0, m1, m2, m3",
                "cycle 11 in paging done, then thinking",
                "cycle 12 in thinking done, then executing",
                "cycle 13, working_memory_add of a done",
                "cycle 17 in thinking failed, then thinking: down",
            ],
        ),
    ],
)
def test_steps_of_programs_stand_in_their_order(
    program: str, sentences: list[str], logs: dict[str, Path]
) -> None:
    """Steps, texts, thoughts and what was paged have sentences, too; the last ends the story."""
    story = [row["what"] for row in read_log(logs[program]).rows("agent", "ada")]
    assert [what for what in story if what in sentences] == sentences
    assert story[-1] == sentences[-1]


def test_a_world_by_rates_tells_times_in_rounds(tmp_path: Path) -> None:
    """How long an agent was in a state is the time between two events, not whole ticks."""
    Run(Moran, 9, seed=1, rounds=4, ticks=2).keep(tmp_path / "run")
    moves = [e for e in events_in(tmp_path / "run") if e["event"] == "statechart.transition"]
    joined, *story = read_log(tmp_path / "run").rows("agent", moves[0]["agent_id"])
    before = joined["timestamp"]
    assert story
    for row in story:
        # a round of two ticks takes two minutes
        rounds = (row["timestamp"] - before).total_seconds() / 120
        assert f" after {rounds:.3g} rounds" in row["what"]
        before = row["timestamp"]
