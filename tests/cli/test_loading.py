"""What the command line loads to show its help, and before a run begins: little, and late."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import prism as package

COMMANDS = (
    *("run", "simulate", "resume", "replay", "status", "report", "calibrate", "doctor", "batch"),
    *("rerun", "compare", "sensitivity", "chart", "chart explain", "log", "log table"),
    *("think init", "workflow check", "world check"),
)

PROGRAM = """
import contextlib, io, json, os, sys
import typer

lone = typer.Typer()

@lone.command()
def hello(loud: bool = False, times: int = 1):
    pass

with contextlib.redirect_stdout(io.StringIO()):
    lone(["--help"], standalone_mode=False)

# what typer itself has loaded is not the commands' fault
before = set(sys.modules)
# what all commands share is loaded once, and counts for each
from prism.cli import main
found = {}
for command in json.loads(sys.argv[1]):
    reading, writing = os.pipe()
    if os.fork() == 0:
        sys.argv = ["prism", *command.split(), "--help"]
        with contextlib.redirect_stdout(io.StringIO()):
            with contextlib.suppress(SystemExit):
                main()
        with open(writing, "w") as pipe:
            json.dump(sorted(set(sys.modules) - before), pipe)
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        found[command] = json.load(pipe)
    os.wait()
print(json.dumps(found))
"""

HEAVY = {  # typer loads pydantic once an option has a value
    *("pydantic", "numpy", "scipy", "httpx", "ollama", "orjson", "yaml", "networkx"),
    *("structlog", "transitions", "jinja2", "vl_convert", "asyncio"),
}


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the modules that the help of each command loads that a test of this run asks for."""
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    named = {str(each.params.get("command")) for each in asked if each is not None}
    commands = ["", *(each for each in COMMANDS if each in named)]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        env={"PYTHONPATH": str(Path(package.__file__).parents[1]), "PATH": ""},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sampled(10)
def test_help_loads_nothing_heavy(command: str, loaded: dict[str, Any]) -> None:
    """What reads tables, asks models or writes logs is loaded by what does that."""
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded[command])


def test_the_list_of_commands_loads_no_other_room(loaded: dict[str, Any]) -> None:
    """``prism --help`` loads the modules of all commands and what they declare, nothing heavy."""
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded[""])
    rooms = {".".join(name.split(".")[:2]) for name in loaded[""] if name.startswith("prism.")}
    assert rooms <= {
        *("prism._lazy", "prism._version", "prism.cli", "prism.errors"),
        *("prism.llm", "prism.runs"),
    }
