"""The folder that a run leaves behind: begun, written, and left when a run fails."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

import prism
from prism import Run, resume
from prism.errors import FieldValueError, InputError, ReplayError
from prism.runlog import SimulatedClock
from prism.runs import Observer, RunFolder
from tests.kit.commands import Prism
from tests.kit.kept import StoppedError, stop_after, tree

ABOUT: dict[str, Any] = {"config": {}}
LOG_NAME, SUMMARY_NAME = "events.jsonl", "run.json"

# Beginning


@pytest.mark.parametrize("place", [".", "new", "a/b/c"])
def test_run_is_written_into_its_folder(place: str, run: Run, tmp_path: Path, whole: Any) -> None:
    """An empty or missing folder, however deep, receives log and summary and nothing else."""
    outcome = run.keep(tmp_path / place)
    assert tree(tmp_path / place) == whole
    assert sorted(whole) == [LOG_NAME, SUMMARY_NAME]
    assert outcome.folder == tmp_path / place
    assert repr(outcome) == f"Outcome(folder={outcome.folder!r})"
    assert outcome.summary == json.loads((outcome.folder / SUMMARY_NAME).read_bytes())
    assert outcome.summary["results"] == run.run().to_dict()


def test_each_round_is_kept_before_it_is_reported(run: Run, tmp_path: Path) -> None:
    """``run.json`` has the configuration from the beginning, and the log each round that ended."""
    before: list[Any] = []

    def look(ended: Any) -> None:
        before.append(json.loads((tmp_path / SUMMARY_NAME).read_bytes()))
        assert (tmp_path / LOG_NAME).read_bytes().count(b"round.ended") == ended.number

    outcome = run.keep(tmp_path, on_round=look)
    head = {"prism": prism.__version__, "schema": 1, "config": run.to_config()}
    assert len(before) == run.rounds
    assert {name: before[0][name] for name in head} == head
    assert outcome.summary == {**before[0], "results": outcome.results.to_dict()}


def test_a_run_without_a_folder_writes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does one that is refused while it is prepared."""
    monkeypatch.chdir(tmp_path)
    run.run()
    with pytest.raises(FieldValueError, match="has no treatment 'nobody'"):
        run.replace(treatments=["nobody@1"]).keep("run")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("held", "named"),
    [
        ([LOG_NAME], f"other files ({LOG_NAME})"),
        ([LOG_NAME, SUMMARY_NAME], f"a run ({LOG_NAME}, {SUMMARY_NAME})"),
        (["thesis.tex", "d.csv", "a.txt", "notes", ".git"], "(a.txt, d.csv, notes, ...)"),
    ],
)
def test_folder_that_holds_anything_is_refused(
    held: list[str], named: str, run: Run, tmp_path: Path
) -> None:
    """It is refused by name and stays as it was; hidden files may be there."""
    for name in held:
        (tmp_path / name).write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match="already holds ") as refused:
        run.keep(tmp_path)
    assert named in str(refused.value)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "left", [{}, {LOG_NAME: b""}, {LOG_NAME: b"", f".{SUMMARY_NAME}.part": b'{"prism": "0.'}]
)
def test_run_that_was_killed_before_it_began_may_begin_again(
    left: dict[str, bytes], run: Run, tmp_path: Path, whole: Any
) -> None:
    """What a process leaves that was killed before ``run.json`` was there is not a run."""
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="holds no run"):
        resume(tmp_path)
    run.keep(tmp_path)
    assert tree(tmp_path) == whole


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("file", "cannot be written to: Not a directory"),
        ("file/run", "cannot be written to: File exists"),
        ("x" * 300, "cannot be written to: .*too long"),
    ],
)
def test_impossible_folder_is_refused(place: str, problem: str, run: Run, tmp_path: Path) -> None:
    """A file, a place below a file and an impossible name are refused, and nothing is changed."""
    (tmp_path / "file").write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=problem):
        run.keep(tmp_path / place)
    assert tree(tmp_path) == before


