"""The code of the guides, after their diffs or before them."""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

Side = Literal["+", "-"]
Load = Callable[..., ModuleType]

DOCS = Path(__file__).parents[2] / "docs"
ADOPTING = DOCS / "adopting.md"

SECTIONS = {
    "plain-class": "A class with its own state",
    "dataclass": "A dataclass",
    "pydantic": "A pydantic model",
    "model": "A model in your loop",
    "service": "A service",
}
"""The sections of one page that are a guide each, by their names."""
_BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def text_of(guide: str) -> str:
    """Return a section of the page on agents that are there already."""
    opening, *sections = re.split(r"^## ", ADOPTING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = dict(section.split("\n", 1) for section in sections)
    section = named[SECTIONS[guide]]
    # some share the chart at the top of the page
    return section if "chart = " in section else opening + section


def code_of(guide: str, side: Side) -> str:
    """Return the code of a guide after its diffs (``+``), or the diffs before them (``-``)."""
    return "\n\n".join(
        _side_of(code, side) if kind == "diff" else code
        for kind, code in _BLOCK.findall(text_of(guide))
        if kind == "diff" or side == "+"
    )


def _side_of(diff: str, side: Side) -> str:
    lines = diff.splitlines()
    wrong = [line for line in lines if line and line[0] not in " +-"]
    assert not wrong, f"a line of a diff starts with a space, + or -, unlike {wrong}"
    return "\n".join(line[1:] for line in lines if not line or line[0] in (" ", side)) + "\n"


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a guide's code to a file."""

    def script(guide: str, side: Side = "+") -> Path:
        name = f"{guide.replace('-', '_')}_{'after' if side == '+' else 'before'}"
        path = tmp_path / f"{name}.py"
        path.write_text(code_of(guide, side), encoding="utf-8")
        return path

    return script


@pytest.fixture
def load(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ModuleType]]:
    """Return a function that imports a guide's code as a module."""

    def load(guide: str, side: Side = "+") -> ModuleType:
        path = script(guide, side)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, module)
        spec.loader.exec_module(module)
        return module

    return load


def moved(guide: ModuleType, agent: Any) -> Any:
    """Fire an event and a tick on an agent of a guide."""
    assert guide.chart.fire(agent, "bumped", 9) is guide.Mood.ANGRY
    guide.chart.tick(agent)
    return agent
