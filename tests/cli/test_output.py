"""Files that commands write: never over what they read, whole or not at all."""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.commands import LIMITED, Argument, Prism

OUT = Path("OUT")
WRITERS: dict[str, tuple[Argument, ...]] = {
    "export": ("chart", "export", "c.json", "--format", "svg", "-o", OUT),
    "table": ("log", "states", "run", "--format", "table", "-o", OUT),
    "json": ("log", "agent", "agent_0001", "run", "--format", "json", "-o", OUT),
    "parquet": ("log", "dwell", "run", "--format", "parquet", "-o", OUT),
    "check": ("log", "check", "run", "--chart", "c.json", "--format", "csv", "-o", OUT),
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
def made(prism: Prism, ready: Path) -> Prism:
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
        for out in ("run/events.jsonl", "run/run.json", "soft", "hard")
        # a chart's command reads no run, and replaces a hard link alone
        if (writer, out) != ("export", "hard")
    ],
)
@pytest.mark.sampled(24)
def test_no_command_overwrites_a_run(writer: str, out: str, made: Prism) -> None:
    """A run's files are refused by every command, and nothing changes."""
    (made.folder / "soft").symlink_to("run/events.jsonl")
    os.link(made.folder / "run" / "events.jsonl", made.folder / "hard")
    before = content(made.folder)
    ran = made(*naming(WRITERS[writer], out))
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert content(made.folder) == before


def test_a_chart_is_not_written_over_itself(made: Prism) -> None:
    """A chart's file is no place to export it to."""
    before = (made.folder / "c.json").read_bytes()
    ran = made("chart", "export", "c.json", "--format", "mermaid", "-o", "c.json")
    assert ran.status == 2
    assert "c.json: is read by this command" in ran.err
    assert (made.folder / "c.json").read_bytes() == before


@pytest.mark.parametrize(
    "command", [("report", "run", "-o", "-"), ("log", "states", "run", "--format", "json")]
)
@pytest.mark.sampled(2)
def test_redirected_output_is_not_appended_to_what_is_read(
    command: tuple[Argument, ...], made: Prism
) -> None:
    """``prism log states run >> run/events.jsonl`` is refused."""
    log = made.folder / "run" / "events.jsonl"
    before = log.read_bytes()
    with log.open("ab") as out:
        ran = made.run(*command, stdout=out)
    assert ran.status == 2
    assert log.read_bytes() == before


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.sampled(6)
def test_a_full_disk_keeps_the_old_file_and_names_it(writer: str, made: Prism) -> None:
    """Where the disk is full the old file stays, no half of a new one, and the error names it."""
    old = made.folder / "out"
    old.write_bytes(b"<!DOCTYPE html>old")
    before = content(made.folder)
    # half a compiled module would be there for good
    first = f"import sys; sys.dont_write_bytecode = True; {LIMITED.format(10)}"
    ran = made.run(*naming(WRITERS[writer], "out"), first=first)
    assert ran.status == 1
    assert ran.err.splitlines()[-1] == "prism: out: File too large"
    assert content(made.folder) == before


@pytest.mark.parametrize(
    ("command", "least"),
    [
        (("chart", "export", "c.json", "--format", "json"), 3),
        (("log", "states", "run", "--format", "json"), 100),
    ],
)
@pytest.mark.sampled(2)
def test_standard_output_by_name_is_a_pipe_as_ever(
    command: tuple[Argument, ...], least: int, made: Prism
) -> None:
    """``-o /dev/stdout`` writes to standard output."""
    ran = made.run(*command, "-o", "/dev/stdout")
    assert ran.status == 0
    assert len(ran.rows) > least


@contextmanager
def piped(content: bytes) -> Iterator[None]:
    """Let this process find a text in its standard input, which comes through a pipe."""
    own = os.dup(0)
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(content)

    with ThreadPoolExecutor(1) as beside:
        try:
            wrote = beside.submit(write)
            yield
        finally:
            os.dup2(own, 0)
            os.close(own)
        wrote.result()


@pytest.mark.slow
def test_logs_are_read_from_pipes(made: Prism) -> None:
    """A log that comes through a pipe gives the tables and the report of the file."""
    log = (made.folder / "run" / "events.jsonl").read_bytes()
    for arguments in (("log", "states"), ("log", "transitions"), ("log", "dwell")):
        with piped(log):
            ran = made(*arguments, "/dev/stdin", "--format", "csv")
        assert (ran.status, ran.err) == (0, "")
        assert ran.out == made(*arguments, "run", "--format", "csv").out


def test_texts_in_csv_are_those_of_the_log(made: Prism) -> None:
    """No text is changed, whatever a spreadsheet would make of it: IDs join with other tables."""
    lines = (made.folder / "run" / "events.jsonl").read_text().splitlines()
    posts = [each for each in map(json.loads, lines) if each["event"] == "post.published"][:4]
    for event, text in zip(posts, ["=1+1", "@user", "-5", " =1"], strict=True):
        event["text"], event["agent_id"] = text, "@user"
    (made.folder / "signs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in posts))

    ran = made("log", "agent", "@user", "signs.jsonl", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [row["text"] for row in rows][:4] == ["=1+1", "@user", "-5", " =1"]
