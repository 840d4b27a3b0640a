"""Writing the files of commands: never over a file that is read, never half a file."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from prism.cli._screen import standard_output
from prism.errors import InputError, MissingExtraError

_STDOUT = Path("/dev/stdout")


@contextmanager
def missing_runs_first(runs: Iterable[Path | str]) -> Iterator[None]:
    """Complain about a run that does not exist before an extra that is not installed.

    Args:
        runs: Runs, or patterns of their names.

    Raises:
        InputError: If a run does not exist, and the extra that reads it is not installed.
    """
    try:
        yield
    except MissingExtraError:
        from prism.runlog._reader import locate_log

        for run in runs:
            if not glob.has_magic(str(run)) and not Path(run).exists():
                locate_log(run)
        raise


@contextmanager
def output_file(out: Path, reads: Iterable[Path] = ()) -> Iterator[IO[bytes]]:
    """Open a file for a command's output; once complete, it replaces an earlier one.

    Args:
        out: The file.
        reads: The files that the command reads.

    Raises:
        InputError: If it cannot be opened, is one that the command reads, or belongs to a run.
        OSError: If it cannot be written completely; an earlier file is left unchanged.
    """
    # the rooms of runs know a run's own files; help does not need them
    from prism.files import replacing
    from prism.runs._folder import refuse_own_file

    refuse_own_file(out, reads)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing(out))
        except (OSError, ValueError) as error:  # a name that holds a NUL is a ValueError
            problem = getattr(error, "strerror", None) or error
            raise InputError(f"cannot be written to: {problem}", path=out) from None

        yield file


@contextmanager
def opened_output(out: Path | None, reads: Iterable[Path] = ()) -> Iterator[IO[bytes]]:
    """Open a file for a command's output; without a name, give standard output.

    Raises:
        InputError: As `output_file`; or if standard output was redirected into a file that is read,
            or a run's own.
    """
    if out is not None:
        with output_file(out, reads) as file:
            yield file
        return

    refuse_read_output(reads)
    with standard_output() as file:
        yield file


def write_bytes(content: bytes, out: Path | None, reads: Iterable[Path] = ()) -> None:
    """Write a command's output to a file or, without a name, to standard output."""
    with opened_output(out, reads) as file:
        file.write(content)


def refuse_read_output(reads: Iterable[Path]) -> None:
    """Refuse standard output that was redirected into a file that is read, or a run's own.

    Raises:
        InputError: If it was.
    """
    from prism.runs._folder import refuse_own_file

    if _STDOUT.exists() and not sys.stdout.isatty():
        refuse_own_file(_STDOUT, reads)
