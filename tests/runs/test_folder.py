"""The folder that a run leaves behind: begun, written, and left when a run fails."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

import prism
from prism.errors import FieldValueError, InputError, ReplayError
from prism.runlog import SimulatedClock
from prism.runs import RunFolder
from prism.runs._folder import LOG_NAME, SUMMARY_NAME, is_begun, refuse_own_file
from tests.kit.dice import (
    CONFIG,
    resume_in,
    throw_in,
    tree,
)

ABOUT = {"config": CONFIG}

# Beginning


@pytest.mark.parametrize("place", [".", "new", "a/b/c"])
def test_run_is_written_into_its_folder(place: str, tmp_path: Path, whole: Any) -> None:
    """An empty or missing folder, however deep, receives log and summary and nothing else."""
    folder = RunFolder.for_new(tmp_path / place)
    assert folder.is_new
    throw_in(folder)
    assert tree(tmp_path / place) == whole
    assert sorted(whole) == [LOG_NAME, SUMMARY_NAME]


def test_summary_tells_what_the_run_is_from_the_beginning(tmp_path: Path) -> None:
    """``run.json`` has version, schema and configuration from the beginning, results at the end."""
    folder = RunFolder.for_new(tmp_path)
    assert not is_begun(folder.path)
    with folder.writing({"config": {"text": "é"}}, SimulatedClock()):
        before = json.loads((tmp_path / SUMMARY_NAME).read_bytes())
        assert is_begun(folder.path)
        folder.complete({"results": {"number": 1}, "spent": 2})
    assert before == {"prism": prism.__version__, "schema": 1, "config": {"text": "é"}}
    assert json.loads((tmp_path / SUMMARY_NAME).read_bytes()) == {
        **before,
        "results": {"number": 1},
        "spent": 2,
    }


@pytest.mark.parametrize("held", [[LOG_NAME], [SUMMARY_NAME], [LOG_NAME, SUMMARY_NAME]])
def test_folder_with_a_run_is_refused(held: list[str], tmp_path: Path) -> None:
    """A folder that holds any part of a run is refused by name and stays as it was."""
    for name in held:
        (tmp_path / name).write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=rf"already holds .* \({', '.join(held)}\)") as refused:
        RunFolder.for_new(tmp_path)
    assert refused.value.path == str(tmp_path)
    assert tree(tmp_path) == before


def test_folder_with_the_files_of_others_is_refused(tmp_path: Path) -> None:
    """A folder that holds anything else is refused by name, hidden files apart."""
    for name in ("thesis.tex", "data.csv", "a.txt", "notes", ".git"):
        (tmp_path / name).write_bytes(b"precious")
    with pytest.raises(InputError, match=r"holds other files \(a.txt, data.csv, notes, \.\.\.\)"):
        RunFolder.for_new(tmp_path)

    for name in ("thesis.tex", "data.csv", "a.txt", "notes"):
        (tmp_path / name).unlink()
    throw_in(RunFolder.for_new(tmp_path))
    assert (tmp_path / ".git").read_bytes() == b"precious"


@pytest.mark.parametrize(
    "left", [{}, {LOG_NAME: b""}, {LOG_NAME: b"", f".{SUMMARY_NAME}.part": b'{"prism": "0.'}]
)
def test_run_that_was_killed_before_it_began_may_begin_again(
    left: dict[str, bytes], tmp_path: Path, whole: Any
) -> None:
    """What a process leaves that was killed before ``run.json`` was there is not a run."""
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="holds no run"):
        RunFolder.to_resume(tmp_path)
    throw_in(RunFolder.for_new(tmp_path))
    assert tree(tmp_path) == whole


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("file", "cannot be written to: Not a directory"),
        ("file/run", "cannot be written to: File exists"),
        ("x" * 300, "cannot be written to: .*too long"),
    ],
)
def test_impossible_folder_is_refused(place: str, problem: str, tmp_path: Path) -> None:
    """A file, a place below a file and an impossible name are refused, and nothing is changed."""
    (tmp_path / "file").write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=problem):
        throw_in(RunFolder.for_new(tmp_path / place))
    assert tree(tmp_path) == before


def test_run_that_came_in_between_is_not_overwritten(tmp_path: Path, whole: Any) -> None:
    """A run that another process has carried out since the folder was looked at stays as it is."""
    first, second = RunFolder.for_new(tmp_path), RunFolder.for_new(tmp_path)
    throw_in(first)
    with pytest.raises(InputError, match="already holds a run"):
        throw_in(second)
    assert tree(tmp_path) == whole


def test_of_two_that_begin_at_once_one_is_refused(
    tmp_path: Path, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run is being written nobody else begins one in its folder."""
    monkeypatch.setattr("prism.files._durable._LOOK_SECONDS", 0)
    second = RunFolder.for_new(tmp_path)

    def begin_another(_: int) -> None:
        with pytest.raises(
            InputError, match=f"{LOG_NAME}: is being written by another process: wait for it"
        ):
            throw_in(second)

    throw_in(RunFolder.for_new(tmp_path), begin_another)
    assert tree(tmp_path) == whole


