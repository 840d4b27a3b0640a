"""The examples in the README and the documentation run as shown; `tests.kit.pages` says how.

The sections of docs/adopting.md are run by tests/how_to.
"""

import ast
from pathlib import Path

import pytest

from prism.testing import FakeOllama
from tests.kit.pages import ROOT, Block, Reader, blocks_of

README = ROOT / "README.md"
ADOPTING = ROOT / "docs" / "adopting.md"
SLOW = (
    "analysis",
    "charts",
    "cognition",
    "feed",
    "mesa",
    "gallery",
    "index",
    "models",
    "running",
    "science",
    "testing",
    "tutorial",
    "watching",
    "workflows",
    "worlds",
)
"""Pages that start many processes, or whose examples take as long as those of twenty others."""

PAGES = [
    README,
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != ADOPTING),
]


def blocks(language: str, page: Path = README) -> list[Block]:
    found = blocks_of(page.read_text(encoding="utf-8"))
    return [block for block in found if block.language == language]


def lines_of(code: str) -> int:
    return sum(1 for line in code.splitlines() if line.strip())


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.relative_to(ROOT).as_posix(),
            marks=[pytest.mark.slow] if page.stem in SLOW else [],
        )
        for page in PAGES
    ],
)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    """Every block of code in the README and the documentation passes the check of its language."""
    Reader(tmp_path).follow(page.read_text(encoding="utf-8"))


def test_a_model_decides_after_one_word_is_changed(tmp_path: Path) -> None:
    """Fifteen lines of the README run without a model, and with one in the place of a word."""
    example = blocks("python")[0].code
    assert lines_of(example) <= 15
    assert example.count("None") == 1
    reader = Reader(tmp_path)
    counted = ast.literal_eval(reader.started("python", "-c", example).stdout)
    assert sum(counted.values()) == 20
    assert counted["comes"] > 0

    with FakeOllama(choose=lambda asked: "comes") as server:
        asked = example.replace("None", repr(f"ollama:llama3.2@{server.host}"))
        done = reader.started("python", "-c", asked)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout)["comes"] == 20


def test_json_example_is_a_valid_population_line(tmp_path: Path) -> None:
    """The population line of the page loads, together with the agent it follows."""
    from prism.agents import load_population

    followed = '{"agent_id": "bo", "interests": ["music"]}\n'
    (tmp_path / "agents.jsonl").write_text(
        blocks("json", ROOT / "docs" / "feed.md")[0].code + followed, encoding="utf-8"
    )
    assert [agent.agent_id for agent in load_population(tmp_path / "agents.jsonl").agents] == [
        "ada",
        "bo",
    ]
