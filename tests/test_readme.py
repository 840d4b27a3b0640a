"""The examples in the README and the documentation run as shown.

The sections of docs/adopting.md are run by tests/how_to. The blocks of a page run in order, in one
folder. Each language has its own check:

- ``python``: a program, which ends without an error or a warning; if it defines tests, pytest runs
  them.
- ``pycon``: a session of Python with its output. Names are kept for the next such block, up to a
  block of commands.
- ``console``: commands that succeed, with their output if the page shows it; ``...`` stands for
  anything.
- ``sh``: commands that install prism. They are only checked: they exist, with options that exist.
- ``json``: JSON, or one JSON value a line.
- ``yaml``: one document of YAML.
- ``text``: nothing is checked.
- ``toml``: a document of TOML.

A comment before a block changes that. ``<!-- test: needs a model -->`` gives the reason why its
commands are checked and not run; ``<!-- test: saved as test_ada.py -->`` keeps it as a file for the
commands that follow.
"""

import ast
import doctest
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from prism.agents import load_population
from prism.cli._main import app
from prism.files._yaml import parse_yaml
from prism.testing import FakeOllama

ROOT = Path(__file__).parents[1]

REASONS = ("needs a model", "needs a browser", "takes minutes")
DIRECTIVES = ("{eval-rst}", "{include}", "{toctree}")
OTHER_PROGRAMS = (".", "cmp", "ollama", "pip", "pytest", "uv")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

_BLOCK = re.compile(r"(?:^<!-- test: (.*) -->\n)?^```(\S+).*\n((?s:.*?))^```$", re.MULTILINE)
_EXTRAS = re.compile(r"(?:prism-statecharts|\.)\[([\w,]+)\]")
_TESTS = re.compile(r"^(async )?def test_|^\w+ = .*\.TestCase$", re.MULTILINE)
_SAVED = "saved as "


