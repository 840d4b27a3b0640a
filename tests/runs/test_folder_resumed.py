"""The folder from which a stopped run goes on, sound or damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.runlog import SimulatedClock
from prism.runs import RunFolder
from tests.kit.dice import CONFIG, ROUNDS, StoppedError, resume_in, stop_after, throw_in, tree

FOLDER_NAME, LOG_NAME, SUMMARY_NAME = "checkpoints", "events.jsonl", "run.json"


def checkpoint(path: Path, number: int) -> Path:
    """Return the file of a checkpoint."""
    return path / FOLDER_NAME / f"round_{number:08}"


def flip(path: Path, place: int) -> None:
    """Turn a bit of one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


# Going on


@pytest.mark.parametrize("last", range(1, ROUNDS + 1))
def test_stopped_run_goes_on_to_the_same_bytes(last: int, tmp_path: Path, whole: Any) -> None:
    """Stopped after any round, and resumed, a run leaves what it would have left undisturbed."""
    with pytest.raises(StoppedError):
        throw_in(RunFolder.for_new(tmp_path), stop_after(last))
    assert resume_in(tmp_path) == (last, [])
    assert tree(tmp_path) == whole


def test_checkpoints_are_as_far_apart_as_wanted(tmp_path: Path) -> None:
    """With long between them a short run has no checkpoints; each round can be read at once."""
    seen = []

    def look(_: int) -> None:
        seen.append(((tmp_path / LOG_NAME).stat().st_size, (tmp_path / FOLDER_NAME).exists()))

    throw_in(RunFolder.for_new(tmp_path), look, seconds_between=3600)
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
    "is damaged, so it is ignored",
    f"does not fit {LOG_NAME}, which is damaged or belongs to another run, so it is ignored",
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
@pytest.mark.sampled(6)
def test_damage_costs_time_and_nothing_else(
    damage: Callable[[Path], None], done: int, faults: list[str], stopped: Path, whole: Any
) -> None:
    """However a folder is damaged, the run goes on from what is sound, to the same bytes."""
    damage(stopped)
    assert resume_in(stopped) == (done, faults)
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
        throw_in(folder, stop)
    assert resume_in(stopped) == (ended[0], [])
    assert tree(stopped) == whole


def test_answers_that_cannot_be_had_again_are_kept(stopped: Path) -> None:
    """Where no checkpoint fits, the log of a run that a model was paid for is kept aside."""
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
    """A complete run whose checkpoints were not removed yet is complete, and is tidied up."""
    left = {
        name: content for name, content in tree(stopped).items() if name.startswith(FOLDER_NAME)
    }
    resume_in(stopped)
    (stopped / FOLDER_NAME).mkdir()
    for name, content in left.items():
        if content is not None:
            (stopped / name).write_bytes(content)
    folder, config = RunFolder.to_resume(stopped)
    assert config is None
    for _ in range(2):
        folder.tidy()
        assert tree(stopped) == whole


def test_run_that_another_process_is_going_on_with_is_refused(
    stopped: Path, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that resume a run one is refused, at any time, and the run is not disturbed."""
    monkeypatch.setattr("prism.files._durable._LOOK_SECONDS", 0)
    other, _ = RunFolder.to_resume(stopped)

    def resume_too(_: int) -> None:
        with pytest.raises(InputError, match="is being written by another process"):
            throw_in(other)

    folder, _ = RunFolder.to_resume(stopped)
    throw_in(folder, resume_too)
    assert tree(stopped) == whole
    with pytest.raises(InputError, match="was just completed by another process"):
        throw_in(other)
    assert tree(stopped) == whole


def test_other_configuration_is_refused(stopped: Path) -> None:
    """A run whose configuration has changed since its checkpoint is refused."""
    before = tree(stopped)
    folder, _ = RunFolder.to_resume(stopped)
    with (
        pytest.raises(
            InputError,
            match=f"{SUMMARY_NAME}, field 'config': has changed since the run began",
        ),
        folder.writing({**CONFIG, "seed": 2}, SimulatedClock()),
    ):
        pass
    assert tree(stopped) == before
