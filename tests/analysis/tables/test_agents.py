"""Every agent, with what it is and did."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from prism.analysis import check_log, read_log
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.tables import agents

WriteLog = Callable[..., Path]


def test_numbers_in_names_are_sorted_as_numbers(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Agents come in natural order: by the numbers in their names, and not by the digits."""
    names = ["b_1", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "a", "02", "2", "10"]
    lines = [make.move(name, "on", "off") for name in names]
    table = agents(read_log(write_log(lines)))
    expected = ["02", "2", "10", "a", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "b_1"]
    assert table["agent_id"].to_list() == expected


def test_one_id_on_two_charts_is_two_agents(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Ticket 1 and order 1 have a row each in every table of agents, and a check of its own."""
    ticket, order = {"chart": "ticket"}, {"chart": "order"}
    refused = {"state": "open", "trigger": "close", "reason": "guards", "guards": ["is_done"]}
    lines = [
        make.event("run.started", schema=1),
        make.joined("1", "open", **ticket),
        make.joined("1", "open", **order),
        make.event("statechart.event_refused", agent_id="1", **ticket, **refused),
        make.move("1", "open", "paid", trigger="pay", **order),
        make.decision("1", ["sent", "kept"], "sent", state="paid", **order),
        make.move("1", "paid", "sent", trigger="go", **order),
        make.decision("1", ["closed"], "closed", state="open", trigger="close", **ticket),
        make.event("agent.left", agent_id="2", state="sent", **order),
    ]
    lines.insert(3, make.joined("2", "sent", **order))
    log = read_log(write_log(lines))
    shown = ("agent_id", "chart", "state", "transitions", "decisions")
    assert [tuple(row[name] for name in shown) for row in log.rows("agents")] == [
        ("1", "order", "sent", 2, 1),
        ("1", "ticket", "open", 0, 1),
        ("2", "order", "sent", 0, 0),
    ]
    assert [(row["count"], row["still_there"]) for row in log.rows("stuck")] == [(1, 1)]
    assert [row["agents"] for row in log.rows("run_measures")] == [3]
    last = {(row["chart"], row["state"]): row["agents"] for row in log.rows("states")}
    assert last == {
        ("ticket", "open"): 1,
        ("order", "open"): 0,
        ("order", "paid"): 0,
        ("order", "sent"): 1,
    }
    assert {row["chart"] for row in log.rows("agent", "1")} == {"ticket", "order"}
    tickets = state_enum("Tickets", ["open", "closed"])
    moves = [Transition("close", tickets("open"), tickets("closed"))]
    found = check_log(log, Statechart(tickets, moves, tickets("open"), name="ticket"))
    assert (found.checked, found.found) == (2, {})


def test_the_log_of_a_loop_has_no_columns_of_a_feed(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A log whose first line names no chart has columns of posts only if something was posted."""
    loop = [make.event("run.started", schema=1), make.move("x", "a", "b")]
    assert "posts" not in agents(read_log(write_log(loop))).columns
    assert "posts" in agents(read_log(write_log([*loop, make.post("x", "p1")]))).columns
