"""The command line: ``prism``."""

from prism.cli.main import main

__all__ = ["main"]
