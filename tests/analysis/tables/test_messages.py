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
    log = read_log(write_log(lines))
    (row,) = log.rows("stuck")
    assert (row["state"], row["trigger"], row["guards"]) == ("shut", "open", ["has_key"])
    assert (row["count"], row["agents"], row["still_there"]) == (4, 3, 2)
    shown = ("agent_id", "state", "refused", "trigger", "guards")
    assert [tuple(row[name] for name in shown) for row in log.rows("stuck_agents")] == [
        ("ann", "shut", 2, "open", ["has_key"]),
        ("ed", "shut", 1, "open", ["has_key"]),
    ]


def test_who_is_stuck_in_a_service_that_was_restarted(write_log: Callable[..., Path]) -> None:
    """With all runs, each agent is there since it came, and not since the restart."""

    def line(minute: int, event: str, agent: str | None = None, **keys: Any) -> dict[str, Any]:
        about = {} if agent is None else {"agent_id": agent, "chart": "order"}
        return {"event": event, "timestamp": f"2026-01-01T00:{minute:02}:00Z", **about, **keys}

    refused = {"state": "paid", "trigger": "send", "reason": "guards", "guards": ["in_stock"]}
    paid = {"from_state": "new", "to_state": "paid", "trigger": "pay", "ticks_in_state": 0}
    lines = [
        line(0, "run.started", schema=1),
        *(line(1, "agent.joined", each, state="new") for each in ("o1", "o2")),
        line(2, "statechart.transition", "o1", **paid),
        line(3, "statechart.event_refused", "o1", **refused),
        line(4, "statechart.transition", "o2", **paid),
        line(5, "statechart.event_refused", "o2", **refused),
        line(6, "run.ended"),
        line(7, "run.started", schema=1),
        line(8, "agent.joined", "o2", state="paid"),
        line(9, "statechart.event_refused", "o2", **refused),
        line(9, "run.ended"),
    ]
    path = write_log(lines)
    minutes = {
        all_runs: [
            (row["agent_id"], row["since"].minute, row["refused"])
            for row in read_log(path, all_runs=all_runs).rows("stuck_agents")
        ]
        for all_runs in (False, True)
    }
    assert minutes == {False: [("o2", 8, 1)], True: [("o1", 2, 1), ("o2", 4, 2)]}
    (row,) = read_log(path, all_runs=True).rows("stuck")
    assert {"round", "tick", "chart"}.isdisjoint(row)
    assert (row["timestamp"].minute, row["agents"], row["still_there"]) == (3, 2, 2)
