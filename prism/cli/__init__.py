"""The command line: ``prism``."""

from __future__ import annotations

import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    try:
        # only now, so that an interruption is quiet even while all this is imported
        from prism.cli._main import run as _run

        status = _run()
    except KeyboardInterrupt:
        sys.stderr.write("prism: interrupted\n")
        status = _INTERRUPTED

    sys.exit(status)
