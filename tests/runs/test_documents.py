"""Memories of agents in worlds: what may be changed, and what a run's folder keeps of them."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import Memory
from prism.testing import FakeOllama
from tests.kit.cognition import add, thought
from tests.kit.commands import Prism

WORLD = '''\
from prism.programs.thinking import CognitiveAgent, Config, Memory
from prism.worlds import World


class Mine(World):
    """One agent whose memory is a file of the user's."""

    rounds = 2

    def populate(self, *_):
        return [CognitiveAgent(Config(), Memory.open("mine.json", backups=2), agent_id="a/b")]
'''
KEPT = Path("memories", "a%2Fb.json")
BEFORE = Path("memories", "before", "a%2Fb.json")


def say(prompt: str, *_more: Any) -> str:
    """Reply to a prompt: think, then add, as the state asks."""
    size = len(prompt)
    if "You are in the state thinking" in prompt:
        return thought(f"so far {size} letters", "executing")
    return add(f"entry {size}", "words")


@pytest.fixture
def asking(prism: Prism, own_modules: Path) -> Iterator[tuple[str, ...]]:
    """Write the world and a memory with 40 cycles; return the options that name a model."""
    (own_modules / "mine.py").write_text(WORLD)
    (prism.folder / "mine.json").write_text(json.dumps({"prism": {"schema": 2, "cycle": 40}}))
    with FakeOllama(write=say) as server:
        yield ("--writer", "ollama:llama3.2", "--host", server.url)


def files_of(folder: Path) -> dict[str, str]:
    """Return the digests of the memory's file and its backups."""
    found = (path for path in folder.glob("mine.json*") if not path.name.endswith(".lock"))
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.parametrize("kind", ["check", "dry run"])
@pytest.mark.slow
def test_a_trial_changes_no_memory_of_the_user(
    prism: Prism, asking: tuple[str, ...], kind: str
) -> None:
    """A check of a world and a dry run leave the memory that the world opens as it is."""
    before = files_of(prism.folder)
    line = ("world", "check", "mine.py:Mine")
    if kind == "dry run":
        line = ("run", "mine.py:Mine", *asking, "--dry-run")
    ran = prism(*line)
    assert ran.status == 0, ran
    assert files_of(prism.folder) == before


@pytest.mark.slow
def test_a_replay_begins_with_the_memory_of_then_and_changes_none(
    prism: Prism, asking: tuple[str, ...]
) -> None:
    """A replay after the memory has gone on writes the same log, from the copy of the first run."""
    assert prism("run", "mine.py:Mine", *asking, "--out", "first").status == 0
    before = files_of(prism.folder)
    assert Memory.read("mine.json").cycle > 40
    ran = prism("replay", "first", "--out", "again")
    assert ran.status == 0, ran
    assert files_of(prism.folder) == before
    first, again = Path("first"), Path("again")
    for name in ("events.jsonl", KEPT, BEFORE):
        assert (first / name).read_bytes() == (again / name).read_bytes()


def test_the_folder_of_a_run_has_the_memories_of_its_agents(
    prism: Prism, asking: tuple[str, ...]
) -> None:
    """After a run, the commands of memories read what each agent knew before and in the end."""
    assert prism("run", "mine.py:Mine", *asking, "--out", "first").status == 0
    assert (Path("first") / KEPT).read_bytes() == Path("mine.json").read_bytes()
    shown = prism("memory", "show", Path("first") / BEFORE, "--json")
    assert json.loads(shown.out)["cycle"] == 40
    few = ("--agents", 5, "--rounds", 1)
    ran = prism("run", "council", *asking, "--out", "council", *few)
    assert ran.status == 0, ran
    assert Memory.read("council/memories/member_1.json").cycle > 0
