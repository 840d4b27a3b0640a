"""Runs of cycles that are killed at any instant: nothing is lost, nothing is done twice.

``PRISM_KILLS`` sets how often runs are killed at random: 12 times by default, 200
for the full proof.
"""

import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from signal import SIGKILL
from typing import Any, Self

import orjson
import pytest

from prism import replay
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
        return thought(f"{size} of entry_{size % 5} and entry_{size % 7}", "executing")

    saved = action("storage_save", f"entry_{size % 7}", f"kept {size}")
    loaded = action("storage_load", f"entry_{size % 7}")
    added = add(f"entry_{size % 9}", f"value {size} " * 12)
    return (added, saved, added, loaded)[size % 4]


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


logger = logging.getLogger(__name__)
KILLS = int(os.environ.get("PRISM_KILLS", "12"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a run that nothing has disturbed."""
    with Home(tmp_path_factory.mktemp("kills") / "whole") as home:
        assert home.complete()
        yield home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Return a folder for a run that is to be disturbed."""
    with Home(tmp_path / "home") as other:
        yield other


def assert_undisturbed(home: Home, whole: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that a run, and its replay, left what one leaves that was never killed."""
    assert home.memory.read_bytes() == whole.memory.read_bytes()
    assert home.events() == whole.events()

    monkeypatch.chdir(home.path)
    replay("run", "again")
    assert Path("again/events.jsonl").read_bytes() == Path("run/events.jsonl").read_bytes()
    assert Path("again/memories/agent.json").read_bytes() == home.memory.read_bytes()


@pytest.mark.slow
def test_the_undisturbed_run_does_all_there_is_to_do(whole: Home) -> None:
    """Actions, pagings and overflows happen in the run that is killed below."""
    names = {event["event"] for event in whole.events()}
    assert {"cognition.action", "cognition.paged", "cognition.cycle"} <= names


@pytest.mark.slow
def test_a_run_killed_at_known_instants_is_as_if_it_never_was(
    home: Home, whole: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while its model writes, and between checkpoint and memory, it loses nothing."""
    home.kill_at_request(1)
    assert not home.complete(doomed=1)
    home.kill_at_request(3)
    for cycle in (9, CYCLES):
        assert not home.complete(doomed=cycle)
    assert home.complete()
    assert_undisturbed(home, whole, monkeypatch)


@pytest.mark.long
def test_a_run_killed_at_any_instant_is_as_if_it_never_was(
    whole: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed again and again at random instants, every run comes to the same log and memory."""
    draw, kills, runs = random.Random("json"), 0, 0
    while kills < KILLS:
        # a run that has come to its end leaves the kills that remain to another
        runs += 1
        with Home(tmp_path / f"home_{runs}") as home:
            while kills < KILLS and not home.has_ended():
                # opening, a few cycles, and what is between them
                kills += home.kill_after(draw.random() * 0.04)
            assert home.complete()
            assert_undisturbed(home, whole, monkeypatch)

    logger.info("killed %d times, in %d runs", kills, runs)
