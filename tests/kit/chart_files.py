"""Charts as files and modules, valid and invalid, in a folder."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.modules import forgotten_modules

MODULE = """
from prism.statechart import Statechart, Transition, state_enum

Mood = state_enum("Mood", ["calm", "angry", "lost"])
bumped = Transition("bumped", Mood("calm"), Mood("angry"), guard=lambda agent, force: force > 3)
chart = Statechart(Mood, [bumped], Mood("calm"), name="moods")


class Charts:
    tidy = Statechart([Mood("calm")], [Transition("go", Mood("calm"), Mood("calm"))], Mood("calm"))


def make():
    return chart


def broken():
    raise KeyError("no")


number = 3
"""

DOCUMENT = {
    "schema": 2,
    "name": "doors",
    "states": ["open", "shut"],
    "initial": "shut",
    "transitions": [
        {
            "trigger": "push",
            "source": "shut",
            "target": "open",
            "guard": "is_strong",
            "action": "creak",
        },
        {"trigger": "timeout", "source": "open", "target": "shut"},
    ],
    "timeouts": {"open": 3},
}

FILES = {
    "doors.json": json.dumps(DOCUMENT),
    "newer.json": json.dumps({**DOCUMENT, "schema": 9}),
    "unknown.json": json.dumps({**DOCUMENT, "stats": []}),
    "truncated.json": '{\n"schema": 2,\n"states": [',
    "deep.json": "[" * 100_000,
    "moods.py": MODULE,
    "faulty.py": "import nothing_of_the_kind",
    "syntax.py": "def",
}


def fill(folder: Path) -> None:
    """Put valid and invalid charts into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def charts_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder with charts the current one, and forget its modules afterwards."""
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    with forgotten_modules(tmp_path):
        yield tmp_path
