"""A run of cycles that is killed at any instant: nothing is lost, nothing is done twice.

``PRISM_KILLS`` sets how often it is killed at least: 12 times by default, 200 for the full proof.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any

import orjson
import pytest

from prism import replay
from prism.testing import FakeOllama
from tests.kit.cognition import action, add, limited, thought

CYCLES = 24
KILLS = int(os.environ.get("PRISM_KILLS", "12"))
MEASURED = ("host", "latency", "queue_seconds", "request_seconds", "total_duration")

CHILD = f"""
import os, signal, sys
from pathlib import Path
from prism import Run, resume
from prism.llm import Model
from prism.runs import Observer

url, doomed = sys.argv[1], int(sys.argv[2])

def on_round(cycle):
    # the log is written, the memory is not
    if cycle.number == doomed:
        os.kill(os.getpid(), signal.SIGKILL)

class Loud(Observer):
    def started(self, run):
        print("under way", flush=True)

folder = Path("run")
if (folder / "run.json").exists():
    resume(folder, on_round=on_round, observer=Loud())
else:
    model = Model("llama3.2", hosts=(url,))
    options = Run(
        Path("config.json"), memory=Path("memory"), rounds={CYCLES}, reasoner=model
    )
    options.keep(folder, on_round=on_round, observer=Loud())
"""


def say(prompt: str, *_more: Any) -> str:
    """Reply by the prompt alone, so that every run of the same memory is the same."""
    size = sum(map(ord, prompt))
    if "You are in the state thinking" in prompt:
        return thought(f"{size} of entry_{size % 5} and entry_{size % 7}", "executing")

    saved = action("storage_save", f"entry_{size % 7}", f"kept {size}")
    loaded = action("storage_load", f"entry_{size % 7}")
    added = add(f"entry_{size % 9}", f"value {size} " * 12)
    return (added, saved, added, loaded)[size % 4]


def came_through(
    folder: Path, server: FakeOllama, doomed: int = 0, seconds: float | None = None
) -> bool:
    """Begin or resume a run; return whether it came to its end.

    Args:
        folder: Where it is.
        server: Its model's.
        doomed: The cycle between whose log and memory it kills itself.
        seconds: When it is killed, from its first cycle on.
    """
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(limited(480, 640).to_json())
    line = [sys.executable, "-c", CHILD, server.url, str(doomed)]
    with subprocess.Popen(
        line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        if seconds is not None:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(seconds)
            process.kill()
        _, said = process.communicate()
    assert process.returncode in (0, -SIGKILL), said.decode()
    return process.returncode == 0


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run, without what was measured."""
    lines = (folder / "run/events.jsonl").read_bytes().splitlines()
    events = map(orjson.loads, lines)
    return [{key: event[key] for key in event if key not in MEASURED} for event in events]


@pytest.mark.parametrize(
    "kills", [pytest.param(6, marks=pytest.mark.slow), pytest.param(KILLS, marks=pytest.mark.long)]
)
def test_a_run_that_is_killed_leaves_what_one_leaves_that_never_was(
    kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same log and memory, and the same replay, with all that an agent does."""
    draw, whole = Random("json"), tmp_path / "whole"
    with FakeOllama(write=say) as server:
        assert came_through(whole, server)
        names = {event["event"] for event in events_of(whole)}
        assert {"cognition.action", "cognition.paged", "cognition.cycle"} <= names
        while kills > 0:
            home = tmp_path / f"home {kills}"
            for doomed in (1, 9, CYCLES):
                kills -= not came_through(home, server, doomed)
                for _ in range(draw.randrange(4)):
                    kills -= not came_through(home, server, seconds=draw.random() * 0.04)
            assert came_through(home, server)
            assert (home / "memory").read_bytes() == (whole / "memory").read_bytes()
            assert events_of(home) == events_of(whole)

            monkeypatch.chdir(home)
            replay("run", "again")
            logs = [Path(name, "events.jsonl").read_bytes() for name in ("run", "again")]
            assert logs[0] == logs[1]
            assert Path("again/memories/agent.json").read_bytes() == Path("memory").read_bytes()
