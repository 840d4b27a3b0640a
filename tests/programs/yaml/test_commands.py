"""Commands that carry out actions: what they leave behind, and agents whose host has them."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml._actions import by_command
from tests.kit.clocks import Clock
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop_clock: Clock
) -> None:
    """The action has failed, and no process is left."""
    monkeypatch.chdir(tmp_path)
    Path("hang.py").write_text(HANGING)
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def noted(*words: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    command = by_command(f"{sys.executable} hang.py")
    agent = agent_of(STEP, on_action=command, action_seconds=3)
    turn = asyncio.create_task(agent.turn())
    await loop_clock.passes(3, when=Path("pids").exists)
    await turn
    (result,) = agent.action_history
    assert (result.result, result.succeeded) == ("failed: took over 3 s", False)
    pids = Path("pids").read_text().split()
    assert len(pids) == 2
    await until(lambda: not any(map(is_alive, pids)))
    # the loop hears of the end a moment later, and complains if it is closed before
    await started[0].wait()


def is_alive(pid: str) -> bool:
    """Return whether a process is there, and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
