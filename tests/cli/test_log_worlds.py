"""``prism log measures``, ``agents``, ``world`` and ``check`` of worlds."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.kit.commands import Prism


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


def test_what_runs_measured_is_written_for_people_and_programs(
    rumours: list[Path], log: Prism
) -> None:
    """The table fits a terminal, and Parquet has the same rows with the parameters."""
    said = log("measures", *rumours)
    assert (said.status, said.err) == (0, "")
    assert max(len(line.rstrip()) for line in said.out.splitlines()) <= 80
    assert log("measures", *rumours, "-o", "table.parquet").status == 0
    table = pl.read_parquet(log.folder / "table.parquet")
    assert set(table["friends"]) == {4, 8}


def test_own_events_are_counted_or_listed(market: Path, log: Prism) -> None:
    """Without a name events are counted; with one each is a row; a wrong one ends with status 2."""
    counted = log("world", market, "--format", "json").rows
    listed = log("events_of('world.sold')", market, "--format", "json").rows
    assert sum(row["events"] for row in counted) == len(listed)
    assert {"agent_id", "buyer", "price"} <= set(listed[0])
    said = log("events_of('world.sod')", market)
    assert said.status == 2
    assert said.err.startswith("prism: no event 'world.sod' in the log; ")


def test_agents_are_shown_with_their_fields(market: Path, log: Prism) -> None:
    """The drawn table has what the kinds declare, and nothing about posts."""
    said = log("agents", market)
    assert "worth" in said.out
    assert "posts" not in said.out


@pytest.mark.usefixtures("own_modules")
def test_the_chart_of_a_kind_is_named_by_its_class(log: Prism) -> None:
    """``check`` takes a class of agents from a file."""
    (log.folder / "ants.py").write_text(
        "from enum import StrEnum\n"
        "from prism.statechart import Statechart, Transition\n"
        "from prism.worlds import Agent, World, during\n"
        "Ants = StrEnum('Ants', ['IN', 'OUT'])\n"
        "class Ant(Agent):\n"
        "    chart = Statechart(Ants, [Transition('go', Ants.IN, Ants.OUT)], initial=Ants.IN)\n"
        "class Hill(World[Ant]):\n"
        "    @during(Ants.IN)\n"
        "    def leave(self, ant: Ant) -> None:\n"
        "        ant.fire('go')\n"
    )
    assert replace(log, group=())("run", "ants.py", "--agents", "5", "--out", "hill").status == 0

    checked = log("check", "hill", "--chart", "ants.py:Ant")
    assert (checked.status, checked.err) == (0, "prism: 5 steps and 5 first states agree\n")
    assert "there is no such file" in log("check", "hill", "--chart", "bees.py:Bee").err
    assert "is Hill, not a chart" in log("check", "hill", "--chart", "ants:Hill").err
