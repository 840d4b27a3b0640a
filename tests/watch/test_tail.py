"""A log that grows, is cut back, replaced or damaged while it is followed."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prism.errors import InputError
from prism.watch import _tail
from prism.watch._tail import Changed, Tail

Follow = Callable[[Path], Tail]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\ntwo\n")
    return path


@pytest.fixture
def follow() -> Iterator[Callable[[Path], Tail]]:
    """Return a function that follows a log, and closes it in the end."""
    with ExitStack() as stack:

        def followed(path: Path) -> Tail:
            tail = Tail(path)
            stack.callback(tail.close)
            return tail

        yield followed


def read(tail: Tail) -> bytes:
    return b"".join(tail.blocks())


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_only_what_was_added_is_read(follow: Follow, log: Path) -> None:
    """Only what was added is read."""
    tail = follow(log.parent)
    assert read(tail) == b"one\ntwo\n"
    assert read(tail) == b""
    append(log, b"three\n")
    assert [*tail.blocks()] == [b"three\n"]


def test_what_comes_while_it_is_read_waits_for_the_next_look(follow: Follow, log: Path) -> None:
    """A log that grows while it is read is not read again for each few lines of it."""
    tail = follow(log)
    found = []
    for block in tail.blocks():
        found.append(block)
        append(log, b"more\n")
    assert found == [b"one\ntwo\n"]
    assert read(tail) == b"more\n"


def test_a_line_without_an_end_is_read_once_it_has_one(follow: Follow, log: Path) -> None:
    """A line without an end is read once it has one."""
    tail = follow(log)
    append(log, b"thr")
    assert read(tail) == b"one\ntwo\n"
    assert tail.size - tail.position == 3
    append(log, b"ee\n")
    assert read(tail) == b"three\n"
    assert tail.size == tail.position


def test_a_line_that_is_too_long_is_an_empty_block(
    follow: Follow, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is too long is an empty block."""
    monkeypatch.setattr(_tail, "BLOCK_BYTES", 8)
    log.write_bytes(b"one\ntwo\n" + b"x" * 30 + b"\nfour\nfive\n")
    assert [*follow(log).blocks()] == [b"one\ntwo\n", b"", b"four\n", b"five\n"]


@pytest.mark.parametrize("data", [b"one\n", b"", b"one\ntwo, another\nthree\n", b"1\n2\n3\n4\n5\n"])
def test_a_log_that_was_cut_back_is_noticed_however_much_it_has_grown(
    follow: Follow, log: Path, data: bytes
) -> None:
    """A log that was cut back is noticed however much it has grown."""
    tail = follow(log)
    read(tail)
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(data)
    with pytest.raises(Changed):
        read(tail)


def test_a_log_that_was_replaced_is_noticed(follow: Follow, log: Path) -> None:
    """A log that was replaced is noticed."""
    tail = follow(log)
    read(tail)
    other = log.with_name("other")
    other.write_bytes(log.read_bytes() + b"three\n")
    other.replace(log)
    with pytest.raises(Changed, match="replaced"):
        read(tail)


def test_a_log_that_is_gone_is_told(follow: Follow, log: Path) -> None:
    """A log that is gone is told."""
    tail = follow(log)
    log.unlink()
    with pytest.raises(InputError, match="is gone"):
        read(tail)


def test_a_compressed_log_is_refused(follow: Follow, log: Path) -> None:
    """It does not grow: whoever unpacks it can watch it."""
    packed = log.with_name("events.jsonl.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    with pytest.raises(InputError, match="is compressed: unpack it to watch it"):
        follow(packed)


def test_nothing_is_written_and_no_lock_is_taken(follow: Follow, log: Path) -> None:
    """Nothing is written and no lock is taken."""
    before = log.stat()
    log.chmod(0o400)
    read(follow(log))
    after = log.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert [path.name for path in log.parent.iterdir()] == ["events.jsonl"]
