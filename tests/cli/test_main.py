"""The entry point: help, version, and what a user gets wrong."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from prism import __version__
from prism.cli._main import app
from tests.kit.commands import Prism


def test_there_are_at_most_32_commands_and_25_options() -> None:
    """Who reads the help finds what matters."""
    commands = dict(_commands(typer.main.get_command(app), "prism"))
    assert len(commands) <= 32
    options = {
        name: len([each for each in command.params if each.opts[0][0] == "-"])
        for name, command in commands.items()
    }
    assert max(options, key=options.__getitem__) == "prism run"
    assert options["prism run"] <= 25


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(group, "commands"):
        yield path, group
        return
    for name in group.commands:
        yield from _commands(group.get_command(None, name), f"{path} {name}")


def test_command_alone_shows_the_help(prism: Prism) -> None:
    """Without a command the help is shown, which names the commands."""
    ran = prism()
    assert ran.status == 2
    assert "simulate" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--help"]])
@pytest.mark.sampled(3)
def test_reader_that_goes_away_causes_no_traceback(arguments: list[str], prism: Prism) -> None:
    """When nobody reads the output any more, as behind ``head``, the command ends silently."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = prism.run("simulate", "--agents", "20", "--rounds", "1", *arguments, stdout=writing)
    finally:
        os.close(writing)
    assert (ran.status, ran.err) == (1, "")


@pytest.mark.slow
def test_text_that_the_output_cannot_show_is_replaced(prism: Prism) -> None:
    """Where the output knows only ASCII, other characters are replaced."""
    person = '{{"agent_id": "{}", "interests": ["café 😀"], "archetype": "superuser"}}\n'
    (prism.folder / "people.jsonl").write_text(
        person.format("é1") + person.format("é2"), encoding="utf-8"
    )
    first = "import sys; sys.stdout.reconfigure(encoding='ascii', errors='strict')"
    run = ("simulate", "--set", "preset=classic", "--agents", "people.jsonl")
    ran = prism.run(*run, first=first)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.isascii()


def test_python_runs_the_package_as_the_command() -> None:
    """``python -m prism`` does what the script does, under the same name."""
    line = [sys.executable, "-m", "prism"]
    done = subprocess.run([*line, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[-1]) == (0, __version__)
    wrong = subprocess.run([*line, "nope"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr[:26]) == (2, "prism: No such command 'no")
