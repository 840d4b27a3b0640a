"""``prism rerun`` as a user runs it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import Config
from prism.testing import FakeOllama
from tests.kit.cognition import add, thought
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
    assert told["transition"]["round"] >= 2
    assert told["folder"] == "other"

    resumed = prism("rerun", "--resume", "other")
    assert "The first transition that differs from run: round " in resumed.out


def test_what_is_missing_is_said(prism: Prism) -> None:
    """A run, a round and a folder are needed."""
    assert "needs a RUN" in prism("rerun").err
    assert "needs --from-round" in prism("rerun", "run").err
    assert "needs --out" in prism("rerun", "run", "--from-round", "2").err


@pytest.mark.slow
def test_logs_of_other_samples_are_not_held_against_each_other(prism: Prism) -> None:
    """``log diff`` refuses logs of one run with other agents, and logs without any."""
    five = ("--log-agents", "5")
    logged = {"all": (), "five": five, "six": (*five, "--seed", "6"), "none": ("--log-agents", "0")}
    logged |= {"five again": five, "nil": logged["none"]}
    for folder, more in logged.items():
        given = ("--agents", "20", "--rounds", "2", "--out", folder)
        assert prism("run", "rumour", *given, *more).status == 0

    refused = {
        ("all", "five"): "has all agents, the other log 5 agents: there is nothing to compare",
        ("five", "six"): "has 5 agents, the other log 5 agents, but not the same: there is",
        ("none", "nil"): "has the rounds only, the other log the rounds only: there is nothing",
    }
    for runs, said in refused.items():
        differ = prism("log", "diff", *runs)
        assert (differ.status, said in differ.err) == (2, True)
    assert prism("log", "diff", "five", "five again").status == 0


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


LONG = "so far so good, " * 30
ESSAY = Path(__file__).parents[2] / "docs" / "workflows" / "essay.yaml"


@pytest.mark.parametrize("kind", ["thinking", "yaml"])
@pytest.mark.slow
def test_texts_and_actions_are_held_against_each_other(prism: Prism, kind: str) -> None:
    """``log diff`` of single agents names the first text and action, from where they differ."""
    (prism.folder / "config.json").write_text(Config().to_json())
    shutil.copy(ESSAY, prism.folder / "essay.yaml")
    shutil.copytree(ESSAY.parent / "traits", prism.folder / "traits")
    lines = {
        "thinking": ("config.json", "--memory"),
        "yaml": ("essay.yaml", "--set", "words=9", "--set"),
    }

    def run(name: str, end: str) -> None:
        def write(prompt: str, *_about: Any) -> str:
            if "You are in the state thinking" in prompt:
                return thought(LONG + end, "executing")
            return add(f"tag {end}", "v") if kind == "thinking" else LONG + end

        more = f"{name}.json" if kind == "thinking" else "topic=trains"
        with FakeOllama(write=write) as server:
            asking = ("--model", "llama3.2", "--host", server.url)
            given: tuple[str | int, ...] = (
                *lines[kind],
                more,
                "--rounds",
                2,
                *asking,
                "--out",
                name,
            )
            assert prism("run", *given).status in (0, 1)

    run("one", "here")
    run("same", "here")
    run("two", "there")
    same = prism("log", "diff", "one", "same")
    assert same.status == 0, same
    assert "text" in same.out
    differ = prism("log", "diff", "one", "two")
    assert differ.status == 1
    (line,) = (each for each in differ.out.splitlines() if "The first text" in each)
    assert "round 1, tick 1: was …" in line
    assert "good, here" in line
    assert "good, there" in line
    if kind == "thinking":
        told = "was agent working_memory_add tag_here done, is now agent working_memory_add"
        assert f"The first action that differs from one: round 2, tick 1: {told}" in differ.out
