"""What the README and the documentation show runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str, page: Path = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("code", [code for page in PAGES for code in blocks("python", page)])
def test_python_examples_run(code: str, tmp_path: Path) -> None:
    """Every Python example of the README and the documentation runs without an error or a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_first_example_is_short_and_shows_states(tmp_path: Path) -> None:
    """The first example has about twenty lines and prints the distribution of states."""
    first = blocks("python")[0]
    assert sum(1 for line in first.splitlines() if line.strip()) <= 20
    shown = subprocess.run([sys.executable, "-c", first], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "AgentState.COMPOSING" in shown.stdout
    assert '"current_state"' in shown.stdout


def test_json_example_is_a_valid_population_line(tmp_path: Path) -> None:
    """The population line of the README loads, together with the agent it follows."""
    from prism.agents import load_population

    followed = '{"agent_id": "bo", "interests": ["music"]}\n'
    (tmp_path / "agents.jsonl").write_text(blocks("json")[0] + followed, encoding="utf-8")
    assert [agent.agent_id for agent in load_population(tmp_path / "agents.jsonl").agents] == ["ada", "bo"]


def test_one_line_commands_set_themselves_up() -> None:
    """One line runs the simulation and one passes the tests, each from nothing but Python and pip."""
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert [line.rsplit("/", 1)[-1] for line in lines] == [
        "prism simulate --agents 100 --rounds 10",
        "python -m pytest",
    ]