def test_of_two_that_begin_at_once_one_is_refused(
    run: Run, tmp_path: Path, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run is being written nobody else begins one in its folder, nor afterwards."""
    monkeypatch.setattr("prism.files.durable._LOOK_SECONDS", 0)
    second = RunFolder.for_new(tmp_path)

    def begin_another(_: object = None) -> None:
        with second.writing(ABOUT, SimulatedClock()):
            pytest.fail("it has begun")

    def look(_: object) -> None:
        with pytest.raises(InputError, match="is being written by another process: wait for it"):
            begin_another()

    run.keep(tmp_path, on_round=look)
    with pytest.raises(InputError, match="already holds a run"):
        begin_another()
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
    with pytest.raises(FieldValueError), RunFolder.for_new(path).writing(ABOUT, SimulatedClock()):
        raise FieldValueError("impossible")
    assert [found.name for found in tmp_path.rglob("*")] == (
        ["run", *kept_before] if kept_before else []
    )


def test_rounds_that_have_ended_are_never_deleted(run: Run, tmp_path: Path, whole: Any) -> None:
    """An error of prism's own in a later round keeps the run."""

    def fail(ended: Any) -> None:
        if ended.number == 2:
            raise FieldValueError("impossible from here")

    with pytest.raises(FieldValueError):
        run.keep(tmp_path, on_round=fail)
    assert (tmp_path / LOG_NAME).read_bytes().count(b'"event":"round.ended"') == 2
    resume(tmp_path)
    assert tree(tmp_path) == whole


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


# Resuming


class Heard(Observer):
    """Keeps what a run says, in its order."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def note(self, message: str) -> None:
        self.said.append(("note", message))

    def warn(self, message: str) -> None:
        self.said.append(("warning", message))

    def started(self, run: Any) -> None:
        self.said.append(("started", len(run.finished), run.rounds))


@pytest.mark.parametrize("last", range(1, 6))
def test_a_run_stopped_after_a_round_is_resumed_to_the_same_bytes(
    last: int, run: Run, tmp_path: Path, whole: Any
) -> None:
    """Stopped after any round and resumed, a run writes the same; an observer is told of it."""
    heard = Heard()
    with pytest.raises(StoppedError):
        run.keep(tmp_path, on_round=stop_after(last), observer=heard)
    outcome = resume(tmp_path, observer=heard)
    assert tree(tmp_path) == whole
    assert outcome is not None
    assert outcome.summary["results"] == outcome.results.to_dict()
    assert resume(tmp_path) is None
    assert heard.said == [
        ("started", 0, 5),
        ("note", f"{tmp_path}: repeating it with 0 answers, then going on"),
        ("started", 0, 5),
    ]


def test_a_run_of_another_version_goes_on_with_a_warning(stopped: Path, whole: Any) -> None:
    """What another version of prism began goes on while it does the same; both are named."""
    summary = json.loads((stopped / SUMMARY_NAME).read_bytes())
    (stopped / SUMMARY_NAME).write_text(json.dumps({**summary, "prism": "0.0.9"}))
    heard = Heard()
    resume(stopped, observer=heard)
    was = f"was begun by prism 0.0.9, and this is {prism.__version__}"
    assert heard.said[0] == ("warning", f"{was}; the run goes on as long as it does the same")
    assert tree(stopped) == whole


def test_a_run_that_another_process_has_completed_is_not_resumed(stopped: Path) -> None:
    """Neither log nor results are written again."""
    folder = RunFolder(stopped, is_new=False)
    resume(stopped)
    before = tree(stopped)
    with (
        pytest.raises(InputError, match="was just completed by another process"),
        folder.writing(ABOUT, SimulatedClock()),
    ):
        pytest.fail("it has begun")
    assert tree(stopped) == before


def test_a_resume_that_does_something_else_names_the_first_line(stopped: Path) -> None:
    """The log stays as it was, and the message has both lines."""
    before = (stopped / LOG_NAME).read_bytes().rpartition(b"\n")[0] + b"\n"
    with (
        pytest.raises(ReplayError, match=r'line 1 differs \(round 0, tick 0\)[^{]*{"event":"run'),
        RunFolder(stopped, is_new=False).writing(ABOUT, SimulatedClock()) as logger,
    ):
        logger.info("die.thrown", eyes=7)
    assert (stopped / LOG_NAME).read_bytes() == before


def test_a_change_in_an_imported_module_is_noticed(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last round that has ended is compared, though none of those before is logged again."""
    monkeypatch.setattr("prism.examples.rumour.Rumour.talk", lambda *_: None)
    with pytest.raises(ReplayError, match=r"differs \(round 3, tick 1\)"):
        resume(stopped)


# Reading run.json


@pytest.mark.parametrize("name", ["empty", "nowhere", "file"])
@pytest.mark.parametrize("command", ["resume", "replay"])
def test_what_is_no_folder_of_a_run_is_named(prism: Prism, command: str, name: str) -> None:
    """A folder that is empty or not there, and a file, are refused in one line."""
    (prism.folder / "file").touch()
    (prism.folder / "empty").mkdir()
    ended = prism(command, name)
    problem = "holds no run (no run.json): name the folder of a run"
    assert (ended.status, ended.err) == (2, f"prism: {name}: {problem}\n")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\xff", "is not UTF-8 text"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"config": null}', "is damaged: it describes no run"),
        (b'{"config": {"world": "rumour"}}', "does not describe a run: KeyError"),
        (b'{"prism": "0", "prism": "1"}', "appears twice in one object"),
    ],
)
def test_damaged_summary_is_refused(content: bytes, problem: str, stopped: Path) -> None:
    """A summary that cannot be read strictly is one clear error, and the folder stays as it is."""
    (stopped / SUMMARY_NAME).write_bytes(content)
    before = tree(stopped)
    with pytest.raises(InputError, match=rf"run.json.*: .*{problem}"):
        resume(stopped)
    assert tree(stopped) == before
