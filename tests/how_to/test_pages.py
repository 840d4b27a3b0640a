"""The guides as pages: their examples run, are short, and are found."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.how_to.conftest import ADOPTING, GUIDES, SECTIONS, text_of
from tests.kit import processes

PAGES = sorted([*SECTIONS, *(path.stem for path in GUIDES.glob("*.md"))])
ELSEWHERE = {"mesa"}
"""Guides whose packages are too heavy for the usual environment; their own tests run them."""

WRITTEN_ANEW = {"from-xstate", "from-anylogic-or-repast", "model"}
"""Guides in which a chart is written anew, instead of changing a class that is there."""


def run(script: Path) -> tuple[int, str]:
    """Run a file with warnings as errors; return its exit code and stderr."""
    done = processes.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("side", ["+", "-"])
@pytest.mark.parametrize("guide", [page for page in PAGES if page not in ELSEWHERE])
@pytest.mark.sampled(2)
def test_examples_run(guide: str, side: str, script: Callable[..., Path]) -> None:
    """All code of a guide runs with its assertions, before and after its diffs."""
    assert run(script(guide, side)) == (0, "")


@pytest.mark.parametrize("guide", [page for page in PAGES if page not in WRITTEN_ANEW])
def test_diffs_add_a_few_lines(guide: str) -> None:
    """Every diff of a guide adds less than twenty lines."""
    text = text_of(guide)
    diffs = re.findall(r"^```diff\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert diffs
    assert max(len(re.findall(r"^\+", diff, flags=re.MULTILINE)) for diff in diffs) < 20


@pytest.mark.parametrize("guide", sorted(path.stem for path in GUIDES.glob("*.md")))
def test_guides_are_short_and_say_what_to_look_out_for(guide: str) -> None:
    """A guide of its own is about two screens long and ends with what to look out for."""
    text = text_of(guide)
    assert len(text.splitlines()) < 150
    assert text.rindex("\n## ") == text.index("\n## What to look out for")


def test_the_page_has_the_guides_as_sections_and_links_the_others() -> None:
    """Every section of code has tests, which find it by its name; every other guide is linked."""
    text = ADOPTING.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS.values())
    linked = set(re.findall(r"\]\(how-to/([\w-]+)\.md\)", text))
    assert linked == {path.stem for path in GUIDES.glob("*.md")}