# Failing


@pytest.mark.parametrize("kept_before", [[], [".notes"]])
def test_run_that_fails_in_its_first_round_leaves_nothing(
    kept_before: list[str], tmp_path: Path
) -> None:
    """An error of prism's own in the first round removes the run, and nothing else."""
    path = tmp_path / "run"
    for name in kept_before:
        path.mkdir()
        (path / name).touch()
    with (
        pytest.raises(FieldValueError),
        RunFolder.for_new(path).writing(ABOUT, SimulatedClock()),
    ):
        raise FieldValueError("impossible")
    assert [found.name for found in tmp_path.rglob("*")] == (
        ["run", *kept_before] if kept_before else []
    )


def test_rounds_that_have_ended_are_never_deleted(tmp_path: Path, whole: Any) -> None:
    """An error of prism's own in a later round keeps the run."""

    def fail(number: int) -> None:
        if number == 2:
            raise FieldValueError("impossible from here")

    with pytest.raises(FieldValueError):
        throw_in(RunFolder.for_new(tmp_path), fail)
    ended = [
        event
        for event in map(orjson.loads, (tmp_path / LOG_NAME).read_bytes().splitlines())
        if event["event"] == "round.ended"
    ]
    assert [event["round"] for event in ended] == [1, 2]
    resume_in(tmp_path)
    assert tree(tmp_path) == whole


def test_a_run_that_another_process_has_completed_is_not_resumed(stopped: Path) -> None:
    """Neither log nor results are written again."""
    folder, _ = RunFolder.to_resume(stopped)
    resume_in(stopped)
    before = tree(stopped)
    with pytest.raises(InputError, match="was just completed by another process"):
        throw_in(folder)
    assert tree(stopped) == before


def test_a_run_that_holds_an_answer_is_never_deleted(tmp_path: Path) -> None:
    """Not even if it fails in its first round: somebody has paid for the answer."""
    folder = RunFolder.for_new(tmp_path / "run")

    def fail() -> None:
        with folder.writing(ABOUT, SimulatedClock()):
            assert folder.journal is not None
            folder.journal.add({"id": "ada:1", "digest": "", "chosen": "on"})
            raise FieldValueError("impossible")

    with pytest.raises(FieldValueError):
        fail()
    answers = tmp_path / "run" / "answers.jsonl"
    assert orjson.loads(answers.read_bytes())["chosen"] == "on"
    assert answers.stat().st_mode & 0o077 == 0


def test_a_resume_that_does_something_else_names_the_first_line(stopped: Path) -> None:
    """The log stays as it was, and the message has both lines."""
    before = (stopped / LOG_NAME).read_bytes().rpartition(b"\n")[0] + b"\n"
    folder, _ = RunFolder.to_resume(stopped)
    with (
        pytest.raises(ReplayError, match=r"line 1 differs \(round 0, tick 0\)"),
        folder.writing(ABOUT, SimulatedClock()) as logger,
    ):
        logger.info("die.thrown", eyes=7)
    assert (stopped / LOG_NAME).read_bytes() == before


OWN = ["events.jsonl", "events.jsonl.gz", "run.json", "answers.jsonl"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a folder that holds a run."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(b"log")
    (folder / "run.json").write_bytes(b"{}")
    return folder


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("is_read", [True, False])
def test_files_of_a_run_are_refused(name: str, is_read: bool, run: Path, tmp_path: Path) -> None:
    """A run's files are refused by name, whether they exist and whether the run is read."""
    reads = [run] if is_read else []
    (tmp_path / "link").symlink_to(run / name)
    for out in (run / name, run / ".." / "run" / name, tmp_path / "link"):
        with pytest.raises(InputError, match="name another file"):
            refuse_own_file(out, reads)


def test_what_is_read_is_refused_by_every_name(run: Path, tmp_path: Path) -> None:
    """A file that is read is refused under its own name, behind links and as a hard link."""
    read = tmp_path / "chart.json"
    read.write_text("{}")
    (tmp_path / "soft").symlink_to(read)
    (tmp_path / "hard").hardlink_to(read)
    (tmp_path / "log").hardlink_to(run / "events.jsonl")
    for out, reads in (("chart.json", read), ("soft", read), ("hard", read), ("log", run)):
        with pytest.raises(InputError, match="is read by this command"):
            refuse_own_file(tmp_path / out, [reads])


def test_other_files_are_not_refused(run: Path, tmp_path: Path) -> None:
    """A table beside a run's files, and files of their names elsewhere, may be written."""
    for out in (run / "states.csv", run / "run.json.csv", tmp_path / "events.jsonl"):
        refuse_own_file(out, [run])
