"""Agents, with what they are and did, and what worlds measured, logged and were given."""

from pathlib import Path

from prism.analysis import check_log, read_log
from prism.statechart import Statechart, Transition, state_enum
from tests.kit import make
from tests.kit.logs import LogOf, WriteLog, events_in


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
    assert (found.checked, found.counts) == (2, {})


def test_the_log_of_a_loop_has_no_columns_of_a_feed(log_of: LogOf) -> None:
    """A log whose first line names no chart has columns of posts only if something was posted."""
    loop = [make.event("run.started", schema=1), make.move("x", "a", "b")]
    assert "posts" not in log_of(loop).table("agents").columns
    assert "posts" in log_of([*loop, make.post("x", "p1")]).table("agents").columns


def test_parameters_are_columns_of_every_table_of_several_runs(rumours: list[Path]) -> None:
    """Those that differ follow the run in tables and in scans; one run needs none."""
    several = read_log(*rumours)
    for name in (("states",), ("transitions",), ("agents",), ("events_of", "round.ended")):
        table = several.table(*name)
        assert table.columns[:2] == ["run", "friends"]
        pairs = table.project("run, friends").distinct().fetchall()
        assert sorted(pairs) == [("friends-4", 4), ("friends-8", 8)]

    assert "friends" not in read_log(rumours[0]).table("states").columns


def test_a_parameter_called_as_a_column_gets_another_name(write_log: WriteLog) -> None:
    """A world may call a parameter ``state`` or ``seed``: no column is lost."""
    given = {name: {"state": name, "seed": len(name), "mixed": [name]} for name in ("a", "bc")}
    paths = [
        write_log([make.started(world="W", parameters=own), make.joined("ada")], f"{name}.jsonl")
        for name, own in given.items()
    ]
    log = read_log(*paths)
    assert log.table("states").columns[:4] == ["run", "parameter_state", "seed", "mixed"]
    assert [row["mixed"] for row in log.rows("agents")] == ['["a"]', '["bc"]']


def test_own_events_have_their_own_keys_as_columns(market: Path) -> None:
    """The events of one name are rows with the types of their keys."""
    log = read_log(market)
    sold = [each for each in events_in(market) if each["event"] == "world.sold"]
    table = log.table("events_of", "world.sold")
    assert str(dict(zip(table.columns, table.types, strict=True))["price"]) == "DOUBLE"
    keys = ("agent_id", "buyer", "price")
    assert table.project(", ".join(keys)).fetchall() == [
        tuple(each[key] for key in keys) for each in sold
    ]
    counts = log.rows("world")
    assert sum(row["events"] for row in counts) == len(sold) > 3
    assert {row["event"] for row in counts} == {"sold"}


def test_agents_of_a_world_have_fields_and_nothing_of_posts(market: Path) -> None:
    """Fields are columns as the agents joined with them; there are no zeros about posts."""
    table = read_log(market).table("agents")
    assert table.columns == [
        *("agent_id", "chart", "display_name", "worth", "offer", "cost", "goods"),
        *("state", "joined_round", "left_round", "transitions", "decisions", "fallbacks"),
    ]
    own = "agent_id, chart, worth, cost, goods"
    joined = [each for each in events_in(market) if each["event"] == "agent.joined"]
    assert sorted(table.project(own).fetchall()) == sorted(
        (each["agent_id"], each["chart"], *map(each["attributes"].get, ("worth", "cost", "goods")))
        for each in joined
    )


def test_transitions_without_a_trigger_count_and_those_without_an_end_do_not(
    log_of: LogOf,
) -> None:
    """Those of two charts have probabilities of their own."""
    moves = [
        make.move("a", "idle", "busy", None, chart="ants"),
        make.move("b", "idle", "gone", chart="bees"),
        make.event("statechart.transition", agent_id="a", to_state="busy", chart="ants"),
        make.event("statechart.transition", agent_id="b", from_state="idle", chart="bees"),
    ]
    columns = 'chart, to_state, "trigger", count, probability'
    assert log_of(moves).sql(f"select {columns} from transitions").fetchall() == [
        ("ants", "busy", None, 1, 1.0),
        ("bees", "gone", "go", 1, 1.0),
    ]
