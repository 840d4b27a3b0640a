"""A memory whose file cannot be written keeps what it holds, and is written later."""

import errno
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from prism.programs.thinking import Memory


@contextmanager
def no_file_longer_than(most: int) -> Iterator[None]:
    """Let every write beyond so many bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_commit_that_fails_can_be_repeated(tmp_path: Path) -> None:
    """The file stays what it was, nothing of the memory is lost, and the next commit writes it."""
    path = tmp_path / "memory"
    with Memory.open(path) as memory:
        memory.save("first", "a")
        memory.commit()
        committed = memory.to_dict()

        memory.save("first", "b")
        memory.save("long", "word " * 100_000)
        memory.add("x", "y" * 50_000)
        wanted = memory.to_dict()
        with no_file_longer_than(40_000):
            for _ in range(2):
                with pytest.raises(OSError, match="memory") as failed:
                    memory.commit()
                assert failed.value.errno in (errno.EFBIG, errno.ENOSPC, errno.EIO)
        assert memory.stored("first") == "b"

        reader = Memory.read(path)
        assert reader.to_dict() == committed
        reader.close()

        assert memory.to_dict() == wanted
        memory.commit()
    with Memory.open(path) as memory:
        assert memory.to_dict() == wanted
        assert [match.tag for match in memory.search("word", 2)] == ["long"]
