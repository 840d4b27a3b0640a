"""What worlds measured, were treated with and logged, as tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from prism.analysis import read_log
from tests.kit.tables import agents, events_of, state_counts, transition_counts, world_event_counts

WriteLog = Callable[..., Path]


def lines_of(folder: Path, *names: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "events.jsonl").read_bytes().splitlines())
    return [line for line in lines if line["event"] in names]


def test_parameters_are_columns_of_every_table_of_several_runs(rumours: list[Path]) -> None:
    """Those that differ follow the run in tables and in scans; one run needs none."""
    several = read_log(*rumours)
    for table in (
        state_counts(several),
        transition_counts(several),
        agents(several),
        events_of(several, "round.ended"),
    ):
        assert table.columns[:2] == ["run", "friends"]
        pairs = table.select("run", "friends").unique(maintain_order=True).rows()
        assert pairs == [("friends-4", 4), ("friends-8", 8)]

    assert "friends" not in state_counts(read_log(rumours[0])).columns


def test_a_parameter_called_as_a_column_gets_another_name(write_log: WriteLog, make: Any) -> None:
    """A world may call a parameter ``state`` or ``seed``: no column is lost."""
    given = {name: {"state": name, "seed": len(name), "mixed": [name]} for name in ("a", "bc")}
    paths = [
        write_log([make.started(world="W", parameters=own), make.joined("ada")], f"{name}.jsonl")
        for name, own in given.items()
    ]
    logs = read_log(*paths)
    assert state_counts(logs).columns[:4] == ["run", "parameter_state", "seed", "mixed"]
    assert agents(logs)["mixed"].to_list() == ['["a"]', '["bc"]']


def test_own_events_have_their_own_keys_as_columns(market: Path) -> None:
    """The events of one name are rows with the types of their keys."""
    logged = lines_of(market, "world.sold")
    table = events_of(read_log(market), "world.sold")
    assert table.schema["price"] == pl.Float64
    assert table.select("agent_id", "buyer", "price").to_dicts() == [
        {key: line[key] for key in ("agent_id", "buyer", "price")} for line in logged
    ]
    counts = world_event_counts(read_log(market))
    assert counts["events"].sum() == len(logged) > 3
    assert counts["event"].unique().to_list() == ["sold"]


def test_agents_of_a_world_have_fields_and_nothing_of_posts(market: Path) -> None:
    """Fields are columns as the agents joined with them; there are no zeros about posts."""
    table = agents(read_log(market))
    assert table.columns == [
        *("agent_id", "chart", "display_name", "worth", "cost", "goods"),
        *("state", "joined_round", "left_round", "transitions", "decisions", "fallbacks"),
    ]
    joined = {line["agent_id"]: line for line in lines_of(market, "agent.joined")}
    for row in table.iter_rows(named=True):
        line = joined[row["agent_id"]]
        assert row["chart"] == line["chart"]
        assert row.items() >= line["attributes"].items()


def test_transitions_of_two_charts_are_counted_apart(write_log: WriteLog, make: Any) -> None:
    """Each has probabilities of its own; one without a trigger counts, one without an end not."""
    moves = [
        make.move("a", "idle", "busy", None, chart="ants"),
        make.move("b", "idle", "gone", chart="bees"),
        make.move("a", None, "busy", chart="ants"),
        make.move("b", "idle", None, chart="bees"),
    ]
    columns = ("chart", "to_state", "trigger", "count", "probability")
    assert transition_counts(read_log(write_log(moves))).select(columns).rows() == [
        ("ants", "busy", None, 1, 1.0),
        ("bees", "gone", "go", 1, 1.0),
    ]
