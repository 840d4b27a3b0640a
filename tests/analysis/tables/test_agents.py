"""Every agent, with what it is and did."""

from prism.analysis import check_log
from prism.statechart import Statechart, Transition, state_enum
from tests.kit import make
from tests.kit.logs import LogOf


def test_numbers_in_names_are_sorted_as_numbers(log_of: LogOf) -> None:
    """Agents come in natural order: by the numbers in their names, and not by the digits."""
    names = ["02", "2", "10", "a", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "b_1"]
    log = log_of([make.move(name, "on", "off") for name in sorted(names)])
    assert [row["agent_id"] for row in log.rows("agents")] == names


def test_one_id_on_two_charts_is_two_agents(log_of: LogOf) -> None:
    """Ticket 1 and order 1 have a row each in every table of agents, and a check of its own."""
    ticket, order = {"chart": "ticket"}, {"chart": "order"}
    lines = [
        make.event("run.started", schema=1),
        make.joined("1", "open", **ticket),
        make.joined("1", "open", **order),
        make.joined("2", "sent", **order),
        make.refused("1", "open", "close", "is_done", **ticket),
        make.move("1", "open", "paid", trigger="pay", **order),
        make.decision("1", ["sent", "kept"], "sent", state="paid", **order),
        make.move("1", "paid", "sent", trigger="go", **order),
        make.decision("1", ["closed"], "closed", state="open", trigger="close", **ticket),
        make.event("agent.left", agent_id="2", state="sent", **order),
    ]
    log = log_of(lines)
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


def test_the_log_of_a_loop_has_no_columns_of_a_feed(log_of: LogOf) -> None:
    """A log whose first line names no chart has columns of posts only if something was posted."""
    loop = [make.event("run.started", schema=1), make.move("x", "a", "b")]
    assert "posts" not in log_of(loop).table("agents").columns
    assert "posts" in log_of([*loop, make.post("x", "p1")]).table("agents").columns
