"""The command line in this process: one start of its packages for all tests."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prism.cli import main


@dataclass(frozen=True)
class Printed:
    """The output of a command that has ended."""

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


@dataclass
class Prism:
    """``prism`` in this process, in an empty folder."""

    folder: Path
    captured: pytest.CaptureFixture[bytes]
    monkeypatch: pytest.MonkeyPatch
    group: tuple[str, ...] = ()

    def __call__(self, *arguments: str | Path) -> Printed:
        """Run a command to its end."""
        self.monkeypatch.setattr(sys, "argv", ["prism", *self.group, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.captured.readouterr()
        return Printed(int(ended.value.code or 0), out, err.decode())


@pytest.fixture
def prism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Prism:
    """Return the command line in this process, with an output that is 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return Prism(tmp_path, capfdbinary, monkeypatch)
