"""Finding a log and reading its lines, from plain and compressed files."""

import gzip
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import InputError
from prism.runlog._reader import locate_log, read_lines

# without an end of a line, and what gzip files begin with
LINE = st.binary(max_size=30).map(lambda line: line.translate(None, b"\n\x1f"))


@given(lines=st.lists(LINE), ends=st.booleans(), parts=st.integers(0, 3))
def test_every_line_is_read_once_under_its_number(
    lines: list[bytes], ends: bool, parts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Plain or compressed, in one part or several, whether or not the last line ends."""
    data = b"\n".join(lines) + (b"\n" if lines and ends else b"")
    cuts = [len(data) * part // max(parts, 1) for part in range(max(parts, 1) + 1)]
    packed = b"".join(gzip.compress(data[i:j]) for i, j in pairwise(cuts))
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(packed if parts else data)
    found = list(read_lines(path, pytest.fail))
    assert b"".join(line for _, line in found) == data
    assert [number for number, _ in found] == [*range(1, len(found) + 1)]
    assert all(line.endswith(b"\n") for _, line in found[:-1])


def test_a_truncated_or_damaged_compressed_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """The fault names the file, and what comes before it is read."""
    path, faults = tmp_path / "log.gz", list[str]()
    packer = zlib.compressobj(wbits=31)
    path.write_bytes(packer.compress(b"one\ntwo\nthr") + packer.flush(zlib.Z_SYNC_FLUSH))
    assert [line for _, line in read_lines(path, faults.append)][:2] == [b"one\n", b"two\n"]
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(100_000)), mtime=0)
    path.write_bytes(whole[: len(whole) // 2] + b"\xff" * 64 + whole[len(whole) // 2 :])
    assert next(iter(read_lines(path, faults.append))) == (1, b"line 0\n")
    assert len(list(read_lines(path, faults.append))) > 10
    assert len(faults) == 2
    assert all(f"{path}: the compressed data is damaged or cut off" in each for each in faults)


def test_log_of_a_folder_is_found(tmp_path: Path) -> None:
    """In a folder the plain log is found before the compressed one; a file is itself the log."""
    (tmp_path / "events.jsonl.gz").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl.gz"
    (tmp_path / "events.jsonl").touch()
    assert locate_log(tmp_path) == tmp_path / "events.jsonl"
    assert locate_log(str(tmp_path / "events.jsonl.gz")) == tmp_path / "events.jsonl.gz"


def test_a_missing_or_unreadable_log_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder without a log, and what is no file are refused by name."""
    with pytest.raises(InputError, match=r"nowhere: there is no such file"):
        locate_log(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds no events\.jsonl, plain or \.gz: give the folder"):
        locate_log(tmp_path)
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        list(read_lines(tmp_path, pytest.fail))
