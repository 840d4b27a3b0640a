"""What worlds measured, were treated with and logged, as tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism.analysis import check_log, read_log
from prism.errors import InputError
from tests.kit.tables import (
    agent_story,
    agents,
    cascades,
    events_of,
    measures,
    participation,
    state_counts,
    transition_counts,
    violations_of,
    world_event_counts,
)
from tests.kit.world_runs import Buyer, Seller

WriteLog = Callable[..., Path]


def lines_of(folder: Path, *names: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "events.jsonl").read_bytes().splitlines())
    return [line for line in lines if line["event"] in names]


def test_measures_are_series_of_every_run(rumours: list[Path]) -> None:
    """Each round of each run has a row, with what the log says, and the run's parameters."""
    table = measures(read_log(*rumours))
    assert table.columns == ["run", "friends", "rewired", "tiring", "round", "measure", "value"]
    for folder, friends in zip(rumours, (4, 8), strict=True):
        found = table.filter(run=folder.name, measure="reached", friends=friends)
        logged = [line["measures"]["reached"] for line in lines_of(folder, "round.ended")]
        assert found["value"].to_list() == logged
        assert found["round"].to_list() == list(range(1, 11))


def test_a_measure_without_a_value_is_null(market: Path) -> None:
    """The rounds in which there was nothing to measure are there, without a value."""
    values = measures(read_log(market))["value"]
    logged = [line["measures"]["mean_price"] for line in lines_of(market, "round.ended")]
    assert values.to_list() == logged
    assert logged[0] is None


def test_parameters_are_columns_of_every_table_of_several_runs(rumours: list[Path]) -> None:
    """The parameters follow the run in tables and in scans; one run needs none."""
    several = read_log(*rumours)
    for table in (
        state_counts(several),
        transition_counts(several),
        agents(several),
        events_of(several, "round.ended"),
    ):
        assert table.columns[:4] == ["run", "friends", "rewired", "tiring"]
        pairs = table.select("run", "friends").unique(maintain_order=True).rows()
        assert pairs == [("friends-4", 4), ("friends-8", 8)]

    assert "friends" not in state_counts(read_log(rumours[0])).columns


def test_a_parameter_called_as_a_column_gets_another_name(write_log: WriteLog, make: Any) -> None:
    """A world may call a parameter ``state`` or ``seed``: no column is lost."""
    given = {"state": "a", "seed": 2, "mixed": [1]}
    paths = [
        write_log([make.started(world="W", parameters=given), make.joined("ada")], f"{name}.jsonl")
        for name in "ab"
    ]
    logs = read_log(*paths)
    assert state_counts(logs).columns[:4] == ["run", "parameter_state", "seed", "mixed"]
    assert agents(logs)["mixed"].to_list() == ["[1]", "[1]"]


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


def test_an_unknown_event_is_refused_with_those_there_are(market: Path) -> None:
    """A misspelt name is told with the names of the log."""
    with pytest.raises(InputError, match=r"no event .world.sod. in the log"):
        events_of(read_log(market), "world.sod")


def test_events_of_a_world_are_not_of_others(market: Path) -> None:
    """No note counts them as foreign, and an agent's story tells them."""
    logs = read_log(market)
    assert logs.notes == ()
    sold = lines_of(market, "world.sold")[0]
    story = agent_story(logs, sold["agent_id"])["what"]
    assert any(text.startswith(f"sold, buyer {sold['buyer']}, price ") for text in story)


def test_agents_count_under_their_own_chart(market: Path) -> None:
    """Of two kinds each is counted by itself, also those that have not moved yet."""
    table = state_counts(read_log(market))
    assert set(table["chart"]) == {"buyer", "seller"}
    sums = table.group_by("chart", "round").agg(pl.col("agents").sum())
    assert set(sums.select("chart", "agents").rows()) == {("buyer", 16), ("seller", 4)}
    for line in lines_of(market, "round.ended"):
        found = table.filter(round=line["round"])
        assert dict(found.select("state", "agents").iter_rows()) == line["states"]


def test_agents_of_a_world_have_fields_and_nothing_of_posts(market: Path) -> None:
    """Fields are columns as the agents joined with them; there are no zeros about posts."""
    table = agents(read_log(market))
    assert table.columns == [
        *("agent_id", "chart", "display_name", "worth", "cost", "goods"),
        *("state", "transitions", "decisions", "fallbacks"),
    ]
    joined = {line["agent_id"]: line for line in lines_of(market, "agent.joined")}
    for row in table.iter_rows(named=True):
        line = joined[row["agent_id"]]
        assert row["chart"] == line["chart"]
        assert row.items() >= line["attributes"].items()


@pytest.mark.parametrize("table_of", [participation, cascades])
@pytest.mark.slow
def test_a_table_about_posts_has_nothing_of_a_world(
    table_of: Callable[..., pl.DataFrame], market: Path, folder: Path
) -> None:
    """A world without posts has no rows, and a note says why; a feed beside it keeps its own."""
    logs = read_log(market)
    assert table_of(logs).is_empty()
    assert [note.kind for note in logs.notes] == ["no_feed"]
    both, alone = read_log(market, folder), read_log(folder)
    beside = table_of(both).filter(run="real").drop("run", "least_gain")
    assert beside.equals(table_of(alone))


def test_a_world_with_posts_has_a_feed(write_log: WriteLog, make: Any) -> None:
    """A world in which agents post is shown with its posts."""
    events = [make.started(world="W"), make.joined("ada"), make.post("ada", "p1")]
    table = agents(read_log(write_log(events)))
    assert table["posts"].to_list() == [1]
    assert "archetype" in table.columns


def test_each_kind_is_checked_against_its_chart(
    market: Path, write_log: WriteLog, make: Any
) -> None:
    """Agents of the other kind are left out, with their decisions, which name no chart."""
    logs = read_log(market)
    for kind in (Buyer, Seller):
        found = check_log(logs, kind.chart)
        assert violations_of(found).is_empty()
        assert found.checked > 4

    decision = make.decision("b", ["looking", "elsewhere"], "elsewhere")
    events = [
        make.started(world="W"),
        make.joined("b", "looking", chart="buyer"),
        make.joined("s", "selling", chart="seller"),
        decision,
    ]
    path = write_log(events)
    assert check_log(read_log(path), Seller.chart).checked == 1
    assert check_log(read_log(path), Buyer.chart).found


def test_transitions_of_two_charts_are_counted_apart(write_log: WriteLog, make: Any) -> None:
    """States of two charts may have one name: each has probabilities of its own."""
    moves = [
        make.move("a", "idle", "busy", chart="ants"),
        make.move("b", "idle", "gone", chart="bees"),
    ]
    table = transition_counts(read_log(write_log(moves)))
    assert table.select("chart", "to_state", "probability").rows() == [
        ("ants", "busy", 1.0),
        ("bees", "gone", 1.0),
    ]
