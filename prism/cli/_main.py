"""Entry point: runs a command, and turns wrong input into one line and exit status 2."""

from __future__ import annotations
