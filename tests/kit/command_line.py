"""The command line, called inside the test's own process: no second process to wait for."""

import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from prism.cli import main


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str


def run_inside(folder: Path, *arguments: object) -> Ended:
    """Run a command in a folder, with output of 80 columns."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with (
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", ["prism", *map(str, arguments)]),
        patch.dict(os.environ, COLUMNS="80"),
    ):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)

    return Ended(status, out.getvalue(), err.getvalue())
