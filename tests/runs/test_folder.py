"""The folder that a run leaves behind, and from which it goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import prism
from prism.agents import synthetic_population
from prism.errors import FieldValueError, InputError, SimulationError
from prism.runlog import SimulatedClock
from prism.runs._checkpoints import FOLDER_NAME
from prism.runs._folder import LOG_NAME, SUMMARY_NAME, RunFolder
from prism.social import RoundSummary, Simulation

CONFIG = {"agents": "12", "seed": 1}
ROUNDS = 5


class StoppedError(Exception):
    """Stands for whatever stops a process."""


def tree(path: Path) -> dict[str, bytes | None]:
    """Return everything below a folder, files with their bytes, by its place in the folder."""
    return {
        str(found.relative_to(path)): found.read_bytes() if found.is_file() else None
        for found in path.rglob("*")
    }


def go(
    folder: RunFolder, stop: Callable[[int], None] = lambda _: None, seconds_between: float = 0
) -> int:
    """Run 12 agents for 5 rounds in a folder, from where it stands.

    Args:
        folder: Where.
        stop: Called with every round that has ended and is kept.
        seconds_between: Seconds between two checkpoints.

    Returns:
        The rounds that were not run again.
    """
    population, clock = synthetic_population(12, seed=1), SimulatedClock()
    with folder.writing(CONFIG, clock) as logger:
        simulation = Simulation(
            population.agents,
            population.posts,
            rounds=ROUNDS,
            seed=1,
            logger=logger,
            clock=clock,
            ticks_per_round=6,
        )
        folder.restore(simulation)
        done = len(simulation.finished)

        def keep(summary: RoundSummary) -> None:
            folder.keep(simulation, seconds_between=seconds_between)
            stop(summary.number)

        folder.complete({"results": simulation.run(keep).to_dict()})
    return done


def resume(path: Path) -> tuple[int, list[str]]:
    """Go on with a run to its end; give the rounds that were not run again, and what was found damaged."""
    folder, config = RunFolder.to_resume(path)
    assert config == CONFIG
    done = go(folder)
    return done, [fault.replace(f"{path}/", "") for fault in folder.faults]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes | None]:
    """Return what a run that nothing disturbed leaves behind."""
    path = tmp_path_factory.mktemp("whole")
    go(RunFolder.for_new(path))
    return tree(path)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the folder of a run that was killed in its fourth round, with a torn line at the log's end."""

    def stop(number: int) -> None:
        if number == 3:
            raise StoppedError

    path = tmp_path / "stopped"
    with pytest.raises(StoppedError):
        go(RunFolder.for_new(path), stop)
    with (path / LOG_NAME).open("ab") as log:
        log.write(b'{"event":"round.started","timestamp":"2026-01-0')
    return path


def checkpoint(path: Path, number: int) -> Path:
    """Return the file of a checkpoint."""
    return path / FOLDER_NAME / f"round_{number:08}"


