"""``prism rerun`` as a user runs it."""

import json

import pytest

from tests.kit.commands import Prism

CHANGE = """
[[treatment]]
kind = "remove"
share = 0.3
"""


@pytest.mark.slow
def test_a_change_is_said_and_a_run_without_one_is_the_run(prism: Prism) -> None:
    """The command tells where the runs part, as text and as JSON."""
    (prism.folder / "change.toml").write_text(CHANGE)
    assert prism("simulate", "--agents", "15", "--rounds", "4", "--out", "run").status == 0

    again = prism("rerun", "run", "--from-round", "2", "--out", "again")
    assert "Every decision and transition is the same as in run." in again.out
    logs = [prism.folder / name / "events.jsonl" for name in ("run", "again")]
    assert logs[0].read_bytes() == logs[1].read_bytes()

    line = ("rerun", "run", "--from-round", "3", "--with", "change.toml", "--out", "other")
    other = prism(*line, "--json")
    told = json.loads(other.out)
    assert told["transition"]["round"] == 3
    assert told["folder"] == "other"

    resumed = prism("rerun", "--resume", "other")
    assert "The first transition that differs from run: round 3, tick 1:" in resumed.out


def test_what_is_missing_is_said(prism: Prism) -> None:
    """A run, a round and a folder are needed."""
    assert "needs a RUN" in prism("rerun").err
    assert "needs --from-round" in prism("rerun", "run").err
    assert "needs --out" in prism("rerun", "run", "--from-round", "2").err


def test_logs_of_other_samples_are_not_held_against_each_other(prism: Prism) -> None:
    """``log diff`` refuses logs of one run with other agents, and logs without any."""
    five = ("--log-agents", "5")
    logged = {"all": (), "five": five, "six": (*five, "--seed", "6"), "none": ("--log", "rounds")}
    for folder, more in logged.items():
        given = ("--agents", "20", "--rounds", "2", "--out", folder)
        assert prism("run", "rumour", *given, *more).status == 0

    refused = {
        ("all", "five"): "has all agents, the other log 5 agents: there is nothing to compare",
        ("five", "six"): "has 5 agents, the other log 5 agents, but not the same: there is",
        ("none", "none"): "has the rounds only, the other log the rounds only: there is nothing",
    }
    for runs, said in refused.items():
        differ = prism("log", "diff", *runs)
        assert (differ.status, said in differ.err) == (2, True)
    assert prism("log", "diff", "five", "five").status == 0


def test_two_runs_are_held_against_each_other(prism: Prism) -> None:
    """``log diff`` names the first decision and transition of two runs that differ, in words."""
    for folder, seed in (("one", "1"), ("same", "1"), ("two", "2")):
        given = ("--agents", "20", "--rounds", "2", "--seed", seed, "--out", folder)
        assert prism("run", "rumour", *given).status == 0

    same = prism("log", "diff", "one", "same")
    assert (same.status, same.out.strip()) == (
        0,
        "Every decision and transition is the same as in one.",
    )
    differ = prism("log", "diff", "one", "two/events.jsonl")
    assert differ.status == 1
    assert "The first transition that differs from one: round" in differ.out
    assert ", is now " in differ.out
    lacking = prism("log", "diff", "one", "nowhere")
    assert lacking.status == 2
    assert "nowhere: there is no such" in lacking.err
