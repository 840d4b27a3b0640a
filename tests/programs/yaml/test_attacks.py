"""Attacks on conditions and code steps: none escapes, hangs, eats memory or keeps a process.

The attacks are in ``tests/data/attacks.json``.
"""

import contextlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import InputError
from prism.programs.yaml import Workflow, WorkflowAgent
from tests.kit.writers import writer_of

MOST_SECONDS = 5.0
MOST_KILOBYTES = 100 << 10

ATTACKS = json.loads((Path(__file__).parents[2] / "data" / "attacks.json").read_text())
CONDITIONS = {**ATTACKS["conditions"], "deep source": "(" * 5000 + "1" + ")" * 5000}
SHORT: dict[str, Any] = {"x": ["a"] * 100, "balance": 10, "host": {}, "context": {}}
LONG = {
    "x": "a" * 999_900 + "\U0001f600",
    "l": list(range(140_000)),
    "m": list(range(140_000)),
    "p": "a" * 500_000,
    "q": "b" * 499_999 + "a",
}
"""Two megabytes that a model wrote."""

CASES = [
    pytest.param(key, context, start + text, id=f"{key}: {name}")
    for key, context, start, attacks in [
        ("run_if", SHORT, "", CONDITIONS),
        ("run_if", LONG, "", ATTACKS["conditions on long variables"]),
        ("code", SHORT, "", ATTACKS["code"]),
        ("code", SHORT, "y = ", CONDITIONS),
    ]
    for name, text in attacks.items()
]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def context_after(step: dict[str, Any], context: dict[str, Any]) -> dict[str, Any] | None:
    """Return the context after a turn; None if the file is refused or the step fails."""
    try:
        workflow = Workflow.from_text(json.dumps({"steps": [step]}))
    except InputError:
        return None
    agent = WorkflowAgent(workflow, writer_of(), context)
    turn = await agent.turn()
    return None if turn.has_stopped else agent.context


@pytest.mark.parametrize(("key", "context", "text"), CASES)
@pytest.mark.sampled(30)
async def test_nothing_escapes(key: str, context: dict[str, Any], text: str) -> None:
    """An attack is refused, fails or ends in time; nothing but its own variables is changed."""
    before = dict(context)
    began, memory = seconds(), peak()
    step = {"name": "s", "on_failure": "fail", "code": "y = 1", key: text}
    after = await context_after(step, context)
    assert seconds() - began < MOST_SECONDS
    assert peak() - memory < MOST_KILOBYTES
    assert context == before
    assert not Path("escaped").exists()
    if after is not None:
        assert set(after) <= {*context, "y", "i"}
        assert "prism" not in str(after.get("y"))
        assert str(os.getpid()) not in str(after.get("y"))
    assert await context_after({"name": "after", "code": "y = len([1, 2])"}, {}) == {"y": 2}


SLOW = "sum([sum([m for m in range(1000)]) for n in range(10**6)])"


@pytest.mark.parametrize(
    ("step", "condition"),
    [({"code": SLOW}, "1"), ({"run_if": SLOW}, "1"), ({"transition_to": "a"}, SLOW)],
)
@pytest.mark.sampled(3)
async def test_all_of_a_turn_ends_in_time(step: dict[str, str], condition: str) -> None:
    """However many steps and conditions take almost a second each."""
    both = {"code": "y = 1", "on_failure": "skip", **step}
    steps = [{"name": f"s{number}", **both} for number in range(40)]
    machine = {"states": ["a"], "transitions": [{"from": "a", "to": "a", "condition": condition}]}
    text = json.dumps({"state_machine": machine, "steps": steps})
    agent = WorkflowAgent(Workflow.from_text(text), writer_of())
    began = seconds()
    turn = await agent.turn()
    assert seconds() - began < MOST_SECONDS
    reasons = [run.reason or "" for run in turn.steps]
    assert any("have taken 2.5 s already" in each for each in reasons) or "run_if" in step


def workers() -> list[Path]:
    """Return the processes that this one has started; each is the child of a thread."""
    threads = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [pid for thread in threads for pid in thread.read_text(encoding="ascii").split()]
    return [Path("/proc") / pid for pid in pids]


def seconds() -> float:
    """Return how long this process and its workers, ended ones too, have computed."""
    ticks, own = 0, os.times()
    for worker in workers():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            ticks += sum(map(int, (worker / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return sum(own[:4]) + ticks / os.sysconf("SC_CLK_TCK")


def peak() -> int:
    """Return the most memory that this process and its workers have used, in kilobytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return own + max((_peak_of(worker) for worker in workers()), default=0)


def _peak_of(worker: Path) -> int:
    try:
        status = (worker / "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) if lines else 0


# Every process that has run code ends with its own status

CHILD = """
import asyncio, os, sys
from prism.programs.yaml import Workflow, WorkflowAgent

workflow = Workflow.from_text("steps: [{name: s, code: 'x = 1', run_if: tick > 0}]")
agent = WorkflowAgent(workflow)
asyncio.run(agent.turn())
assert agent.context == {"x": 1}
if sys.argv[1] == "fork" and os.fork() == 0:
    other = WorkflowAgent(Workflow.from_text("steps: [{name: s, code: 'x = 1'}]"))
    asyncio.run(other.turn())
    os._exit("start it by spawn" not in other.stopped)
if sys.argv[1] == "fork":
    _, status = os.wait()
    sys.exit(os.waitstatus_to_exitcode(status))
if sys.argv[1] == "raise":
    raise ValueError
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("number", range(25))
@pytest.mark.parametrize(("ending", "status"), [("fork", 0), ("0", 0), ("3", 3), ("raise", 1)])
@pytest.mark.sampled(50)
def test_a_process_ends_with_its_own_status(ending: str, status: int, number: int) -> None:
    """Whether it ends by itself, with a status, or with an error; a fork refuses to run code."""
    del number
    line = [sys.executable, "-c", CHILD, ending]
    done = subprocess.run(line, capture_output=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr.decode()