def flip(path: Path, place: int) -> None:
    """Turn a bit of one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


# Beginning


@pytest.mark.parametrize("place", [".", "new", "a/b/c"])
def test_run_is_written_into_its_folder(place: str, tmp_path: Path, whole: Any) -> None:
    """A folder that is empty or not there yet, however deep, receives the log and the summary and nothing else."""
    folder = RunFolder.for_new(tmp_path / place)
    assert folder.is_new
    assert go(folder) == 0
    assert tree(tmp_path / place) == whole
    assert sorted(whole) == [LOG_NAME, SUMMARY_NAME]


def test_summary_tells_what_the_run_is_from_the_beginning(tmp_path: Path) -> None:
    """``run.json`` holds version, schema and configuration while the run goes on, and its results in the end."""
    folder = RunFolder.for_new(tmp_path)
    assert not folder.is_begun
    with folder.writing({"text": "é"}, SimulatedClock()):
        before = json.loads((tmp_path / SUMMARY_NAME).read_bytes())
        assert folder.is_begun
        folder.complete({"results": {"number": 1}, "spent": 2})
    assert before == {"prism": prism.__version__, "schema": 1, "config": {"text": "é"}}
    assert json.loads((tmp_path / SUMMARY_NAME).read_bytes()) == {
        **before,
        "results": {"number": 1},
        "spent": 2,
    }


def test_nothing_is_made_before_the_log_is_opened(tmp_path: Path) -> None:
    """Looking at a folder makes nothing."""
    RunFolder.for_new(tmp_path / "a" / "b")
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "held", [[LOG_NAME], [SUMMARY_NAME], [LOG_NAME, SUMMARY_NAME], [FOLDER_NAME]]
)
def test_folder_with_a_run_is_refused(held: list[str], tmp_path: Path) -> None:
    """A folder that holds any part of a run is refused by name and stays as it was, byte for byte."""
    for name in held:
        (tmp_path / name).write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=rf"holds a run \({', '.join(held)}\)") as refused:
        RunFolder.for_new(tmp_path)
    assert refused.value.path == str(tmp_path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "left", [{}, {LOG_NAME: b""}, {LOG_NAME: b"", f".{SUMMARY_NAME}.part": b'{"prism": "0.'}]
)
def test_run_that_was_killed_before_it_began_may_begin_again(
    left: dict[str, bytes], tmp_path: Path, whole: Any
) -> None:
    """What a process leaves that is killed before ``run.json`` is there is no run, and in nobody's way."""
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="holds no run to resume"):
        RunFolder.to_resume(tmp_path)
    go(RunFolder.for_new(tmp_path))
    assert tree(tmp_path) == whole


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("file", "is a file, not a folder"),
        ("file/run", "cannot be made: .*file is a file"),
        ("file/a/b", "cannot be made: .*file is a file"),
        ("x" * 300, "cannot be written to: .*too long"),
    ],
)
def test_impossible_folder_is_refused(place: str, problem: str, tmp_path: Path) -> None:
    """A file, a place below a file, and a name that no folder can have are refused, and nothing is changed."""
    (tmp_path / "file").write_bytes(b"precious")
    before = tree(tmp_path)
    with pytest.raises(InputError, match=problem):
        RunFolder.for_new(tmp_path / place)
    assert tree(tmp_path) == before


def test_folder_that_cannot_be_made_is_refused() -> None:
    """A place where the system lets nobody make a folder is refused when the log is opened, if not before."""
    with pytest.raises(InputError, match="/proc/nope/run: cannot be written to"):
        go(RunFolder.for_new(Path("/proc/nope/run")))


def test_run_that_came_in_between_is_not_overwritten(tmp_path: Path, whole: Any) -> None:
    """A run that another process has carried out since the folder was looked at stays as it is."""
    first, second = RunFolder.for_new(tmp_path), RunFolder.for_new(tmp_path)
    go(first)
    with pytest.raises(InputError, match="already holds a run"):
        go(second)
    assert tree(tmp_path) == whole


def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path, whole: Any) -> None:
    """While a run is being written nobody else begins one in its folder, and it is not disturbed."""
    second = RunFolder.for_new(tmp_path)

    def begin_another(_: int) -> None:
        with pytest.raises(
            InputError, match=f"{LOG_NAME}: is being written by another process: wait until it ends"
        ):
            go(second)

    go(RunFolder.for_new(tmp_path), begin_another)
    assert tree(tmp_path) == whole


def test_nothing_is_kept_before_the_folder_is_opened(tmp_path: Path) -> None:
    """Keeping a round of a run whose folder was not opened is an error that says so."""
    population = synthetic_population(2)
    with pytest.raises(SimulationError, match=r"before the folder is opened by writing\(\)"):
        RunFolder.for_new(tmp_path).keep(Simulation(population.agents))


# Failing


@pytest.mark.parametrize("kept_before", [[], ["notes.txt"]])
def test_run_that_fails_in_its_first_round_leaves_nothing(
    kept_before: list[str], tmp_path: Path
) -> None:
    """An error of prism's own before a round has ended takes the run away again, and nothing else."""
    path = tmp_path / "run"
    for name in kept_before:
        path.mkdir()
        (path / name).touch()
    with pytest.raises(FieldValueError), RunFolder.for_new(path).writing(CONFIG, SimulatedClock()):
        raise FieldValueError("impossible")
    assert [found.name for found in tmp_path.rglob("*")] == (
        ["run", *kept_before] if kept_before else []
    )


