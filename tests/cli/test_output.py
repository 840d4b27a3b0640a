"""Files that commands write: never over what they read, whole or not at all."""

import os
import shutil
from pathlib import Path

import pytest

from tests.kit.commands import LIMITED, Argument, Prism

OUT = Path("OUT")
WRITERS: dict[str, tuple[Argument, ...]] = {
    "export": ("chart", "export", "c.json", "--format", "svg", "-o", OUT),
    "table": ("log", "states", "run", "-o", OUT),
    "report": ("report", "run", "-o", OUT),
}


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run, and a chart in a file."""
    prism = Prism(tmp_path_factory.mktemp("ready"))
    assert prism("simulate", "--agents", 20, "--rounds", 2, "--out", "run").status == 0
    chart = ("chart", "export", "social_feed", "--format", "json", "-o", "c.json")
    assert prism(*chart).status == 0
    return prism.folder


@pytest.fixture
def command(prism: Prism, ready: Path) -> Prism:
    """Return the command line in a folder with a run, and a chart in a file."""
    shutil.copytree(ready, prism.folder, dirs_exist_ok=True)
    return prism


def naming(arguments: tuple[Argument, ...], out: Argument) -> list[Argument]:
    """Return a command with its output named."""
    return [out if each is OUT else each for each in arguments]


def content(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("writer", "out"),
    [
        (writer, out)
        for writer in WRITERS
        for out in ("run/events.jsonl", "run/run.json", "run/answers.jsonl", "soft", "hard", "a.py")
        # a chart's command reads no run, and replaces a hard link alone
        if (writer, out) != ("export", "hard")
    ],
)
@pytest.mark.sampled(6)
def test_no_command_overwrites_a_run(writer: str, out: str, command: Prism) -> None:
    """A run's files are refused by every command, and nothing changes."""
    (command.folder / "soft").symlink_to("run/events.jsonl")
    os.link(command.folder / "run" / "events.jsonl", command.folder / "hard")
    (command.folder / "a.py").write_text("import this")
    before = content(command.folder)
    ran = command(*naming(WRITERS[writer], out))
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert content(command.folder) == before


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.sampled(3)
def test_a_full_disk_keeps_the_old_file_and_names_it(writer: str, command: Prism) -> None:
    """Where the disk is full the old file stays, no half of a new one, and the error names it."""
    old = command.folder / "out.csv"
    old.write_bytes(b"<!DOCTYPE html>old")
    before = content(command.folder)
    # half a compiled module would be there for good
    first = f"import sys; sys.dont_write_bytecode = True; {LIMITED.format(10)}"
    ran = command.run(*naming(WRITERS[writer], "out.csv"), first=first)
    assert ran.status == 1
    last = ran.err.splitlines()[-1]
    assert last.startswith("prism: out.csv: ")
    assert "File too large" in last
    assert content(command.folder) == before
