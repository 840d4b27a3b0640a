"""A run that is killed at any instant of its life, again and again, comes to the same bytes.

``PRISM_KILLS`` sets how many instants each scenario is killed at, spread over the whole life of an
undisturbed run from the start of the process to its end: 12 by default, 100 for the full proof.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from prism.testing import FakeOllama
from tests.kit.cognition import action, add, limited, thought
from tests.kit.models import varied

KILLS = int(os.environ.get("PRISM_KILLS", "12"))
NUMBERS = [
    pytest.param(number, marks=pytest.mark.long if number % 6 else pytest.mark.slow)
    for number in range(KILLS)
]
"""Two kills of a dozen are slow, the others long."""

MOST_KILLED_RESUMES = 6
OUT = ("--out", "run")
RESUME = ("resume", "run")
INTERRUPTED = "failed: the run was stopped in the middle of it, and does not repeat it"
TURNS = 60
WORKFLOW = """\
state_machine:
  states: [looking, working]
  transitions:
    - {from: looking, to: working, condition: "seen % 5 != 0"}
    - working->looking
    - working->working
steps:
  - {name: count, code: "seen = context.get('seen', 0) + 1"}
  - {name: trip, in_state: working, run_if: "seen % 7 == 0", code: "1 / 0", on_failure: skip}
  - {name: glance, type: llm, prompt: "Glance {seen}"}
  - {name: look, type: llm, in_state: looking, prompt: "Look {seen}", transition_to: working}
  - name: work
    type: transition
    in_state: working
    prompt: "Work or rest? {seen} {last_action_result}"
    transition_map: {work: working, rest: looking}
  - {name: after, code: "behind = context.get('behind', 0) + 1"}
"""
ACTING = """\
import os, time
from pathlib import Path
from prism.programs.yaml import Workflow, WorkflowAgent
from prism.worlds import Guest, World

def act(action):
    with open("carried_out", "a") as done:
        done.write(f"{action.key} {dict(action.action)}\\n")
        done.flush()
        os.fsync(done.fileno())
    time.sleep(0.03)  # many kills come when it has acted, and nobody knows yet
    return f"did {action.key}"

class Acting(World):
    def populate(self, agents):
        workflow = Workflow.load("agent.yaml")
        return [Guest(object=WorkflowAgent(workflow, on_action=act)) for _ in range(agents)]
"""
APPLICATION = """\
import sys
from pathlib import Path
from prism import Run, resume
from prism.llm import Model

if Path("run", "run.json").exists():
    resume("run")
else:
    model = Model("llama3.2", hosts=(sys.argv[1],))
    Run("acting.py:Acting", 1, rounds=TURNS, writer=model).keep("run")
""".replace("TURNS", str(TURNS))
MEASURED = ("latency", "queue_seconds", "request_seconds", "seconds", "total_duration")


@dataclass(frozen=True)
class Scenario:
    """A command, and what it leaves when nothing disturbs it.

    Args:
        line: The command.
        left: Every file that it leaves, hidden ones included, with its digest.
        seconds: How long it lives.
    """

    line: tuple[str | int, ...]
    left: dict[str, str]
    seconds: float


def start(folder: Path, *arguments: str | int) -> subprocess.Popen[bytes]:
    """Start the command in a folder, or the Python file that comes first."""
    is_file = str(arguments[0]).endswith(".py")
    program = [] if is_file else ["-c", "from prism.cli import main; main()"]
    line = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def complete(folder: Path, *arguments: str | int) -> float:
    """Run the command to its end, which must be a good one; give the seconds that it took."""
    began = time.monotonic()
    with start(folder, *arguments) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    return time.monotonic() - began


def kill(folder: Path, after: float, *arguments: str | int) -> None:
    """Start the command and kill it after so many seconds, if it is still alive."""
    with start(folder, *arguments) as process:
        time.sleep(after)
        process.kill()
        process.communicate()


def files(folder: Path) -> dict[str, str]:
    """Return every file below a folder with its digest."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in found}


ALONE: dict[str, tuple[str | int, ...]] = {
    "policy": ("simulate", "--agents", 200, "--rounds", 12, "--seed", 4),
    "births": ("run", "meadow", "--rounds", 60, "--seed", 4),
    "messages": ("run", "haggle", "--agents", 60, "--rounds", 20, "--seed", 4),
    "treated": ("run", "rumour", "--agents", 400, "--treat", "friends=4@9", "--log-agents", 50),
    "rates": ("run", "epidemic", "--agents", 400, "--rounds", 40, "--seed", 4),
}
"""Runs that ask nobody: of the feed, with births, with messages, with a treatment and a sample."""

REPLAYED: dict[str, tuple[str | int, ...]] = {
    "decisions": ("simulate", "--agents", 60, "--rounds", 12, "--seed", 3),
    "workflow": ("run", "{home}/agent.yaml", "--rounds", 4 * TURNS),
    "thinking": ("run", "{home}/think.json", "--memory", "{home}/memory", "--rounds", 24),
}
"""Runs that are recorded with a model, and replayed without."""


