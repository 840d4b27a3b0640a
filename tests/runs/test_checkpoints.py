"""Checkpoints of a run."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.runs._checkpoints import FOLDER_NAME, Checkpoint, Checkpoints
from tests.kit.texts import ANY

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(ANY),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(ANY), children, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text(ANY), plain, max_size=4)
kept = st.builds(
    Checkpoint,
    st.integers(1, 10**6),
    objects,
    objects,
    st.integers(0, 2**53),
    st.integers(0, 2**32 - 1),
)

LINE = orjson.dumps({"event": "round.ended"}) + b"\n"
CONFIG = {"seed": 1}


class Kept:
    """A run folder with a log that grows by one line a round, and checkpoints of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "events.jsonl"
        self.log.touch()
        self.checkpoints = self.again()

    def again(self) -> Checkpoints:
        """Return the checkpoints as another process finds them."""
        return Checkpoints(self.folder, self.log)

    def end_round(self, number: int) -> None:
        """Write a line to the log, and a checkpoint."""
        with self.log.open("ab") as log:
            log.write(LINE)
        self.checkpoints.write(number, CONFIG, {"round": number}, self.log.stat().st_size)

    def path(self, number: int) -> Path:
        """Return the file of a round's checkpoint."""
        return self.folder / FOLDER_NAME / f"round_{number:08}"

    def names(self) -> list[str]:
        """Return the names of all files of checkpoints."""
        return sorted(path.name for path in (self.folder / FOLDER_NAME).iterdir())


@pytest.fixture
def run(tmp_path: Path) -> Kept:
    """Return a run of which five rounds have ended."""
    run = Kept(tmp_path)
    for number in range(1, 6):
        run.end_round(number)
    return run


def flip(path: Path, bit: int) -> None:
    """Turn one bit of a file."""
    content = bytearray(path.read_bytes())
    content[bit // 8 % len(content)] ^= 1 << bit % 8
    path.write_bytes(content)


def found(checkpoints: Checkpoints) -> tuple[int | None, list[str]]:
    """Return the round that would be gone on after, and the faults."""
    checkpoint, faults = checkpoints.newest_sound()
    return (None if checkpoint is None else checkpoint.round), faults


@given(kept)
def test_a_checkpoint_is_read_as_it_was_written(checkpoint: Checkpoint) -> None:
    """Whatever plain data it holds, a checkpoint comes back equal."""
    assert Checkpoint.from_bytes(checkpoint.to_bytes()) == checkpoint


@given(kept, st.data())
def test_no_damage_goes_unnoticed(checkpoint: Checkpoint, data: Any) -> None:
    """A checkpoint with one bit turned, cut off anywhere, or with something behind it, is none."""
    whole = checkpoint.to_bytes()
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert [Checkpoint.from_bytes(content) for content in (bytes(damaged), cut, whole + b"\n")] == [
        None
    ] * 3


def test_the_last_two_are_kept(run: Kept) -> None:
    """However many rounds end, two checkpoints are kept, and a run goes on from the newer."""
    assert run.names() == ["round_00000004", "round_00000005"]
    checkpoint, faults = run.again().newest_sound()
    assert checkpoint is not None
    assert (checkpoint.round, checkpoint.config, checkpoint.snapshot) == (5, CONFIG, {"round": 5})
    assert (checkpoint.log_bytes, faults) == (5 * len(LINE), [])


@pytest.mark.parametrize("bit", [0, 300, 520, 700, -1])
def test_a_damaged_one_is_passed_over(bit: int, run: Kept) -> None:
    """With a bit turned in the newest, the one before is taken, and the damaged one is named."""
    flip(run.path(5), bit)
    assert found(run.again()) == (4, [f"{run.path(5)}: is damaged, so it is ignored"])


def test_nothing_is_left_when_both_are_damaged(run: Kept) -> None:
    """If neither checkpoint is sound there is none, and both are named."""
    flip(run.path(4), 99)
    run.path(5).write_bytes(b"")
    number, faults = found(run.again())
    assert number is None
    assert [str(run.path(place)) in fault for place, fault in zip((5, 4), faults, strict=True)] == [
        True,
        True,
    ]


def test_an_unfinished_one_is_not_looked_at(run: Kept) -> None:
    """What a process left that was killed while it wrote a checkpoint is no checkpoint."""
    run.path(6).with_name(".round_00000006.part").write_bytes(run.path(5).read_bytes()[:50])
    assert found(run.again()) == (5, [])


@pytest.mark.parametrize(("length", "expected"), [(5, 5), (4.9, 4), (4, 4), (3.5, None), (0, None)])
def test_a_checkpoint_fits_its_log(length: float, expected: int | None, run: Kept) -> None:
    """A log that is shorter than a checkpoint says makes it unfit, one that is longer does not."""
    whole = run.log.read_bytes()
    run.log.write_bytes(whole[: int(length * len(LINE))])
    assert found(run.again())[0] == expected
    run.log.write_bytes(whole + b'{"event": "torn')
    assert found(run.again())[0] == 5


@pytest.mark.parametrize(("line", "expected"), [(1, None), (4, None), (5, 4)])
def test_an_altered_log_is_noticed(line: int, expected: int | None, run: Kept) -> None:
    """One bit turned in the log before a checkpoint makes it unfit."""
    flip(run.log, 8 * (line - 1) * len(LINE) + 20)
    number, faults = found(run.again())
    assert number == expected
    assert (
        faults[0] == f"{run.path(5)}: does not fit events.jsonl, which is damaged or belongs to "
        "another run, so it is ignored"
    )


def test_later_ones_of_another_past_go(run: Kept) -> None:
    """A run that begins again keeps its new checkpoints and removes those passed over."""
    for number in (4, 5):
        flip(run.path(number), 99)
    run.checkpoints = run.again()
    assert found(run.checkpoints)[0] is None
    run.log.write_bytes(b"")
    for number, names in ((1, ["round_00000001"]), (2, ["round_00000001", "round_00000002"])):
        run.end_round(number)
        assert run.names() == names
    assert found(run.again()) == (2, [])


def test_going_on_keeps_the_one_gone_on_from(run: Kept) -> None:
    """The first checkpoint after a resume stands beside the one that the run was resumed from."""
    flip(run.path(5), 99)
    run.checkpoints = run.again()
    assert found(run.checkpoints)[0] == 4
    run.log.write_bytes(4 * LINE)
    run.end_round(5)
    assert run.names() == ["round_00000004", "round_00000005"]
    assert found(run.again()) == (5, [])
    run.end_round(6)
    assert run.names() == ["round_00000005", "round_00000006"]


def test_a_log_cut_by_others_does_not_hang(run: Kept) -> None:
    """A checkpoint of a log that somebody has cut meanwhile is written, and found to be unfit."""
    run.checkpoints.write(6, CONFIG, {}, 10**9)
    assert found(run.again())[0] == 5


def test_a_full_disk_leaves_those_before(run: Kept) -> None:
    """A checkpoint for which there is no space raises, and the ones before it stay."""
    run.path(6).with_name(".round_00000006.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        run.end_round(6)
    assert run.names() == ["round_00000004", "round_00000005"]
    assert found(run.again()) == (5, [])