class Block(NamedTuple):
    """A block of code, and what a comment says about it, if one does."""

    note: str
    language: str
    code: str


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page, without the directives for the site."""
    found = [Block(*found) for found in _BLOCK.findall(text)]
    return [block for block in found if block.language not in DIRECTIVES]


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


class Reader:
    """A reader who follows a page in a folder.

    Args:
        folder: Where.
    """

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.folder = folder
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "80"}

    def follow(self, text: str) -> None:
        """Run or check every block of a page."""
        for block in joined(blocks_of(text)):
            if block.note.startswith(_SAVED):
                self._save(block)
            elif block.note:
                assert block.language in ("console", "sh"), f"no idea why: {block.note}"
                assert block.note in REASONS, f"no idea why: {block.note}"
                self.check(block)
            else:
                self.run(block)

    def run(self, block: Block) -> None:
        """Run a block, or check it if it cannot be run."""
        runners = {
            "python": self._run_python,
            "pycon": self._run_session,
            "console": self._run_console,
            "sh": check_commands,
            "json": check_json,
            "text": lambda _code: None,
            "toml": tomllib.loads,
            "yaml": parse_yaml,
        }
        assert block.language in runners, f"no idea what to do with {block.language}"
        runners[block.language](block.code)

    def check(self, block: Block) -> None:
        """Check the commands of a block that cannot be run."""
        commands = re.findall(r"^\$ .*", block.code, re.MULTILINE)
        check_commands(block.code if block.language == "sh" else "\n".join(commands))

    def started(self, *command: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run one command."""
        options: dict[str, Any] = {
            "cwd": self.folder,
            "env": self.environment,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "timeout": seconds,
        }
        return subprocess.run(command, **options)

    def _save(self, block: Block) -> None:
        (self.folder / block.note.removeprefix(_SAVED)).write_text(block.code, encoding="utf-8")
        self.run(block)

    def _run_python(self, code: str) -> None:
        # From a file, so that processes that the code starts can import it.
        (self.folder / "example.py").write_text(code, encoding="utf-8")
        done = self.started("python", "-W", "error", "example.py")
        assert (done.stderr, done.returncode) == ("", 0), done.stderr

        if _TESTS.search(code):
            path = self.folder / "test_of_the_page.py"
            path.write_text(code, encoding="utf-8")
            options = ("-q", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider")
            done = self.started("python", "-m", "pytest", *options, path.name)
            assert done.returncode == 0, done.stdout

    def _run_session(self, code: str) -> None:
        (self.folder / "session.txt").write_text(code, encoding="utf-8")
        options = ("-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE", "-o", "FAIL_FAST")
        done = self.started("python", "-W", "error", "-m", "doctest", *options, "session.txt")
        assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)

    def _run_console(self, code: str) -> None:
        for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            command, _, wanted = part.partition("\n")
            done = self._in_a_shell(command)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            shows = not wanted.strip() or doctest.OutputChecker().check_output(
                wanted, done.stdout, FLAGS
            )
            assert shows, f"{command}\n{done.stdout}"

    def _in_a_shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line with both streams in one."""
        return self.started("bash", "-c", f"exec 2>&1; {command}")


def check_commands(code: str) -> None:
    """Check that commands exist, with options that exist."""
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("();<>|&"):
                _check_command(words)
                words = []
            elif words or "=" not in word:
                words.append(word)


def _check_command(words: list[str]) -> None:
    program, arguments = Path(words[0]).name or words[0] if words else "", words[1:]
    if program == "prism":
        _check_options(arguments)
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


@cache
def all_commands() -> Any:
    """Return the commands of prism; made once, as it takes a tenth of a second."""
    return typer.main.get_command(app)


def _check_options(arguments: list[str]) -> None:
    command = all_commands()
    # it passes its options on to the command that it is short for
    rest = ["run", *arguments[1:]] if arguments[:1] == ["simulate"] else list(arguments)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.get_command(None, rest.pop(0))
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    can_run = not hasattr(command, "commands") or command.invoke_without_command
    assert can_run or rest[:1] == ["--help"], f"prism has no command {' '.join(arguments)}"
    assert {
        word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"
    } <= known


def check_json(code: str) -> None:
    """Check that a text is JSON, or one JSON value a line."""
    try:
        json.loads(code)
    except json.JSONDecodeError:
        for line in code.splitlines():
            json.loads(line)


README = ROOT / "README.md"
ADOPTING = ROOT / "docs" / "adopting.md"
PAGES = [
    README,
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page != ADOPTING),
]


def blocks(language: str, page: Path = README) -> list[Block]:
    found = blocks_of(page.read_text(encoding="utf-8"))
    return [block for block in found if block.language == language]


def starts_processes(page: Path) -> bool:
    return any(blocks(language, page) for language in ("console", "pycon", "python"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.relative_to(ROOT).as_posix(),
            marks=[pytest.mark.slow] if starts_processes(page) else [],
        )
        for page in PAGES
    ],
)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    """Every block of code in the README and the documentation passes the check of its language."""
    Reader(tmp_path).follow(page.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_model_decides_after_one_word_is_changed(tmp_path: Path) -> None:
    """Fifteen lines of the README, which run above without a model, run with one."""
    example = blocks("python")[0].code
    assert sum(bool(line.strip()) for line in example.splitlines()) <= 15
    assert example.count("None") == 1
    with FakeOllama(choose=lambda asked: "comes") as server:
        asked = example.replace("None", repr(f"ollama:llama3.2@{server.host}"))
        done = Reader(tmp_path).started("python", "-c", asked)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout)["comes"] == 20


def test_json_example_is_a_valid_population_line(tmp_path: Path) -> None:
    """The population line of the page loads, together with the agent it follows."""
    (example,) = blocks("json", ROOT / "docs" / "feed.md")
    path = tmp_path / "agents.jsonl"
    path.write_text(example.code + '{"agent_id": "bo", "interests": ["music"]}\n', encoding="utf-8")
    assert [agent.agent_id for agent in load_population(path).agents] == ["ada", "bo"]
