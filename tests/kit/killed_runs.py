"""Runs of a thinking agent in processes of their own, which are killed."""

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from signal import SIGKILL
from typing import Any, Self

import orjson

from prism.testing import FakeOllama
from tests.kit.cognition import action, add, limited, thought

CYCLES = 24

CHILD = f"""
import os, signal, sys
from pathlib import Path
from prism import Run, resume
from prism.llm import Model
from prism.runs import Observer

url, doomed = sys.argv[1], int(sys.argv[2])

def on_round(cycle):
    # log and checkpoint are written, the memory is not
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
        return thought(f"of entry_{size % 5} and entry_{size % 7}", "executing")

    saved = action("storage_save", f"entry_{size % 7}", f"kept {size}")
    loaded = action("storage_load", f"entry_{size % 7}")
    return (add(f"entry_{size % 9}", f"value {size} " * 12), saved, loaded)[size % 3]


class Home:
    """A folder with a configuration, and a server, where one run is begun and resumed.

    The server runs until the ``with`` block ends.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        (path / "config.json").write_text(limited(480, 640).to_json())
        self.on_request: Callable[[], None] = lambda: None
        self.server = FakeOllama(write=self._say)
        self.server.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.stop()

    def _say(self, prompt: str, *_more: Any) -> str:
        self.on_request()
        return say(prompt)

    def start(self, doomed: int = 0) -> subprocess.Popen[bytes]:
        """Start the run, or resume it; it kills itself between log and memory of a cycle."""
        line = [sys.executable, "-c", CHILD, self.server.url, str(doomed)]
        return subprocess.Popen(line, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def complete(self, doomed: int = 0) -> bool:
        """Run to the end, or to where the process kills itself; return whether it came through."""
        with self.start(doomed) as process:
            _, said = process.communicate()
        assert process.returncode in (0, -SIGKILL), said.decode()
        return process.returncode == 0

    def kill_at_request(self, number: int) -> None:
        """Run until the model is asked for the nth time, and kill the process meanwhile."""
        asked = iter(range(number - 1, -1, -1))
        # the first request may come before this thread knows of the process
        started: Future[subprocess.Popen[bytes]] = Future()
        self.on_request = lambda: None if next(asked, 1) else started.result().kill()
        with self.start() as process:
            started.set_result(process)
            process.communicate()
        self.on_request = lambda: None

    def kill_after(self, seconds: float) -> bool:
        """Run for a time, from the first cycle on; return whether the process was still alive."""
        with self.start() as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(seconds)
            process.kill()
            _, said = process.communicate()
        assert process.returncode in (0, -SIGKILL), said.decode()
        return process.returncode != 0

    def has_ended(self) -> bool:
        """Return whether the run has come to its end."""
        summary = self.path / "run" / "run.json"
        return summary.exists() and b'"results"' in summary.read_bytes()

    @property
    def memory(self) -> Path:
        """The memory's file."""
        return self.path / "memory"

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the run, without what was measured."""
        lines = (self.path / "run" / "events.jsonl").read_bytes().splitlines()
        return [
            {
                name: value
                for name, value in orjson.loads(line).items()
                if name not in ("host", "latency", "queue_seconds", "request_seconds")
                and not name.endswith("_duration")
            }
            for line in lines
        ]
