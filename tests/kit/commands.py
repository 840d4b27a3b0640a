"""The command line, inside the test's own process or in a process of its own."""

import json
import logging
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import pytest

import prism
from prism.cli import main
from tests.kit.modules import forgotten_modules

ROOT = Path(prism.__file__).parents[1]

KEPT = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT", "TEMP")
"""Environment variables that a command takes over from the tests."""

MAIN = "from prism.cli import main; main()"

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"
"""Code that lets a process write no file longer than so many bytes, as on a full disk."""

_SIGNALLED = """
import os
from prism.runs.folder import RunFolder

keep, ended = RunFolder.round_ended, []

def round_ended(folder):
    keep(folder)
    ended.append(folder)
    if len(ended) == {rounds}:
        os.kill(os.getpid(), {sent:d})

RunFolder.round_ended = round_ended
"""

Argument = str | int | Path


@dataclass(frozen=True)
class Ended:
    """A command that has ended, with the bytes of its standard output."""

    status: int
    stdout: bytes
    err: str

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.stdout.decode()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output as JSON."""
        found: list[dict[str, Any]] = json.loads(self.stdout)
        return found


@dataclass(frozen=True)
class Prism:
    """``prism`` in a folder and an environment of its own, with lines of 80 columns.

    Attributes:
        folder: The current folder of its commands.
        group: The first arguments of every command, such as ``("log",)``.
        environment: Variables that its commands find besides those of `KEPT`.
    """

    folder: Path
    group: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: Argument) -> Ended:
        """Run a command to its end in this process: no interpreter to start, nothing to import."""
        out, err = (TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2))
        status = self._carry_out(arguments, out, err)
        return Ended(status, written_to(out), written_to(err).decode())

    def on_terminal(self, *arguments: Argument) -> Ended:
        """Run a command as `__call__` does, with a terminal for both of its outputs."""
        ours, theirs = pty.openpty()
        with ThreadPoolExecutor(1) as beside:
            with open(theirs, "w", encoding="utf-8") as screen:  # noqa: PTH123
                seen = beside.submit(all_from, ours)
                status = self._carry_out(arguments, screen, screen)
            return Ended(status, seen.result(), "")

    def _carry_out(self, arguments: tuple[Argument, ...], out: TextIO, err: TextIO) -> int:
        logger = logging.getLogger("prism")
        handlers = list(logger.handlers)

        with (
            pytest.MonkeyPatch.context() as patch,
            forgotten_modules(self.folder),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", ["prism", *self._line(arguments)])
            for name in set(os.environ) - set(KEPT):
                patch.delenv(name)
            for name, value in self._variables().items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()

        logger.handlers[:] = handlers
        return int(ended.value.code or 0)

    def start(self, *arguments: Argument, first: str = "", **options: Any) -> subprocess.Popen[str]:
        """Start a command in a process of its own.

        Args:
            arguments: What follows ``prism`` and `group`.
            first: Code that the process carries out before the command.
            options: Options of `subprocess.Popen`.
        """
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        line = [sys.executable, "-c", f"{first}\n{MAIN}", *self._line(arguments)]
        variables = {"PYTHONPATH": str(ROOT), **self._variables()}
        return subprocess.Popen(line, cwd=self.folder, env=variables, encoding="utf-8", **pipes)

    def run(self, *arguments: Argument, **options: Any) -> Ended:
        """Run a command to its end in a process of its own; see `start`."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate()
        return Ended(process.returncode, (out or "").encode(), err or "")

    def _line(self, arguments: tuple[Argument, ...]) -> list[str]:
        return [*self.group, *map(str, arguments)]

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, "COLUMNS": "80", **self.environment}


def signalled(sent: signal.Signals, rounds: int) -> str:
    """Return code with which a process gets a signal at the end of a round of its run.

    So it comes while there is much left to do, however busy the machine is.

    Args:
        sent: The signal.
        rounds: The round.
    """
    return _SIGNALLED.format(rounds=rounds, sent=sent)


def written_to(stream: TextIOWrapper) -> bytes:
    """Return everything that was written to a stream in memory."""
    stream.flush()
    content: bytes = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return content


def all_from(terminal: int) -> bytes:
    """Return everything that is written to a terminal until its other end is closed."""
    seen = b""
    while True:
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            os.close(terminal)
            return seen


@pytest.fixture
def prism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prism:
    """Return the command line in an empty folder, which is the test's current one, too."""
    monkeypatch.chdir(tmp_path)
    return Prism(tmp_path)
