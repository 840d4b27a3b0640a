"""``prism workflow`` as a user runs it."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from prism.testing import FakeOllama, Fault
from tests.kit.commands import Prism, signalled
from tests.kit.processes import ROOT
from tests.kit.servers import hanging_after
from tests.kit.waiting import has_ended, wait_until

AGENT = """\
state_machine:
  states: [looking, working]
  transitions: [looking->working, working->working, working->looking]
steps:
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - name: look
    type: llm
    in_state: looking
    prompt: "Look {seen} of {tick}"
    output: text
    transition_to: working
  - name: work
    type: transition
    in_state: working
    prompt: "Work or rest, {seen}"
    transition_map: {work: working, rest: looking}
"""
TURNS = 5
RUN = ("run", "agent.yaml", "--rounds", TURNS)
ASKED = ("--model", "m", "--host", "http://127.0.0.1:9", "--rounds", "1")


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Return a server whose model writes."""
    with FakeOllama(write=lambda prompt, *_: "rest" if "rest" in prompt else "hello") as running:
        yield running


@pytest.fixture
def asking(server: FakeOllama) -> tuple[str, ...]:
    """Return the options that name the model."""
    return ("--model", "llama3.2", "--host", server.url)


@pytest.fixture(autouse=True)
def agent(prism: Prism) -> Path:
    """Write the workflow into the folder of the commands."""
    path = prism.folder / "agent.yaml"
    path.write_text(AGENT)
    return path


def log_of(folder: Path) -> bytes:
    """Return the bytes of a run's log."""
    return (folder / "events.jsonl").read_bytes()


# run


def test_a_run_prints_what_came_of_it(prism: Prism, asking: tuple[str, ...]) -> None:
    """State, transitions and variables are printed, and where the run is kept."""
    ran = prism(*RUN, *asking, "--out", "run")
    assert (ran.status, ran.err) == (0, "")
    for line in ("turns", "state", "transitions", "steps done", "seen", "look"):
        assert line in ran.out
    assert "Every step is in run/events.jsonl, this summary in run/run.json." in ran.out


def test_a_run_prints_json(prism: Prism, asking: tuple[str, ...]) -> None:
    """The summary is printed as ``run.json`` has it."""
    ran = prism(
        *RUN, *asking, "--out", "run", "--json", "--set", "n=3", "--set", "x=-.5", "--set", "who=me"
    )
    assert json.loads(ran.out) == json.loads((prism.folder / "run" / "run.json").read_text())
    assert json.loads(ran.out)["config"]["variables"] == {"n": 3, "x": -0.5, "who": "me"}


def test_a_run_is_replayed_to_the_same_bytes(
    prism: Prism, asking: tuple[str, ...], server: FakeOllama
) -> None:
    """A replay asks no model and writes the same log."""
    prism(*RUN, *asking, "--out", "run")
    server.stop()
    ran = prism("replay", "run", "--out", "again")
    assert (ran.status, ran.err) == (0, "")
    assert log_of(prism.folder / "again") == log_of(prism.folder / "run")


