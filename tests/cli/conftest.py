"""Fixtures of the command line's tests: the command as a real process, and a real server for it to ask."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import prism
from prism.testing import FakeOllama

KEPT = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT", "TEMP")


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    """The command line as a process of its own, in a folder and an environment of its own."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start a command; its output is 80 columns wide."""
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {
            "PYTHONPATH": str(Path(prism.__file__).parents[1]),
            "COLUMNS": "80",
            **self.environment,
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        line = [sys.executable, "-c", "from prism.cli import main; main()", *map(str, arguments)]
        return subprocess.Popen(line, cwd=self.folder, env=environment, encoding="utf-8", **pipes)

    def __call__(self, *arguments: str | Path, **options: Any) -> Ran:
        """Run a command to its end."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate()
        return Ran(process.returncode, out or "", err or "")


class Server(FakeOllama):
    """A model server whose requests can be read."""

    @property
    def chats(self) -> list[Mapping[str, Any]]:
        """The body of every chat that it was asked for."""
        return [asked.body for asked in self.questions if asked.path == "/api/chat"]


@pytest.fixture
def make_command(tmp_path: Path) -> Callable[..., Command]:
    """Return a function that makes the command with some environment variables set."""
    return lambda **environment: Command(tmp_path, environment)


@pytest.fixture
def command(make_command: Callable[..., Command]) -> Command:
    """Return the command line, in an empty folder."""
    return make_command()


@pytest.fixture
def ollama() -> Iterator[Server]:
    """Return a running server with the model ``tiny``."""
    with Server(models=["tiny"]) as server:
        yield server
