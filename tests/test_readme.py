"""The examples in the README and the documentation run as shown; `tests.kit.pages` says how.

The guides in docs/how-to are run by tests/how_to.
"""

import ast
import json
from pathlib import Path

import pytest

from prism.testing import FakeOllama
from tests.kit.pages import ROOT, Block, Reader, blocks_of

README = ROOT / "README.md"
GUIDES = ROOT / "docs" / "how-to"
ADOPTING = ROOT / "docs" / "adopting.md"
EXPERIMENTS = ROOT / "docs" / "science"
EXPERIMENT = ROOT / "docs" / "science.md"
SLOW = (
    "analysis",
    "charts",
    "cognition",
    "details",
    "feed",
    "from-mesa",
    "gallery",
    "index",
    "memory",
    "models",
    "report",
    "running",
    "testing",
    "tutorial",
    "workflows",
    "worlds",
)
"""Pages that start many processes, or whose examples take as long as those of twenty others. Those
below `EXPERIMENTS` take minutes: only test_pages_as_written.py follows them, which is long."""

PAGES = [
    README,
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent not in (GUIDES, EXPERIMENTS) and page not in (ADOPTING, EXPERIMENT)
    ),
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


@pytest.mark.parametrize(
    "wrong",
    [
        "```python\nimport prism.nothing\n```",
        "```python\nimport warnings\nwarnings.warn('old')\n```",
        "```python\ndef test_nothing(make_nothing):\n    pass\n```",
        "```pycon\n>>> 1 + 1\n3\n```",
        "```pycon\n>>> a = 1\n```\n```console\n$ true\n```\n```pycon\n>>> a\n1\n```",
        "```console\n$ false\n```",
        "```console\n$ echo one\ntwo\n```",
        "```sh\nprism simulate --agent 3\n```",
        "```sh\nprism log nothing RUN\n```",
        "```sh\nPRISM_KILLS=1 python -m prism.nothing\n```",
        "```sh\npip install '.[nothing]'\n```",
        "```sh\ntrue && frobnicate\n```",
        "```json\n{\n```",
        "```ruby\nputs 1\n```",
        "<!-- test: needs a model -->\n```console\n$ prism simulate --modle x\n```",
        "<!-- test: takes minutes -->\n```sh\nprism simulate --modle x\n```",
        "<!-- test: no mood -->\n```console\n$ prism --help\n```",
        "<!-- test: takes minutes -->\n```python\n1\n```",
    ],
)
def test_wrong_examples_are_found(wrong: str, tmp_path: Path) -> None:
    """A block that fails the check of its language is found."""
    with pytest.raises((AssertionError, json.JSONDecodeError)):
        Reader(tmp_path).follow(wrong + "\n")


def test_commands_leave_their_variables_to_the_next_block(tmp_path: Path) -> None:
    """Where a page is followed as written, an environment that it activates stays active."""
    page = "```sh\nexport COLOUR=blue\n```\n```console\n$ echo $COLOUR\nblue\n```\n"
    Reader(tmp_path, installs=True).follow(page)
    with pytest.raises(AssertionError):
        Reader(tmp_path, installs=True).follow("```sh\nfalse\n```\n")


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
        blocks("json", ROOT / "docs" / "worlds" / "details.md")[0].code + followed, encoding="utf-8"
    )
    assert [agent.agent_id for agent in load_population(tmp_path / "agents.jsonl").agents] == [
        "ada",
        "bo",
    ]