def test_a_workflow_that_stops_ends_with_status_1(
    prism: Prism, asking: tuple[str, ...], server: FakeOllama
) -> None:
    """Where a step fails for good the command says which, and what was the matter."""
    server.fail_always(Fault.status(400, "no"))
    ran = prism(*RUN, *asking)
    assert ran.status == 1
    assert "prism: the workflow stopped in turn 1: step 'look': " in ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("run", "agent.yaml"), "agent.yaml: asks a model in look, work: name the model"),
        (("run", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
        (("run", "agent.yaml", "--set", "x"), "--set must be NAME=VALUE, got 'x'"),
        (("run", "agent.yaml", "--set", "4=x"), "digits and underscores, got '4'"),
        (("run", "agent.yaml", "--set", "x=1", "--set", "x=2"), "--set has 'x' twice: '1' and '2'"),
        (("run", "agent.yaml", "--set", f"x={2**64}", *ASKED), "prism: the variable 'x' must be"),
        (("run", "agent.yaml", "--set", "_state_machine=3", *ASKED), "_state_machine"),
        (("run", "agent.yaml", "--max-calls", "3"), "--max-calls needs --model"),
        (("run", "agent.yaml", "--agents", 3), "--agents is not for an agent in YAML: leave it"),
        (("run", "agent.yaml", "--goal", "x"), "--goal is not for an agent in YAML: leave it out"),
        (("resume", "nowhere"), "nowhere: there is no such folder"),
        (("run", "agent.yaml", "--context", "no.yaml", "--model", "m"), "no.yaml: there is no"),
        (("run", "bad.yaml", "--model", "m"), "'steps[0].type': must be 'llm', 'code'"),
        (("workflow", "diagram", "bad.yaml"), "'steps[0].type': must be 'llm', 'code'"),
        (("workflow", "check", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
        (("workflow", "check", "broken.yaml"), "broken.yaml"),
    ],
)
@pytest.mark.sampled(4)
def test_wrong_input_is_one_line(prism: Prism, line: tuple[str, ...], said: str) -> None:
    """What cannot be run is told in one line, with status 2."""
    (prism.folder / "bad.yaml").write_text("steps: [{name: x, type: magic}]\n")
    (prism.folder / "broken.yaml").write_text("steps: [\n")
    ran = prism(*line)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


# resume


def test_an_interrupted_run_says_how_to_go_on(prism: Prism) -> None:
    """Ctrl-C leaves a run that goes on from its last turn."""
    with (
        FakeOllama(write=lambda *_: "rest", latency=hanging_after(4)) as slow,
        prism.start(
            *("run", "agent.yaml", "--rounds", 200, "--out", "run"),
            *("--model", "llama3.2", "--host", slow.url),
        ) as process,
    ):
        journal = prism.folder / "run" / "answers.jsonl"
        wait_until(lambda: (journal.exists() and journal.stat().st_size) or has_ended(process))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    hint = "prism: continue with: prism resume run\nprism: interrupted\n"
    assert (process.returncode, out, err) == (130, "", hint)


@pytest.mark.slow
def test_a_killed_replay_is_resumed_to_the_same_bytes(
    prism: Prism, asking: tuple[str, ...]
) -> None:
    """A run that was killed goes on to the log of one that never was."""
    turns = 150
    run = ("run", "agent.yaml", "--rounds", turns)
    prism(*run, *asking, "--out", "run")
    again = prism.folder / "again"
    line = ("replay", "run", "--out", "again")
    killed = prism.run(*line, first=signalled(signal.SIGKILL, 15))
    assert killed.status == -signal.SIGKILL
    ran = prism("resume", "again")
    assert ran.status == 0
    assert "prism: again: carrying it out again" in ran.err
    assert log_of(again) == log_of(prism.folder / "run")


# check


CHECKED = """\
state_machine: {states: [a, b]}
steps:
  - {name: ask, type: llm, prompt: "You have {balance}", transition_to: b}
"""


WRONG = """\
{
  "agent": {
    "golas": "to be brief",
    "paging": {"policy": "random"}
  }
}
"""


def test_check_prints_one_line_a_problem(prism: Prism) -> None:
    """Each problem is a line of file, line, column and message; status 1."""
    (prism.folder / "agent.yaml").write_text("state_machine: {states: [a, a]}\nsteps: []\n")
    ran = prism("workflow", "check", "agent.yaml")
    assert ran.status == 1
    assert ran.out == "agent.yaml:2:1: steps: must not be empty\n"


def test_check_reads_the_configuration_of_a_thinking_agent(prism: Prism) -> None:
    """A file in JSON is one; variables and components are no part of it."""
    path = prism.folder / "config.json"
    path.write_text(WRONG)
    ran = prism("workflow", "check", "config.json")
    places = [line.split(": ")[:2] for line in ran.out.splitlines()]
    assert (ran.status, [(place.split(":")[1], key) for place, key in places]) == (
        1,
        [("4", "agent.paging.policy")],
    )
    found = orjson.loads(prism("workflow", "check", "config.json", "--json").stdout)
    assert found["file"] == "config.json"
    severities = [(one["severity"], one["line"]) for one in found["problems"]]
    assert severities == [("note", 3), ("error", 4)]
    path.write_text("{}")
    assert prism("workflow", "check", "config.json").status == 0


def test_check_finds_nothing(prism: Prism) -> None:
    """A sound workflow has no lines and status 0."""
    ran = prism("workflow", "check", "agent.yaml")
    assert (ran.status, ran.out, ran.err) == (0, "", "")


# diagram


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        ((), "stateDiagram-v2"),
        (("--format", "dot"), "digraph"),
        (("--format", "svg"), "<svg"),
        (("--format", "json"), "{"),
    ],
)
def test_diagram_draws_a_workflow(prism: Prism, options: tuple[str, ...], begins: str) -> None:
    """A workflow is drawn in every format of charts, Mermaid by default."""
    ran = prism("workflow", "diagram", "agent.yaml", *options)
    assert ran.status == 0
    assert ran.out.startswith(begins)
    assert "looking" in ran.out


# progress


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.sampled(2)
def test_progress_shows_turn_and_state_on_a_terminal(
    prism: Prism, asking: tuple[str, ...], is_terminal: bool
) -> None:
    """On a terminal a bar shows turn, state and the last step; elsewhere nothing is drawn."""
    environment = {"FORCE_COLOR": "1"} if is_terminal else {}
    ran = Prism(prism.folder, environment=environment)(*RUN, *asking)
    assert ran.status == 0
    assert ("5/5" in ran.err) == is_terminal
    assert ("after look" in ran.err or "after work" in ran.err) == is_terminal


# help and extras


WITHOUT_YAML = """
import sys
from prism.cli import main

sys.modules["yaml"] = None
for line in ("chart show social_media", "workflow check agent.yaml"):
    sys.argv = ["prism", *line.split()]
    try:
        main()
    except SystemExit as ended:
        print(ended.code)
"""


@pytest.mark.slow
def test_the_command_line_starts_without_the_extra(prism: Prism) -> None:
    """Without YAML other commands work, and this one says what to install."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_YAML],
        cwd=prism.folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    said = ran.stdout.splitlines()
    assert (said[0].startswith("social_media: "), said[-2:]) == (True, ["0", "2"])
    assert "prism.programs.yaml needs the package 'PyYAML'" in ran.stderr
