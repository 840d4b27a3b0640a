"""Logs of a sample of the agents, or of rounds alone, whose rounds count everybody."""

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.analysis import Log, read_log

FORMS: list[dict[str, Any]] = [{"log_agents": 7}, {"log_agents": 0}]
TOTALS = "agents, agent_ticks, transitions, timeouts, decisions, fallbacks"


def kept(folder: Path, world: str = "epidemic", **form: Any) -> Log:
    """Keep a run of 90 agents in a folder, and return its log."""
    Run(world, 90, rounds=4, seed=3, **form).keep(folder)
    return read_log(folder)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("world", ["epidemic", "market", "feed"])
@pytest.mark.sampled(5)
def test_states_and_totals_are_those_of_everybody(
    form: dict[str, Any], world: str, tmp_path: Path
) -> None:
    """States at the end of rounds and totals are those of the log of all, even with none in it."""
    whole, some = kept(tmp_path / "whole", world), kept(tmp_path / "some", world, **form)
    columns = "select round, tick, state, sum(agents) from states"
    counts = some.sql(f"{columns} group by all order by all").fetchall()
    ends = "where (round, tick) in (select (round, max(tick)) from events group by round)"
    assert counts == whole.sql(f"{columns} {ends} group by all order by all").fetchall()
    shares = some.sql("select sum(share) from states group by round").fetchall()
    assert shares == [(pytest.approx(1.0),)] * 4
    for query in (
        f"select round, {TOTALS} from measured_in(1, null)",
        f"select {TOTALS} from measured_in(3, null) where round is null",
    ):
        assert some.sql(query).fetchall() == whole.sql(query).fetchall()


def test_other_tables_are_of_the_sample(tmp_path: Path) -> None:
    """Tables of single agents hold those of the sample, and the note says which are of all."""
    log = kept(tmp_path / "some", log_agents=7)
    assert len(log.rows("agents")) == 7
    (measured,) = log.rows("run_measures")
    assert sum(row["count"] for row in log.rows("transitions")) < measured["transitions"]
    assert "totals of rounds are of all" in log.notes[0].message
    (note,) = kept(tmp_path / "none", log_agents=0).notes
    assert "has only the rounds, and none of 90 agents: `prism log states`" in note.message


def test_a_round_that_did_not_end_is_not_counted(tmp_path: Path) -> None:
    """A sampled log that was cut off in its first round has no states, rather than a few."""
    kept(tmp_path / "some", log_agents=7)
    path = tmp_path / "some" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    ends = [index for index, line in enumerate(lines) if b'"round.ended"' in line]
    for end, rounds in ((ends[1], {1}), (ends[0], set())):
        path.write_bytes(b"".join(lines[:end]))
        assert {row["round"] for row in read_log(path).rows("states")} == rounds
