"""Reading a log's bytes: whole lines, in blocks, from plain and compressed files."""

import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import InputError
from prism.runlog._reader import CUT_OFF, DAMAGED, TOO_LONG, Block, locate_log, read_blocks

# without an end of a line, and what gzip files begin with
LINE = st.binary(max_size=30).map(lambda line: line.translate(None, b"\n\x1f"))


def lines_of(blocks: list[Block]) -> dict[int, bytes | None]:
    """Return every line by its number; None if it could not be read."""
    found: dict[int, bytes | None] = {}
    for block in blocks:
        if block.fault is not None:
            found[block.first_line] = None
            continue
        lines = block.data.removesuffix(b"\n").split(b"\n")
        assert len(lines) == block.lines
        found |= {block.first_line + place: line for place, line in enumerate(lines)}
    return found


@given(lines=st.lists(LINE), ends=st.booleans(), packed=st.booleans(), size=st.integers(1, 80))
def test_every_line_is_read_once_under_its_number(
    lines: list[bytes],
    ends: bool,
    packed: bool,
    size: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """For any block size, lines are whole, in order and numbered; too long ones are faults."""
    data = b"\n".join(lines) + (b"\n" if lines and ends else b"")
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(gzip.compress(data) if packed else data)
    blocks = list(read_blocks(path, size))
    assert all(block.data.endswith(b"\n") for block in blocks[:-1] if block.fault is None)
    wanted = data.removesuffix(b"\n").split(b"\n") if data else []
    found = lines_of(blocks)
    assert list(found) == list(range(1, len(wanted) + 1))
    for number, line in enumerate(wanted, start=1):
        assert found[number] == line if len(line) < size else found[number] in (line, None)


def test_line_longer_than_a_block_is_a_fault(tmp_path: Path) -> None:
    """A line longer than a block is a fault, and the other lines keep their numbers."""
    path = tmp_path / "log"
    path.write_bytes(b"one\n" + b"x" * 100 + b"\nthree\n")
    blocks = list(read_blocks(path, 16))
    assert [(block.first_line, block.data, block.fault) for block in blocks] == [
        (1, b"one\n", None),
        (2, b"", TOO_LONG),
        (3, b"three\n", None),
    ]


def test_concatenated_compressed_logs_are_read_as_one(tmp_path: Path) -> None:
    """A gzip file of several members has the lines of all of them, whatever its name."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"o\n") + gzip.compress(b"three"))
    assert lines_of(list(read_blocks(path))) == {1: b"one", 2: b"two", 3: b"three"}


def test_a_truncated_compressed_log_is_read_up_to_its_end(tmp_path: Path) -> None:
    """A truncated gzip file is read up to its end, which is a fault."""
    path = tmp_path / "log.gz"
    packer = zlib.compressobj(wbits=31)
    path.write_bytes(packer.compress(b"one\ntwo\nthr") + packer.flush(zlib.Z_SYNC_FLUSH))
    *_, rest, fault = read_blocks(path)
    assert (rest.data, fault.first_line, fault.fault) == (b"thr", 4, CUT_OFF)


def test_damaged_compressed_data_is_a_fault(tmp_path: Path) -> None:
    """Damaged compressed data is a fault, and reading ends there."""
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(100_000)), mtime=0)
    path = tmp_path / "log.gz"
    path.write_bytes(whole[: len(whole) // 2] + b"\xff" * 64 + whole[len(whole) // 2 :])
    blocks = list(read_blocks(path, 1 << 16))
    assert blocks[-1].fault == DAMAGED
    assert blocks[0].data.startswith(b"line 0\nline 1\n")


def test_log_of_a_folder_is_found(tmp_path: Path) -> None:
    """In a folder the plain log is found before the compressed one; a file is itself the log."""
    (tmp_path / "events.jsonl.gz").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl.gz"
    (tmp_path / "events.jsonl").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl"
    assert locate_log(str(tmp_path / "events.jsonl.gz")) == tmp_path / "events.jsonl.gz"


def test_a_missing_log_is_refused(tmp_path: Path) -> None:
    """A missing file, or a folder without a log, is refused by name."""
    with pytest.raises(InputError, match=r"nowhere: there is no such file"):
        locate_log(tmp_path / "nowhere")
    with pytest.raises(
        InputError, match=r"holds no events\.jsonl, plain or \.gz: give the folder of a run"
    ):
        locate_log(tmp_path)


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    """An unreadable file is refused by name."""
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        list(read_blocks(tmp_path))
