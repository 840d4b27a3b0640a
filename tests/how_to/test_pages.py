"""The guides as pages: their examples run, are short, and are found."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.how_to.conftest import ADOPTING, SECTIONS


@pytest.mark.parametrize("side", ["+", "-"])
@pytest.mark.parametrize("guide", SECTIONS)
@pytest.mark.sampled(2)
def test_examples_run(guide: str, side: str, script: Callable[..., Path]) -> None:
    """All code of a guide runs with its assertions, before and after its diffs."""
    path = script(guide, side)
    command = [sys.executable, "-W", "error", path]
    done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_has_the_guides_as_sections() -> None:
    """Every section of code has tests, which find it by its name."""
    text = ADOPTING.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS.values())
