"""The command line: ``prism``."""

from prism.cli._main import main

__all__ = ["main"]
