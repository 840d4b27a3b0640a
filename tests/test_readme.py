"""The examples in the README and the documentation run as shown.

The blocks of a page run in order, in one folder. Each language has its own check:

- ``python``: a program, which ends without an error or a warning.
- ``pycon``: a session of Python with its output. Names are kept for the next such block, up to a
  ``console`` block.
- ``console``: commands that succeed, with their output if the page shows it; ``...`` stands for
  anything.
- ``sh``: commands that exist, with options that exist; they are not run.
- ``json``: JSON, or one JSON value a line.
- ``text``: nothing is checked.

A comment ``<!-- test: needs a model -->`` before a block gives the reason why it is checked like
``sh`` and not run. The guides in docs/how-to are run by tests/how_to.
"""

import doctest
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from prism.cli._main import app

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDES = ROOT / "docs" / "how-to"
PAGES = [README, *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent != GUIDES)]

REASONS = ("needs a model", "needs a browser", "takes minutes")
DIRECTIVES = ("{eval-rst}", "{include}", "{toctree}")
OTHER_PROGRAMS = ("cmp", "ollama", "pip", "pytest")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_BLOCK = re.compile(r"(?:^<!-- test: (.*) -->\n)?^```(\S+).*\n((?s:.*?))^```$", re.MULTILINE)
_EXTRAS = re.compile(r"(?:prism-statecharts|\.)\[([\w,]+)\]")


class Block(NamedTuple):
    """A block of code, and why it cannot be run, if so."""

    reason: str
    language: str
    code: str


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page, without the directives for the site."""
    found = [Block(*found) for found in _BLOCK.findall(text)]
    return [block for block in found if block.language not in DIRECTIVES]


def blocks(language: str) -> list[str]:
    return [
        block.code
        for block in blocks_of(README.read_text(encoding="utf-8"))
        if block.language == language
    ]


def joined(page: list[Block]) -> Iterator[Block]:
    """Join the ``pycon`` blocks that no command separates into one session."""
    session = ""
    for block in [*page, Block("", "console", "")]:
        if block.language == "pycon":
            session += block.code + "\n"
        elif block.language == "console" and session:
            yield Block("", "pycon", session)
            session = ""
        if block.language != "pycon":
            yield block


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where ``prism`` is the one under test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "80"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def run_python(code: str, folder: Path) -> None:
    done = run(sys.executable, "-W", "error", "-c", code, folder=folder)
    assert (done.stderr, done.returncode) == ("", 0)


def run_session(code: str, folder: Path) -> None:
    (folder / "session.txt").write_text(code, encoding="utf-8")
    options = ("-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE", "-o", "FAIL_FAST")
    done = run(
        sys.executable, "-W", "error", "-m", "doctest", *options, "session.txt", folder=folder
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def run_console(code: str, folder: Path) -> None:
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        done = run("bash", "-c", f"exec 2>&1; {command}", folder=folder)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        shows = not wanted.strip() or doctest.OutputChecker().check_output(
            wanted, done.stdout, FLAGS
        )
        assert shows, f"{command}\n{done.stdout}"


def check_commands(code: str, _folder: Path) -> None:
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("();<>|&"):
                check_command(words)
                words = []
            elif words or "=" not in word:
                words.append(word)


def check_command(words: list[str]) -> None:
    program, arguments = Path(words[0]).name if words else "", words[1:]
    if program == "prism":
        check_options(arguments)
    elif program in ("python", "python3"):
        assert arguments[0] == "-m"
        is_there = arguments[1] in OTHER_PROGRAMS or importlib.util.find_spec(arguments[1])
        assert is_there, f"there is no module {arguments[1]}"
    else:
        assert not words or program in OTHER_PROGRAMS, f"no idea what {program} is"
    named = {extra for found in _EXTRAS.findall(" ".join(words)) for extra in found.split(",")}
    assert named <= set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )


def check_options(arguments: list[str]) -> None:
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert not hasattr(command, "commands") or rest[:1] == ["--help"], (
        f"prism has no command {' '.join(arguments)}"
    )
    assert {
        word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"
    } <= known


def check_json(code: str, _folder: Path) -> None:
    try:
        json.loads(code)
    except json.JSONDecodeError:
        for line in code.splitlines():
            json.loads(line)


RUNNERS: dict[str, Callable[[str, Path], None]] = {
    "python": run_python,
    "pycon": run_session,
    "console": run_console,
    "sh": check_commands,
    "json": check_json,
    "text": lambda _code, _folder: None,
}


def follow(text: str, folder: Path) -> None:
    """Check every block of a page."""
    for block in joined(blocks_of(text)):
        assert block.language in RUNNERS, f"no idea what to do with {block.language}"
        if block.reason:
            assert (block.language, block.reason in REASONS) == ("console", True), (
                f"no idea why: {block.reason}"
            )
            check_commands("\n".join(re.findall(r"^\$ .*", block.code, re.MULTILINE)), folder)
        else:
            RUNNERS[block.language](block.code, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_run(page: Path, tmp_path: Path) -> None:
    """Every block of code in the README and the documentation passes the check of its language."""
    follow(page.read_text(encoding="utf-8"), tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        "```python\nimport prism.nothing\n```",
        "```python\nimport warnings\nwarnings.warn('old')\n```",
        "```pycon\n>>> 1 + 1\n3\n```",
        "```pycon\n>>> a = 1\n```\n```console\n$ true\n```\n```pycon\n>>> a\n1\n```",
        "```console\n$ false\n```",
        "```console\n$ echo one\ntwo\n```",
        "```sh\nprism simulate --agent 3\n```",
        "```sh\nprism log nothing RUN\n```",
        "```sh\nPRISM_KILLS=1 python -m prism.nothing\n```",
        "```sh\npip install 'prism-statecharts[nothing]'\n```",
        "```sh\ntrue && frobnicate\n```",
        "```json\n{\n```",
        "```ruby\nputs 1\n```",
        "<!-- test: needs a model -->\n```console\n$ prism simulate --modle x\n```",
        "<!-- test: no mood -->\n```console\n$ prism --help\n```",
    ],
)
def test_wrong_examples_are_found(wrong: str, tmp_path: Path) -> None:
    """A block that fails the check of its language is found."""
    with pytest.raises((AssertionError, json.JSONDecodeError)):
        follow(wrong + "\n", tmp_path)


def test_first_example_is_short_and_shows_states(tmp_path: Path) -> None:
    """The first example has about twenty lines and prints the distribution of states."""
    first = blocks("python")[0]
    assert sum(1 for line in first.splitlines() if line.strip()) <= 20
    shown = run(sys.executable, "-c", first, folder=tmp_path).stdout
    assert "AgentState.COMPOSING" in shown
    assert '"current_state"' in shown


def test_json_example_is_a_valid_population_line(tmp_path: Path) -> None:
    """The population line of the README loads, together with the agent it follows."""
    from prism.agents import load_population

    followed = '{"agent_id": "bo", "interests": ["music"]}\n'
    (tmp_path / "agents.jsonl").write_text(blocks("json")[0] + followed, encoding="utf-8")
    assert [agent.agent_id for agent in load_population(tmp_path / "agents.jsonl").agents] == [
        "ada",
        "bo",
    ]


def test_one_line_commands_need_only_python() -> None:
    """One line runs the simulation and one runs the tests; each needs only Python and pip."""
    lines = [
        line
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("python3 -m venv")
    ]
    assert [line.rsplit("/", 1)[-1] for line in lines] == [
        "prism simulate --agents 100 --rounds 10",
        "python -m pytest -n auto",
    ]