@pytest.mark.parametrize("seconds_between", [0, 3600])
def test_rounds_that_have_ended_are_never_deleted(
    seconds_between: float, tmp_path: Path, whole: Any
) -> None:
    """An error of prism's own in a later round leaves the run as it is, with or without a checkpoint."""

    def fail(number: int) -> None:
        if number == 2:
            raise FieldValueError("impossible from here")

    with pytest.raises(FieldValueError):
        go(RunFolder.for_new(tmp_path), fail, seconds_between)
    ended = [
        event
        for event in map(orjson.loads, (tmp_path / LOG_NAME).read_bytes().splitlines())
        if event["event"] == "round.ended"
    ]
    assert [event["round"] for event in ended] == [1, 2]
    assert resume(tmp_path) == (0 if seconds_between else 2, [])
    assert tree(tmp_path) == whole


def test_resumed_run_is_never_deleted(stopped: Path) -> None:
    """An error of prism's own right after a resume leaves the folder with its checkpoints."""
    folder, _ = RunFolder.to_resume(stopped)
    with pytest.raises(FieldValueError), folder.writing(CONFIG, SimulatedClock()):
        raise FieldValueError("impossible")
    assert resume(stopped) == (3, [])


def test_bug_leaves_the_folder(tmp_path: Path, whole: Any) -> None:
    """An error that is not prism's own leaves even a first round, which can be gone on with."""
    with pytest.raises(StoppedError), RunFolder.for_new(tmp_path).writing(CONFIG, SimulatedClock()):
        raise StoppedError
    assert resume(tmp_path) == (0, [])
    assert tree(tmp_path) == whole


# Going on


@pytest.mark.parametrize("last", range(1, ROUNDS + 1))
def test_stopped_run_goes_on_to_the_same_bytes(last: int, tmp_path: Path, whole: Any) -> None:
    """Stopped after any round, and resumed, a run leaves what it would have left undisturbed."""

    def stop(number: int) -> None:
        if number == last:
            raise StoppedError

    with pytest.raises(StoppedError):
        go(RunFolder.for_new(tmp_path), stop)
    assert resume(tmp_path) == (last, [])
    assert tree(tmp_path) == whole


def test_checkpoints_are_as_far_apart_as_wanted(tmp_path: Path) -> None:
    """With long between them a short run has none, and what it has written can be read after each round."""
    seen = []

    def look(_: int) -> None:
        seen.append(((tmp_path / LOG_NAME).stat().st_size, (tmp_path / FOLDER_NAME).exists()))

    go(RunFolder.for_new(tmp_path), look, seconds_between=3600)
    sizes = [size for size, _ in seen]
    assert sizes == sorted(set(sizes))
    assert not any(has for _, has in seen)


def cut_tail(path: Path) -> None:
    with (path / LOG_NAME).open("r+b") as log:
        log.truncate(log.seek(0, 2) - 60)


