"""``prism rerun`` as a user runs it."""

import json

import pytest

from tests.kit.commands import Prism


@pytest.mark.slow
def test_a_change_is_said_and_a_run_without_one_is_the_run(prism: Prism) -> None:
    """The command tells where the runs part, as text and as JSON."""
    assert prism("run", "rumour", "--agents", "60", "--rounds", "6", "--out", "run").status == 0

    again = prism("rerun", "run", "--from-round", "2", "--out", "again")
    assert "Every transition is the same as in run." in again.out
    logs = [prism.folder / name / "events.jsonl" for name in ("run", "again")]
    assert logs[0].read_bytes() == logs[1].read_bytes()

    line = ("rerun", "run", "--from-round", "2", "--treat", "warning@2", "--out", "other")
    other = prism(*line, "--json")
    told = json.loads(other.out)
    assert told["transition"]["round"] >= 2
    assert told["folder"] == "other"

    resumed = prism("resume", "other")
    assert "The first transition that differs: round " in resumed.out
