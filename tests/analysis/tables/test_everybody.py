"""Logs of a sample of the agents, or of rounds alone, whose rounds count everybody."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism import Run
from prism.analysis import Log, read_log
from tests.kit.tables import agents, run_measures, state_counts, transition_counts

FORMS: list[dict[str, Any]] = [{"log_agents": 7}, {"log_agents": 0}]


def kept(folder: Path, world: str = "epidemic", **form: Any) -> Log:
    """Keep a run of 90 agents in a folder, and return its log."""
    Run(world, 90, rounds=4, seed=3, **form).keep(folder)
    return read_log(folder)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("world", ["epidemic", "market"])
@pytest.mark.sampled(3)
def test_states_are_those_of_everybody(form: dict[str, Any], world: str, tmp_path: Path) -> None:
    """States at the end of rounds are those of the log of all agents, even with no agent in it."""
    whole = state_counts(kept(tmp_path / "whole", world)).group_by("round", "tick", "state")
    counts = whole.agg(pl.col("agents").sum()).sort("round", "tick", "state")
    found = state_counts(kept(tmp_path / "some", world, **form))
    assert found.drop("share").sort("round", "tick", "state").equals(counts)
    assert found.group_by("round").agg(pl.col("share").sum())["share"].to_list() == [1.0] * 4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("world", ["epidemic", "feed"])
@pytest.mark.sampled(4)
def test_totals_are_those_of_everybody(form: dict[str, Any], world: str, tmp_path: Path) -> None:
    """Agents, steps, transitions, time-outs and decisions of each round and in all."""
    names = ("round", "agents", "agent_ticks", "transitions", "timeouts", "decisions", "fallbacks")
    logs = kept(tmp_path / "whole", world), kept(tmp_path / "some", world, **form)
    whole, some = (run_measures(each, by_round=True).select(names) for each in logs)
    assert some.equals(whole)
    late = [run_measures(each, from_round=3).select(names[1:]) for each in logs]
    assert late[0].equals(late[1])


def test_other_tables_are_of_the_sample(tmp_path: Path) -> None:
    """Tables of single agents hold those of the sample, and the note says which are of all."""
    logs = kept(tmp_path / "some", log_agents=7)
    assert agents(logs).height == 7
    assert transition_counts(logs)["count"].sum() < run_measures(logs)["transitions"].item()
    assert "totals of rounds are of all" in logs.notes[0].message
    (note,) = kept(tmp_path / "none", log_agents=0).notes
    assert "has only the rounds, and none of 90 agents: `prism log states`" in note.message


def test_a_round_that_did_not_end_is_not_counted(tmp_path: Path) -> None:
    """A sampled log that was cut off in its first round has no states, rather than a few."""
    kept(tmp_path / "some", log_agents=7)
    path = tmp_path / "some" / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    ends = [place for place, line in enumerate(lines) if b'"round.ended"' in line]
    path.write_bytes(b"".join(lines[: ends[1]]))
    assert set(state_counts(read_log(path))["round"]) == {1}
    path.write_bytes(b"".join(lines[: ends[0]]))
    assert state_counts(read_log(path)).is_empty()
