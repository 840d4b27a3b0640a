"""Packages by others that a long proof downloads, and never keeps here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def download(folder: Path, *command: str) -> None:
    """Run a package manager in a folder; skip the test, by the command's name, if it fails."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{' '.join(command)} failed, as it does without a network: {error}")
