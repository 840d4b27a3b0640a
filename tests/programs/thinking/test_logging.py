"""What an agent that thinks tells: cycles, actions, refusals, pagings, and what any chart tells."""

from typing import Any

import pytest

from tests.kit.cognition import FIXED, action, add, letters, limited, thinker, thought, working
from tests.kit.writers import said

CYCLE_KEYS = {
    "event", "log_level", "agent_id", "cycle", "state", "next_state", "outcome", "reason",
    "prompt_tokens", "input_tokens", "output_tokens", "memories", "thoughts", "stored", "defects",
    "thought", "soft_limit", "hard_limit", "memory_tokens",
}  # fmt: skip


@pytest.fixture
async def events(logger: Any, capture: Any) -> list[Any]:
    """Return the events of an agent that pages, thinks, acts, is refused, and fails."""
    replies = [
        thought("on", "executing"),
        add("a", "1"),
        action("storage_load", "nothing"),
        OSError("down"),
    ]
    agent = thinker(
        replies,
        working(10),
        limited(FIXED + 800),
        count=letters,
        logger=logger,
        agent_id="ada",
    )
    await agent.run(3)
    agent.memory.state = "executing"
    await agent.run(2)
    return list(capture.entries)


def test_every_cycle_is_an_event(events: list[Any]) -> None:
    """State, where it led, outcome, tokens and sizes."""
    cycles = said(events, "cognition.cycle")
    assert {frozenset(event) for event in cycles} == {frozenset(CYCLE_KEYS)}
    assert [(e["cycle"], e["state"], e["next_state"], e["outcome"]) for e in cycles] == [
        (11, "paging", "thinking", "done"),
        (12, "thinking", "executing", "done"),
        (13, "executing", "thinking", "done"),
        (14, "executing", "thinking", "done"),
        (15, "thinking", "thinking", "failed"),
    ]
    assert cycles[0]["prompt_tokens"] is None
    assert cycles[1]["prompt_tokens"] > FIXED
    assert cycles[-1]["reason"] == "down"
    sizes = [(event["memories"], event["stored"]) for event in cycles]
    assert all(sum(pair) == 10 + (number > 1) for number, pair in enumerate(sizes))


def test_every_action_is_an_event(events: list[Any]) -> None:
    """What was done, and what was missing."""
    actions = said(events, "cognition.action")
    assert [(e["cycle"], e["type"], e["tags"], e["outcome"], e["reason"]) for e in actions] == [
        (13, "working_memory_add", "a", "done", None),
        (14, "storage_load", "nothing", "missing", "there is no 'nothing' in storage"),
    ]


def test_every_paging_is_an_event(events: list[Any]) -> None:
    """What went and why, with the tokens before and after."""
    (paged,) = said(events, "cognition.paged")
    assert (paged["why"], paged["by"], paged["limit"]) == ("soft_limit", "lru", FIXED + 800)
    assert paged["moved_out"][0] == "m0"
    assert paged["tokens_before"] > paged["limit"] > paged["tokens_after"]


@pytest.mark.parametrize("reply", ["", OSError("down"), add("a", "1")])
async def test_what_goes_wrong_is_one_warning(reply: Any, logger: Any, capture: Any) -> None:
    """A reply of no use, a model that fails, an action refused: each is told once."""
    await thinker([reply], logger=logger).cycle()
    warnings = [event for event in capture.entries if event["log_level"] == "warning"]
    assert len(warnings) == 1
    assert warnings[0]["reason"]
