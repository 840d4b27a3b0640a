"""Commands that carry out actions: what they leave behind, and agents whose host has them."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic_monty")

from prism.workflow._actions import by_command
from tests.kit.waiting import until
from tests.kit.writers import agent_of

STEP = "steps: [{name: act, type: llm, prompt: Act.}]\n"
HANGING = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, file=open("pids.new", "w"), flush=True)
os.rename("pids.new", "pids")
time.sleep(600)
"""


@pytest.mark.slow
async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The action has failed, and no process is left."""
    monkeypatch.chdir(tmp_path)
    Path("hang.py").write_text(HANGING)
    command = by_command(f"{sys.executable} hang.py")
    agent = agent_of(STEP, on_action=command, action_seconds=3)
    await agent.turn()
    (result,) = agent.action_history
    assert (result.result, result.succeeded) == ("failed: took over 3 s", False)
    pids = Path("pids").read_text().split()
    assert len(pids) == 2
    await until(lambda: not any(map(is_alive, pids)))


def is_alive(pid: str) -> bool:
    """Return whether a process is there, and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
