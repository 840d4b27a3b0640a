"""The entry point: help, version, and what a user gets wrong."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from prism import __version__
from prism.cli._main import app
from tests.kit.commands import Prism
from tests.kit.kept import tree
from tests.kit.waiting import MOST_SECONDS, has_ended, wait_until

FILES = {
    "agents.txt": "ann\n",
    "good.jsonl": '{"agent_id": "ann", "interests": ["art"]}\n',
    "no_posts.jsonl": "\n",
}

WRONG = {
    "no agents": (["--agents", "0"], ["--agents", "from 1 to", "0"]),
    "fewer than none": (["--agents", "-3"], ["--agents must be a whole number", "-3"]),
    "half an agent": (["--agents", "2.5"], ["--agents must be a whole number", "2.5"]),
    "neither number nor file": (["--agents", "1,000"], ["--agents", "number or a file", "1,000"]),
    "unknown option": (["--bogus"], ["--bogus"]),
    "no posts": (
        ["--agents", "good.jsonl", "--set", "first_posts=no_posts.jsonl"],
        ["no_posts.jsonl", "no posts"],
    ),
    "file as output": (["--out", "agents.txt"], ["agents.txt", "cannot be written"]),
    "output where nobody can write": (["--out", "/proc/nope/run"], ["cannot be written to"]),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.sampled(6)
def test_wrong_input_is_one_line_and_status_2(case: str, prism: Prism) -> None:
    """Wrong input ends with status 2 and a line that names it, and nothing is written."""
    arguments, named = WRONG[case]
    for name, text in FILES.items():
        (prism.folder / name).write_text(text)
    before = tree(prism.folder)
    ran = prism("simulate", *([] if "--out" in arguments else ["--out", "run"]), *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert (ran.err.startswith("prism: "), ran.err.count("\n")) == (True, 1)
    assert [words for words in named if words not in ran.err] == []
    assert tree(prism.folder) == before


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


@pytest.mark.parametrize("agents", ["1", "300"])
@pytest.mark.sampled(2)
def test_interrupted_run_says_so(agents: str, prism: Prism) -> None:
    """Ctrl-C ends a long run at once with status 130 and how to resume it; its folder stays."""
    with prism.start(
        "simulate", "--agents", agents, "--rounds", "1000000", "--out", "run"
    ) as process:
        log = prism.folder / "run" / "events.jsonl"
        wait_until(lambda: (log.exists() and log.stat().st_size) or has_ended(process))
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=MOST_SECONDS)
        finally:
            # one that goes on would fill the disk
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert err == "prism: continue with: prism resume run\nprism: interrupted\n"
    assert sorted(path.name for path in log.parent.iterdir()) == [log.name, "run.json"]


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
