"""The guides as pages: their examples run, are short, and are found."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit import processes

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = sorted(path.stem for path in GUIDES.glob("*.md") if path.stem != "README")
ELSEWHERE = {"mesa"}
"""Guides whose packages are too heavy for the usual environment; their own tests run them."""


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


@pytest.mark.parametrize("guide", PAGES)
def test_diffs_add_a_few_lines(guide: str) -> None:
    """Every diff of a guide adds less than twenty lines."""
    text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    diffs = re.findall(r"^```diff\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert diffs
    assert max(len(re.findall(r"^\+", diff, flags=re.MULTILINE)) for diff in diffs) < 20


@pytest.mark.parametrize("guide", PAGES)
def test_guides_are_short_and_say_what_to_look_out_for(guide: str) -> None:
    """A guide is about two screens long and ends with what to look out for."""
    text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert "You have" in text
    assert "ou want" in text
    assert text.rindex("\n## ") == text.index("\n## What to look out for")


def test_the_index_lists_every_guide() -> None:
    """The index links to every page of its folder, and to no other."""
    linked = re.findall(r"\]\(([\w-]+)\.md\)", (GUIDES / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == PAGES


@pytest.mark.parametrize("guide", ["README", *PAGES])
def test_links_name_existing_files(guide: str) -> None:
    """Every link within the documentation names an existing file."""
    targets = re.findall(
        r"\]\((?!https?://)([^)#]+)", (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    )
    assert [target for target in targets if not (GUIDES / target).is_file()] == []
