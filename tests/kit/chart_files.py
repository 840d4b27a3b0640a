"""Charts as files and modules, valid and invalid, in a folder."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def wrong():
    return Statechart(Mood, [], "calm")


def needy(settings):
    return chart


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
    "list.json": "[]",
    "truncated.json": '{\n"schema": 2,\n"states": [',
    "twice.json": '{"schema": 2, "schema": 1}',
    "empty.json": "",
    "latin.json": "é",
    "deep.json": "[" * 100_000,
    "chart.txt": "{}",
    "moods.py": MODULE,
    "faulty.py": "import nothing_of_the_kind",
    "raising.py": "1 / 0",
    "syntax.py": "def",
}


def fill(folder: Path) -> None:
    """Put valid and invalid charts into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(
            text, encoding="latin-1" if name.startswith("latin") else "utf-8"
        )
    (folder / "folder.json").mkdir()


@pytest.fixture
def charts_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder with charts the current one, and forget its modules afterwards."""
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
