"""What logs, servers and names of files say reaches no terminal as it is."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from prism.testing import FakeOllama, Fault
from tests.kit.commands import Argument, Prism

EVIL = "\x1b]0;x\x07\x1b[31m\x9b2J\u202e\u2066\u200f\u2028\x85\x7f\x08"
OBEYED = [character for character in EVIL if not character.isprintable()]
NAME = f"{EVIL}\udce9"
"""A name of a file: hostile, and not UTF-8."""

TABLES = [
    *("states", "transitions", "dwell", "decisions", "participation", "cascades"),
    *("agents", "faults"),
]
FORMATS: list[tuple[str, ...]] = [(), ("-o", "-"), ("--json",)]
FOR_PROGRAMS = {"-", "export", "--json"}
"""What is written as it is to a pipe."""

LOG = Path("LOG")
ON_LOG: list[tuple[Argument, ...]] = [
    *(("log", table, LOG, *each) for table in TABLES for each in FORMATS),
    *(("log", "agent", f"agent_0001{EVIL}", LOG, *each) for each in FORMATS),
    ("log", "agent", f"nobody{EVIL}", LOG),
    ("log", "decision", LOG),
    ("log", "decision", LOG, "--json"),
    ("log", "decision", f"agent_0001{EVIL}:1", LOG),
    ("log", "decision", EVIL, LOG),
    ("status", LOG),
    ("status", f"nothing{EVIL}"),
    ("status", "."),
    ("log", "check", LOG, "--chart", "social_media"),
    ("log", "check", LOG, "--chart", EVIL),
    ("log", "states", LOG, LOG),
    ("log", "states", EVIL),
    ("log", EVIL),
    ("report", LOG, "-o", f"{NAME}.html"),
    ("report", LOG, "-o", f"{NAME}/page.html"),
    ("chart", "show", f"{NAME}.json"),
    ("chart", "check", f"{NAME}.json"),
    ("chart", "explain", f"{NAME}.json", "go", "--state", "a"),
    ("chart", "export", f"{NAME}.json", "--format", "mermaid"),
    ("chart", "explain", f"{NAME}.json", f"go{EVIL}", "--state", f"a{EVIL}"),
    ("simulate", "--agents", f"{NAME}.jsonl", "--rounds", 1, "--out", f"run{NAME}"),
    ("simulate", "--agents", f"{EVIL}.jsonl"),
    ("resume", EVIL),
    ("replay", LOG),
    ("simulate", "--model", EVIL),
    ("doctor", "--model", f"ollama:{EVIL}@http://{EVIL}"),
]


def is_harmless(text: str) -> bool:
    """Return True if a terminal obeys nothing of a text, apart from colours and line ends."""
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[1;31m"):
        text = text.replace(code, "")
    return not any(character in text.replace("\r\n", "\n") for character in OBEYED)


@pytest.fixture
def hostile(prism: Prism) -> Iterator[Prism]:
    """Return the command line in a folder with a hostile log, chart and population."""
    assert prism("simulate", "--agents", 8, "--rounds", 2, "--out", "run").status == 0
    lines = (prism.folder / "run" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        for key in ("agent_id", "text", "from_state", "to_state", "trigger", "state", "chart"):
            if isinstance(event.get(key), str):
                event[key] += EVIL
    text = "".join(f"{json.dumps(event)}\n" for event in [*events[:-1], {"event": EVIL}])
    (prism.folder / f"{NAME}.log").write_text(f"{text}{{half {EVIL}")

    states = {"states": ["a", f"b{EVIL}"], "initial": "a"}
    chart = {"trigger": "go", "source": "a", "target": f"b{EVIL}"}
    (prism.folder / f"{NAME}.json").write_text(
        json.dumps({**states, "name": EVIL, "transitions": [chart]})
    )
    person = {"agent_id": f"a{EVIL}", "interests": [EVIL + "x"]}
    (prism.folder / f"{NAME}.jsonl").write_text(json.dumps(person))
    yield prism
    # pytest cannot name such files when it tidies up
    shutil.rmtree(os.fsencode(prism.folder))


@pytest.mark.slow
def test_no_command_prints_what_a_terminal_obeys(hostile: Prism) -> None:
    """Whatever logs, charts, populations and names of files hold, the screens hold none of it."""
    raw = {}
    for arguments in ON_LOG:
        ran = hostile(*(f"{NAME}.log" if each is LOG else each for each in arguments))
        said = ran.err if FOR_PROGRAMS & {*arguments} else ran.out + ran.err
        if not is_harmless(said) or "Traceback" in said:
            raw[str(arguments)] = said
    assert raw == {}


@pytest.mark.parametrize(
    "line",
    [
        *(("log", "transitions", f"{NAME}.log", *each) for each in FORMATS),
        ("status", f"{NAME}.log", "--json"),
    ],
    ids=range(4),
)
@pytest.mark.sampled(3)
def test_a_terminal_gets_no_raw_table(line: tuple[str, ...], hostile: Prism) -> None:
    """On a terminal even the formats for programs are made to be only looked at."""
    said = hostile.on_terminal(*line).out
    assert said
    assert is_harmless(said)


@pytest.mark.parametrize("command", ["doctor", "simulate"])
def test_no_server_speaks_to_the_terminal(command: str, prism: Prism, server: FakeOllama) -> None:
    """What a server says of a fault is printed without what a terminal would obey."""
    server.fail_always(Fault.status(400, EVIL))
    model = ("--model", f"ollama:tiny@{server.url}")
    run = ("--agents", 5, "--rounds", 1)
    ran = prism(command, *(run if command == "simulate" else ()), *model)
    assert is_harmless(ran.out + ran.err)


def test_a_name_that_is_not_text_is_shown_by_its_bytes(prism: Prism) -> None:
    """A run whose name is not UTF-8 is named by its status as by all else."""
    name = "r\udce9n"
    assert prism("simulate", "--agents", 3, "--rounds", 1, "--out", name).status == 0
    assert "r\\xe9n" in prism("status", name).out
    shutil.rmtree(os.fsencode(prism.folder))