def half_a_checkpoint(path: Path) -> None:
    whole = checkpoint(path, 3).read_bytes()
    (path / FOLDER_NAME / ".round_00000004.part").write_bytes(whole[: len(whole) // 2])


def half_a_summary(path: Path) -> None:
    (path / f".{SUMMARY_NAME}.part").write_bytes(b'{"prism": "0.1.0", "schema": 1, "conf')


def flip_log(path: Path) -> None:
    flip(path / LOG_NAME, 1000)


def flip_newest(path: Path) -> None:
    flip(checkpoint(path, 3), -20)


def flip_older(path: Path) -> None:
    flip(checkpoint(path, 2), 70)


def flip_both(path: Path) -> None:
    flip_newest(path)
    flip_older(path)


def cut_newest(path: Path) -> None:
    whole = checkpoint(path, 3).read_bytes()
    checkpoint(path, 3).write_bytes(whole[: len(whole) // 2])


def empty_newest(path: Path) -> None:
    checkpoint(path, 3).write_bytes(b"")


def no_log(path: Path) -> None:
    (path / LOG_NAME).unlink()


def empty_log(path: Path) -> None:
    (path / LOG_NAME).write_bytes(b"")


def no_checkpoints(path: Path) -> None:
    shutil.rmtree(path / FOLDER_NAME)


def no_files_of_checkpoints(path: Path) -> None:
    no_checkpoints(path)
    (path / FOLDER_NAME).mkdir()


NEWEST, OLDER = f"{FOLDER_NAME}/round_00000003", f"{FOLDER_NAME}/round_00000002"
DAMAGED, UNFIT = (
    "is damaged, so it is passed over",
    f"does not fit {LOG_NAME}, which is damaged or another, so it is passed over",
)


@pytest.mark.parametrize(
    ("damage", "done", "faults"),
    [
        (half_a_checkpoint, 3, []),
        (half_a_summary, 3, []),
        (flip_older, 3, []),
        (flip_newest, 2, [f"{NEWEST}: {DAMAGED}"]),
        (cut_newest, 2, [f"{NEWEST}: {DAMAGED}"]),
        (empty_newest, 2, [f"{NEWEST}: {DAMAGED}"]),
        (cut_tail, 2, [f"{NEWEST}: {UNFIT}"]),
        (flip_both, 0, [f"{NEWEST}: {DAMAGED}", f"{OLDER}: {DAMAGED}"]),
        (flip_log, 0, [f"{NEWEST}: {UNFIT}", f"{OLDER}: {UNFIT}"]),
        (empty_log, 0, [f"{NEWEST}: {UNFIT}", f"{OLDER}: {UNFIT}"]),
        (no_log, 0, [f"{NEWEST}: {UNFIT}", f"{OLDER}: {UNFIT}"]),
        (no_checkpoints, 0, []),
        (no_files_of_checkpoints, 0, []),
    ],
)
def test_damage_costs_time_and_nothing_else(
    damage: Callable[[Path], None], done: int, faults: list[str], stopped: Path, whole: Any
) -> None:
    """However a folder is damaged, the run goes on from what is sound, or from the beginning, to the same bytes."""
    damage(stopped)
    assert resume(stopped) == (done, faults)
    assert tree(stopped) == whole


@pytest.mark.parametrize("damage", [flip_newest, flip_both, flip_log, half_a_checkpoint])
def test_damage_does_no_harm_to_a_second_resume(
    damage: Callable[[Path], None], stopped: Path, whole: Any
) -> None:
    """Stopped again after one more round, a run goes on from there, whatever was damaged before."""
    damage(stopped)
    folder, _ = RunFolder.to_resume(stopped)
    ended: list[int] = []

    def stop(number: int) -> None:
        ended.append(number)
        raise StoppedError

    with pytest.raises(StoppedError):
        go(folder, stop)
    assert resume(stopped) == (ended[0], [])
    assert tree(stopped) == whole


def test_answers_that_cannot_be_had_again_are_kept(stopped: Path) -> None:
    """Where no checkpoint fits, the log of a run that would not write the same again is kept, and that is told."""
    flip_log(stopped)
    paid = (stopped / LOG_NAME).read_bytes()
    folder, config = RunFolder.to_resume(stopped)
    with folder.writing(config or {}, SimulatedClock(), is_repeatable=False):
        assert (stopped / LOG_NAME).read_bytes() == b""
    assert (stopped / f"damaged_{LOG_NAME}").read_bytes() == paid
    assert (
        folder.faults[-1]
        == f"{stopped / LOG_NAME}: fits no checkpoint, so it is kept as damaged_{LOG_NAME}"
    )


def test_complete_run_whose_checkpoints_are_left_is_complete(stopped: Path, whole: Any) -> None:
    """A process that was killed while it removed the checkpoints leaves a complete run, which is only tidied up."""
    left = {
        name: content for name, content in tree(stopped).items() if name.startswith(FOLDER_NAME)
    }
    resume(stopped)
    (stopped / FOLDER_NAME).mkdir()
    for name, content in left.items():
        if content is not None:
            (stopped / name).write_bytes(content)
    folder, config = RunFolder.to_resume(stopped)
    assert config is None
    for _ in range(2):
        folder.tidy()
        assert tree(stopped) == whole


def test_run_that_another_process_is_going_on_with_is_refused(stopped: Path, whole: Any) -> None:
    """Of two that resume a run one is refused, at any time, and the run is not disturbed."""
    other, _ = RunFolder.to_resume(stopped)

    def resume_too(_: int) -> None:
        with pytest.raises(InputError, match="is being written by another process"):
            go(other)

    folder, _ = RunFolder.to_resume(stopped)
    go(folder, resume_too)
    assert tree(stopped) == whole
    with pytest.raises(InputError, match="was brought to its end by another process just now"):
        go(other)
    assert tree(stopped) == whole


def test_other_configuration_is_refused(stopped: Path) -> None:
    """A run whose configuration was changed since its checkpoint is refused, and its folder stays as it is."""
    before = tree(stopped)
    folder, _ = RunFolder.to_resume(stopped)
    with (
        pytest.raises(
            InputError,
            match=f"{SUMMARY_NAME}, field 'config': is not what it was when the run began",
        ),
        folder.writing({**CONFIG, "seed": 2}, SimulatedClock()),
    ):
        pass
    assert tree(stopped) == before


# Reading run.json


def test_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    """A folder that is empty, not there, or a file is refused in words that fit."""
    (tmp_path / "file").touch()
    for path, problem in (
        (tmp_path, r"holds no run to resume \(no run.json\): begin one with --out"),
        (tmp_path / "nowhere", "holds no run to resume"),
        (tmp_path / "file", "cannot be read: Not a directory"),
    ):
        with pytest.raises(InputError, match=problem) as refused:
            RunFolder.to_resume(path)
        assert refused.value.path == str(path)


def test_folder_that_lost_its_summary_is_told_of(stopped: Path) -> None:
    """Without its summary a run can neither be resumed nor begun in its folder, and neither advice leads back."""
    (stopped / SUMMARY_NAME).unlink()
    with pytest.raises(InputError, match=r"it is lost, .*: begin it anew, with another --out"):
        RunFolder.to_resume(stopped)
    with pytest.raises(InputError, match=r"choose another --out$"):
        RunFolder.for_new(stopped)


def test_run_of_another_version_is_refused(stopped: Path) -> None:
    """A run that another version of prism began is refused by the versions' names, unless it is complete."""
    summary = json.loads((stopped / SUMMARY_NAME).read_bytes())
    (stopped / SUMMARY_NAME).write_text(json.dumps({**summary, "prism": "0.0.9"}))
    with pytest.raises(
        InputError,
        match=rf"begun by prism 0.0.9, and this is {prism.__version__}.*with prism 0.0.9",
    ):
        RunFolder.to_resume(stopped)
    (stopped / SUMMARY_NAME).write_text(json.dumps({**summary, "prism": "0.0.9", "results": {}}))
    assert RunFolder.to_resume(stopped)[1] is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"prism": "\\ud800"}', b"NaN"]
)
def test_damaged_summary_is_refused(content: bytes, stopped: Path) -> None:
    """A summary that is no JSON is one clear error, and the folder stays as it is."""
    (stopped / SUMMARY_NAME).write_bytes(content)
    before = tree(stopped)
    with pytest.raises(InputError, match=r"run.json: is damaged: it is no JSON"):
        RunFolder.to_resume(stopped)
    assert tree(stopped) == before


@pytest.mark.parametrize("field", ["prism", "schema", "config", "results"])
@pytest.mark.parametrize("value", [None, True, 1.5, [], "gone"])
def test_summary_of_another_shape_is_refused(field: str, value: Any, stopped: Path) -> None:
    """A summary without a key it needs, or with something else there, is one error that names it."""
    summary = {**json.loads((stopped / SUMMARY_NAME).read_bytes()), field: value}
    if value == "gone":
        del summary[field]
    if (field, value) == ("results", "gone"):
        summary = [1]
        field = "prism"
    (stopped / SUMMARY_NAME).write_text(json.dumps(summary))
    with pytest.raises(InputError, match="is missing, or not what prism writes") as refused:
        RunFolder.to_resume(stopped)
    assert refused.value.field == field