@pytest.fixture(scope="module", params=[*ALONE, *REPLAYED])
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return a run that asks nobody, or one that replays what a model decided or wrote."""
    home = tmp_path_factory.mktemp(request.param)
    line = ALONE.get(request.param, ("replay", str(home / "recorded")))
    if request.param in REPLAYED:
        (home / "agent.yaml").write_text(WORKFLOW)
        (home / "think.json").write_text(limited(480, 640).to_json())
        (home / "model.toml").write_text("concurrency = 16\n")
        with FakeOllama(choose=varied, write=written) as server:
            asked = ("--model", f"ollama:llama3.2@{server.url}", "--model-file", "model.toml")
            run = [str(word).format(home=home) for word in REPLAYED[request.param]]
            complete(home, *run, *asked, "--out", "recorded")
    seconds = complete(home, *line, *OUT)
    return Scenario(line, files(home / "run"), seconds)


def written(prompt: str, *_more: object) -> str:
    """Ask for an action, or choose where to go; the same in every run."""
    number = sum(map(ord, prompt))
    if "Work or rest" in prompt:
        return ("work", "rest")[number % 2]
    if "You are in the state thinking" in prompt:
        return thought(f"{number} of entry_{number % 5} and entry_{number % 7}", "executing")
    if "You are in the state executing" in prompt:
        added = add(f"entry_{number % 9}", f"value {number} " * 12)
        saved = action("storage_save", f"entry_{number % 7}", f"kept {number}")
        loaded = action("storage_load", f"entry_{number % 7}")
        return (added, saved, added, loaded)[number % 4]
    return json.dumps({"reasoning": "so", "action": {"type": "wait", "number": number}})


@pytest.mark.parametrize("number", NUMBERS)
def test_a_killed_run_comes_to_the_same_bytes(
    number: int, scenario: Scenario, tmp_path: Path
) -> None:
    """Killed at any instant, also while it is resumed, a run leaves what it would have left."""
    draw = random.Random(f"{scenario.line} {number}")
    run = tmp_path / "run"
    instant = scenario.seconds * (number + draw.random()) / KILLS
    kill(tmp_path, instant, *scenario.line, *OUT)
    for _ in range(MOST_KILLED_RESUMES):
        if draw.random() < 0.5:
            break
        kill(tmp_path, draw.random() * scenario.seconds, *next_line(scenario, run))
    complete(tmp_path, *next_line(scenario, run))
    assert files(run) == scenario.left


def next_line(scenario: Scenario, run: Path) -> tuple[str | int, ...]:
    """Return the command that goes on with a run, or begins it if it had not begun."""
    return RESUME if (run / "run.json").exists() else (*scenario.line, *OUT)


@dataclass(frozen=True)
class Acting:
    """An application that carries out what the agent of a workflow wants, undisturbed.

    Args:
        line: How it is started.
        events: Its log, without what was measured.
        carried_out: What it carried out, in order.
        seconds: How long it lives.
    """

    line: tuple[str, ...]
    events: list[dict[str, Any]]
    carried_out: list[str]
    seconds: float


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    """Return an application whose model asks for actions."""
    with FakeOllama(write=written) as server:
        home = application(tmp_path_factory.mktemp("acting"))
        line = ("app.py", server.url)
        seconds = complete(home, *line)
        done = (home / "carried_out").read_text().splitlines()
        assert len(done) > TURNS / 5
        yield Acting(line, not_measured(home / "run"), done, seconds)


def application(folder: Path) -> Path:
    """Write the application and its workflow into a folder."""
    (folder / "app.py").write_text(APPLICATION)
    (folder / "acting.py").write_text(ACTING)
    (folder / "agent.yaml").write_text(WORKFLOW)
    return folder


def not_measured(run: Path) -> list[dict[str, Any]]:
    """Return the events of a run, without what was measured."""
    events = map(json.loads, (run / "events.jsonl").read_bytes().splitlines())
    return [
        {name: value for name, value in event.items() if name not in MEASURED} for event in events
    ]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_killed_application_acts_at_most_once(
    number: int, acting: Acting, tmp_path: Path
) -> None:
    """Killed at any instant, no action is carried out twice, and the log says which was cut.

    Until the first that was cut, it has all that it would have had.
    """
    draw = random.Random(f"acting {number}")
    home, kills = application(tmp_path), 1
    kill(home, acting.seconds * (number + draw.random()) / KILLS, *acting.line)
    while draw.random() < 0.5:
        kill(home, draw.random() * acting.seconds, *acting.line)
        kills += 1
    complete(home, *acting.line)

    done = (home / "carried_out").read_text().splitlines()
    carried_out = [line.partition(" ")[0] for line in done]
    events = not_measured(home / "run")
    actions = [event for event in events if event["event"] == "workflow.action"]
    cut = [event["key"] for event in actions if not event["succeeded"]]
    assert len(cut) <= kills
    assert {event["result"] for event in actions if not event["succeeded"]} <= {INTERRUPTED}
    # one that was cut may have been carried out, or not
    assert len(set(carried_out)) == len(carried_out)
    assert [key for key in carried_out if key not in cut] == [
        event["key"] for event in actions if event["succeeded"]
    ]
    assert set(carried_out) <= {event["key"] for event in actions}
    same = next((n for n, event in enumerate(events) if event.get("result") == INTERRUPTED), None)
    assert events[:same] == acting.events[:same]
