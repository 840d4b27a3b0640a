"""The tables of what agents said to each other, and of events that made no transition."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prism.analysis import read_log


def test_messages_are_in_the_order_of_the_log(write_log: Callable[..., Path], make: Any) -> None:
    """Who said what to whom; the agent that an event is of sent it if no sender is named."""
    sent = {"event": "message.sent", "round": 1, "tick": 2}
    lines = [
        make.started(),
        {**sent, "agent_id": "ann", "sender": "ann", "receiver": "di", "content": "Hi"},
        {**sent, "agent_id": "di", "receiver": "ann", "content": "Hello"},
    ]
    rows = read_log(write_log(lines)).rows("messages")
    named = [(row["sender"], row["receiver"], row["content"]) for row in rows]
    assert named == [("ann", "di", "Hi"), ("di", "ann", "Hello")]


def test_stuck_agents_are_counted_until_they_move(
    write_log: Callable[..., Path], make: Any
) -> None:
    """An agent is still there unless it has moved since its event was refused."""
    refused = {"event": "statechart.event_refused", "state": "shut", "trigger": "open", "tick": 1}
    why = {"reason": "guards", "guards": ["has_key"], "round": 1}
    agents = ("ann", "di", "ed")
    lines = [
        make.started(),
        *(make.joined(agent, "shut") for agent in agents),
        *({**refused, **why, "agent_id": agent} for agent in (*agents, "ann")),
        make.move("di", "shut", "open", trigger="open", tick=2),
    ]
    (row,) = read_log(write_log(lines)).rows("stuck")
    assert (row["state"], row["trigger"], row["guards"]) == ("shut", "open", ["has_key"])
    assert (row["count"], row["agents"], row["still_there"]) == (4, 3, 2)
