"""The command line: ``prism``."""

import sys

try:
    from prism.cli._main import main
except KeyboardInterrupt:
    # an interruption is quiet even while all this is imported
    sys.stderr.write("prism: interrupted\n")
    sys.exit(130)

__all__ = ["main"]
