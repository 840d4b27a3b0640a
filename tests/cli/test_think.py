"""``prism think`` as a user runs it."""

import os
import pty
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from prism.programs.thinking import Config, Memory
from prism.testing import FakeOllama, Fault
from tests.cli.test_hostile import EVIL, only_shown
from tests.kit.cognition import action, add, limited, thought
from tests.kit.commands import Ended, Prism, all_from, signalled
from tests.kit.servers import hanging_after
from tests.kit.waiting import has_ended

CYCLES = 9
FILES = ("config.json", "--memory", "memory.json")
RUN = ("run", *FILES, "--rounds", CYCLES)


def say(prompt: str, *_more: Any) -> str:
    """Reply to a prompt: think, then add, as the state asks."""
    size = len(prompt)
    if "You are in the state thinking" in prompt:
        return thought(f"so far {size} letters", "executing")
    return add(f"entry {size}", "some words " * 12)


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Return a server whose model writes."""
    with FakeOllama(write=say) as running:
        yield running


@pytest.fixture
def asking(server: FakeOllama) -> tuple[str, ...]:
    """Return the options that name the model."""
    return ("--model", "llama3.2", "--host", server.url)


@pytest.fixture(autouse=True)
def config(prism: Prism) -> Path:
    """Write a configuration, in which paging happens, into the folder of the commands."""
    path = prism.folder / "config.json"
    path.write_text(limited(430, 600).to_json())
    return path


def log_of(folder: Path) -> bytes:
    """Return the bytes of a run's log."""
    return (folder / "events.jsonl").read_bytes()


def cycles_of(path: Path) -> int:
    """Return how many cycles a memory holds."""
    with Memory.read(path) as memory:
        return memory.cycle


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Return the folder in which a run was kept, and what it has printed."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "config.json").write_text(limited(430, 600).to_json())
    with FakeOllama(write=say) as running:
        asking = ("--model", "llama3.2", "--host", running.url)
        return folder, Prism(folder)(*RUN, *asking, "--out", "run")


@pytest.fixture
def ran(done: tuple[Path, Ended], prism: Prism) -> Ended:
    """Return what a run has printed; it is kept in the folder of the commands."""
    shutil.copytree(done[0], prism.folder, dirs_exist_ok=True)
    return done[1]


# running


def test_a_run_prints_what_came_of_it(prism: Prism, ran: Ended) -> None:
    """Cycles, state, outcomes and sizes are printed, and where the run is kept."""
    assert ran.status == 0
    for line in ("cycles done", "state", "actions done", "pagings", "working memory", "storage"):
        assert line in ran.out
    assert "Every cycle is in run/events.jsonl, this summary in run/run.json." in ran.out
    assert cycles_of(prism.folder / "memory.json") == CYCLES


def test_each_cycle_is_a_line_where_there_is_no_terminal(done: tuple[Path, Ended]) -> None:
    """Standard error gets a line a cycle: states, size of the prompt, action, paging, thought."""
    lines = done[1].err.splitlines()
    assert len(lines) == CYCLES
    assert re.fullmatch(
        r"prism: cycle 1/9: thinking -> executing; a prompt of \d+ tokens; so far \d+ letters",
        lines[0],
    )
    assert re.search(r"2/9: executing -> thinking; .* tokens; working_memory_add entry_", lines[1])
    assert any("paging -> thinking; 1 paged out, 0 in" in line for line in lines)


@pytest.mark.parametrize("recorded", ["run", "run/events.jsonl"])
@pytest.mark.usefixtures("ran")
@pytest.mark.sampled(2)
def test_a_run_is_replayed_to_the_same_bytes(prism: Prism, recorded: str) -> None:
    """A replay asks no model, writes the same log and memory, and leaves the first memory alone."""
    first = (prism.folder / "memory.json").read_bytes()
    again = prism("replay", recorded, "--out", "again")
    assert again.status == 0
    assert log_of(prism.folder / "again") == log_of(prism.folder / "run")
    assert (prism.folder / "again" / "memories" / "agent.json").read_bytes() == first
    assert (prism.folder / "memory.json").read_bytes() == first


def test_a_run_without_one_reply_of_use_ends_with_status_1(
    prism: Prism, asking: tuple[str, ...], server: FakeOllama
) -> None:
    """Where every cycle failed the command says so; the memory is as it was, and some older."""
    server.fail_always(Fault.status(400, "no"))
    ran = prism("run", *FILES, "--rounds", 2, *asking)
    assert ran.status == 1
    assert ran.err.splitlines()[-1].startswith("prism: no cycle got a useful reply")
    assert cycles_of(prism.folder / "memory.json") == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("run", "config.json"), "no memory is named: add --memory FILE"),
        (("run", *FILES), "no model is named: add --model NAME"),
        (("run", *FILES, "--agents", 3), "--agents is not for a thinking agent: leave it out"),
        (("run", *FILES, "--workers", 3), "--workers is not for a thinking agent: leave it out"),
        (("run", "nowhere.json", "--memory", "m", "--model", "x"), "nowhere.json: there is"),
        (("run", "bad.json", "--memory", "m", "--model", "x"), "bad.json"),
        (("run", *FILES, "--model", "x", "--rounds", "0"), "--rounds"),
        (("run", *FILES, "--max-calls", "3"), "--max-calls needs --model"),
        (("replay", "nowhere"), "nowhere: "),
        (("resume", "nowhere"), "nowhere: there is no such folder"),
        (("resume", "."), "RUN must name a folder of its own"),
        (("run", *FILES, "--goal", "word " * 3000, "--model", "x"), "config.json, field 'hard_lim"),
        (("think", "dance"), "No such command 'dance'"),
        (("think", "init"), "config.json: already exists and would be overwritten"),
    ],
)
@pytest.mark.sampled(8)
def test_wrong_input_is_one_line(prism: Prism, line: tuple[str, ...], said: str) -> None:
    """What cannot be run is told in one line, with status 2, and leaves no files."""
    (prism.folder / "bad.json").write_text('{"agent": {"goal": 3}}')
    before = sorted(prism.folder.rglob("*"))
    ran = prism(*line)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err
    assert sorted(prism.folder.rglob("*")) == before


