"""``prism rerun`` as a user runs it."""

import json

import pytest

from tests.kit.commands import Prism


@pytest.mark.slow
def test_a_change_is_said_and_a_run_without_one_is_the_run(prism: Prism) -> None:
    """The command tells where the runs part, as text and as JSON."""
    assert prism("run", "rumour", "--agents", "60", "--rounds", "6", "--out", "run").status == 0

    again = prism("rerun", "run", "--from-round", "2", "--out", "again")
    assert "Every decision and transition is the same as in run." in again.out
    logs = [prism.folder / name / "events.jsonl" for name in ("run", "again")]
    assert logs[0].read_bytes() == logs[1].read_bytes()

    line = ("rerun", "run", "--from-round", "2", "--treat", "warning@2", "--out", "other")
    other = prism(*line, "--json")
    told = json.loads(other.out)
    assert told["differences"]["transition"]["round"] >= 2
    assert told["folder"] == "other"
    assert "is complete" in prism("resume", "other").err


@pytest.mark.slow
def test_a_rerun_takes_what_a_run_takes(prism: Prism) -> None:
    """Another seed, other ticks and parameters from the first round, a policy from it, too."""
    assert prism("run", "rumour", "--agents", "20", "--rounds", "3", "--out", "run").status == 0
    (prism.folder / "policy.json").write_text('{"spreader": {"meets": {"stifler": 1}}}')
    line = ("rerun", "run", "--from-round", "1", "--seed", "7", "--ticks", "4", "--out", "other")
    given = ("--set", "tiring=0.9", "--policy", "policy.json")
    assert prism(*line, *given).status == 0
    config = json.loads((prism.folder / "other" / "run.json").read_text())["config"]
    assert (config["seed"], config["ticks_per_round"]) == (7, 4)
    assert config["policy"] == "policy.json"
    assert config["treatments"] == ["tiring=0.9@1"]
    late = prism("rerun", "run", "--from-round", "2", "--seed", "7", "--out", "late")
    assert "seed" in late.err
    assert "can only be changed from round 1 on" in " ".join(late.err.split())


def test_code_that_has_changed_is_named(prism: Prism) -> None:
    """A rerun and a replay say so, and go on while the world does the same."""
    prism("world", "init", "Party")
    assert prism("run", "party.py:Party", "--agents", 9, "--out", "run").status == 0
    with (prism.folder / "party.py").open("a") as file:
        file.write("# another line\n")
    for command in (("rerun", "run", "--from-round", 2, "--out", "again"), ("replay", "run")):
        ran = prism(*command)
        assert (ran.status, "party.py: has changed since the run" in ran.err) == (0, True)
