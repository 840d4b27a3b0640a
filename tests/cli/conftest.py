"""Fixtures of the command line's tests: the command, and a server for it to ask."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

import prism
from prism.cli import main
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
    """The command line, in a folder and an environment of its own, with lines of 80 columns.

    A command that is run to its end runs in this process, which saves the start of an interpreter
    and the imports. It runs in a process of its own if it is given an environment or options of
    `subprocess.Popen`, and always by `start`.
    """

    folder: Path
    environment: dict[str, str] | None = None

    def __call__(self, *arguments: str | Path, **options: Any) -> Ran:
        """Run a command to its end."""
        if not options and self.environment is None:
            return self._run_here(arguments)
        with self.start(*arguments, **options) as process:
            out, err = process.communicate()
        return Ran(process.returncode, out or "", err or "")

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start a command in a process of its own."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        line = [sys.executable, "-c", "from prism.cli import main; main()", *map(str, arguments)]
        variables = {"PYTHONPATH": str(Path(prism.__file__).parents[1]), **self._variables()}
        return subprocess.Popen(line, cwd=self.folder, env=variables, encoding="utf-8", **pipes)

    def _run_here(self, arguments: Iterable[str | Path]) -> Ran:
        out, err = (TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2))
        logger = logging.getLogger("prism")
        handlers = list(logger.handlers)
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["prism", *map(str, arguments)])
            for name in set(os.environ) - set(KEPT):
                patch.delenv(name)
            for name, value in self._variables().items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        logger.handlers[:] = handlers
        return Ran(int(ended.value.code or 0), written_to(out), written_to(err))

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, "COLUMNS": "80", **(self.environment or {})}


def written_to(stream: TextIOWrapper) -> str:
    """Return everything that was written to a stream in memory."""
    stream.seek(0)
    return stream.read()


class Server(FakeOllama):
    """A model server whose requests can be read."""

    @property
    def chats(self) -> list[Mapping[str, Any]]:
        """The body of every chat that it was asked for."""
        return [asked.body for asked in self.questions if asked.path == "/api/chat"]


@pytest.fixture
def make_command(tmp_path: Path) -> Callable[..., Command]:
    """Return a maker of commands in processes of their own, with these environment variables."""
    return lambda **environment: Command(tmp_path, environment)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return the command line, in an empty folder."""
    return Command(tmp_path)


@pytest.fixture
def ollama() -> Iterator[Server]:
    """Return a running server with the model ``tiny``."""
    with Server(models=["tiny"]) as server:
        yield server