# being interrupted, and going on


def slow_line(url: str, *more: str) -> tuple[str | int, ...]:
    """Return a run that takes a while."""
    return ("run", *FILES, "--rounds", 300, "--model", "llama3.2", "--host", url, *more)


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.sampled(2)
def test_an_interrupted_run_says_what_it_has_left(prism: Prism, is_kept: bool) -> None:
    """Ctrl-C leaves a memory of whole cycles; one line says so, and how to go on."""
    with (
        FakeOllama(write=say, latency=hanging_after(3)) as slow,
        prism.start(*slow_line(slow.url, *(("--out", "run") if is_kept else ()))) as process,
    ):
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    *_, kept, interrupted = [*said, *err.splitlines(keepends=True)]
    number = cycles_of(prism.folder / "memory.json")
    how = "continue with: prism resume run" if is_kept else "run the same command again"
    assert (process.returncode, out, interrupted) == (130, "", "prism: interrupted\n")
    assert kept.startswith(f"prism: memory.json holds {number} cycles; {how}")


@pytest.mark.slow
def test_a_killed_replay_is_resumed_to_the_same_bytes(
    prism: Prism, asking: tuple[str, ...]
) -> None:
    """A repeated run that was killed goes on to the log and the memory of one that never was."""
    assert prism("run", *FILES, "--rounds", 60, *asking, "--out", "run").status == 0
    again = prism.folder / "again"
    first = signalled(signal.SIGKILL, 15)
    assert prism.run("replay", "run", "--out", "again", first=first).status == -signal.SIGKILL
    assert prism("resume", "again").status == 0
    assert log_of(again) == log_of(prism.folder / "run")
    assert (again / "memory.json").read_bytes() == (prism.folder / "memory.json").read_bytes()


# the live view


TERMINAL = {"TERM": "xterm", "LINES": "40"}


def interrupted(prism: Prism, *line: Any, after: str) -> tuple[Popen[str], str]:
    """Interrupt a command once it has drawn something, and return all that it has drawn."""
    ours, theirs = pty.openpty()
    seen = b""
    with Prism(prism.folder, environment=TERMINAL).start(*line, stderr=theirs) as process:
        os.close(theirs)
        while after not in seen.decode(errors="replace") and not has_ended(process):
            seen += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        seen += all_from(ours)
        process.communicate()
    return process, seen.decode()


@pytest.mark.slow
def test_an_interruption_ends_with_what_to_do(prism: Prism) -> None:
    """Ctrl-C prints the two lines below."""
    with FakeOllama(write=say, latency=hanging_after(4)) as slow:
        process, seen = interrupted(prism, *slow_line(slow.url, "--out", "run"), after="3/300")
    number = cycles_of(prism.folder / "memory.json")
    assert process.returncode == 130
    assert CODES.sub("", seen).splitlines()[-2:] == [
        f"prism: memory.json holds {number} cycles; continue with: prism resume run",
        "prism: interrupted",
    ]


CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What rich draws with: colours, and moves of the cursor."""


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.slow
def test_no_reply_speaks_to_the_terminal(prism: Prism, is_terminal: bool) -> None:
    """Thoughts, tags and goals are shown without anything that a terminal would obey."""

    def evil(prompt: str, *_more: Any) -> str:
        if "You are in the state thinking" in prompt:
            return thought(f"evil {EVIL} thought", "executing")
        return action("working_memory_add", f"tag{EVIL}", EVIL)

    with FakeOllama(write=evil) as server:
        line = (*RUN, "--model", "llama3.2", "--host", server.url, "--agent-id", f"a{EVIL}b")
        if is_terminal:
            shown = replace(prism, environment=TERMINAL).on_terminal(*line)
            said = CODES.sub("", shown.out)
        else:
            ran = prism(*line)
            said = ran.out + ran.err

    assert "evil" in said
    assert only_shown(said.replace("\r", ""))


# init


def test_init_writes_what_runs(prism: Prism, asking: tuple[str, ...]) -> None:
    """The configuration that is written has nothing wrong, and the memory is empty."""
    ran = prism("think", "init", "story", "--goal", "a story")
    assert (ran.status, ran.err) == (0, "")
    files = ("story/config.json", "--memory", "story/memory.json")
    assert ran.out.splitlines()[-1] == f"next: prism run {' '.join(files)} --model NAME"
    assert Config.check(prism.folder / "story" / "config.json") == []
    assert Config.load(prism.folder / "story" / "config.json").goal == "a story"
    assert cycles_of(prism.folder / "story" / "memory.json") == 0
    assert prism("run", *files, *asking, "--rounds", 2).status == 0


@pytest.mark.parametrize("name", ["config.json", "memory.json"])
def test_init_overwrites_nothing(prism: Prism, name: str) -> None:
    """A folder that has one of the files keeps it, and gets no other."""
    (prism.folder / "story").mkdir()
    (prism.folder / "story" / name).write_text("mine")
    ran = prism("think", "init", "story")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"prism: story/{name}: already exists and would be overwritten\n"
    assert [path.name for path in (prism.folder / "story").iterdir()] == [name]
    assert (prism.folder / "story" / name).read_text() == "mine"
