"""The page of the rooms; lint-imports checks what each of them imports."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_lists_the_rooms_in_the_order_of_the_contract() -> None:
    """The table of the architecture page has the layers of the import contract, lowest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `prism\.(\w+)` \|", page, re.MULTILINE)
    assert named == [layer.strip("()") for layer in reversed(layers)]
