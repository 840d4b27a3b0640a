"""The tables of what agents said to each other, and of events that made no transition."""

from typing import Any

import pytest

from tests.kit import make
from tests.kit.logs import LogOf


def test_messages_are_in_the_order_of_the_log(log_of: LogOf) -> None:
    """Who said what to whom; the agent that an event is of sent it if no sender is named."""
    said = {"agent_id": "ann", "sender": "ann", "receiver": "di", "content": "Hi"}
    answer = {"agent_id": "di", "receiver": "ann", "content": "Hello"}
    log = log_of([make.event("message.sent", **each) for each in (said, answer)])
    rows = log.sql("select sender, receiver, content from messages").fetchall()
    assert rows == [("ann", "di", "Hi"), ("di", "ann", "Hello")]


def test_stuck_agents_are_counted_until_they_move(log_of: LogOf) -> None:
    """An agent is still there unless it has moved since its event was refused."""
    agents = ("ann", "di", "ed", "flo")
    log = log_of(
        [
            make.started(),
            *(make.joined(agent, "shut") for agent in agents),
            *(make.refused(agent, "shut", "open", "has_key") for agent in (*agents, "ann")),
            *(make.move(agent, "shut", "open", tick=2) for agent in ("di", "flo")),
            # back again, and no event has been refused there since
            make.move("flo", "open", "shut", tick=3),
        ]
    )
    columns = 'state, "trigger", guards, count, agents, still_there'
    stuck = [("shut", "open", ["has_key"], 5, 4, 2)]
    assert log.sql(f"select {columns} from stuck").fetchall() == stuck
    columns = 'agent_id, state, refused, "trigger", guards'
    assert log.sql(f"select {columns} from stuck_agents").fetchall() == [
        ("ann", "shut", 2, "open", ["has_key"]),
        ("ed", "shut", 1, "open", ["has_key"]),
    ]


@pytest.mark.parametrize(
    ("all_runs", "agents", "states"),
    [(False, [("o2", 8, 1)], (9, 1, 1)), (True, [("o1", 2, 1), ("o2", 4, 2)], (3, 2, 2))],
)
def test_who_is_stuck_in_a_service_that_was_restarted(
    all_runs: bool, agents: list[Any], states: tuple[int, ...], log_of: LogOf
) -> None:
    """With all runs, each agent is there since it came, and not since the restart."""
    order = {"chart": "order", "round": None, "tick": None}
    pay, wait = ("new", "paid", "pay"), ("paid", "send", "in_stock")
    timed = [
        (0, make.event("run.started", schema=1)),
        *((1, make.joined(agent, "new", **order)) for agent in ("o1", "o2")),
        *((2, make.move("o1", *pay, **order)), (3, make.refused("o1", *wait, **order))),
        *((4, make.move("o2", *pay, **order)), (5, make.refused("o2", *wait, **order))),
        *((6, make.event("run.ended")), (7, make.event("run.started", schema=1))),
        *((8, make.joined("o2", "paid", **order)), (9, make.refused("o2", *wait, **order))),
        (9, make.event("run.ended")),
    ]
    lines = [{**each, "timestamp": f"2026-01-01T00:0{minute}:00Z"} for minute, each in timed]
    log = log_of(lines, all_runs=all_runs)
    found = log.rows("stuck_agents")
    assert [(row["agent_id"], row["since"].minute, row["refused"]) for row in found] == agents
    (row,) = log.rows("stuck")
    # as long as nothing moves, nothing says that the log has neither rounds nor ticks
    assert {"round", "tick", "chart"}.isdisjoint(row) == all_runs
    assert (row["timestamp"].minute, row["agents"], row["still_there"]) == states
