"""Answers kept on disk."""

import operator
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from prism.errors import InputError
from prism.llm import AnswerCache
from tests.kit import processes

WRITER = """
import sys
from prism.llm import AnswerCache

path, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with AnswerCache(path) as cache:
    for number in range(200):
        cache[f"{name} {number}"] = f"by {name}"
        cache[f"both {number}"] = "by either"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the place for a cache."""
    return tmp_path / "answers.db"


def test_what_is_put_is_there_in_the_next_run(path: Path) -> None:
    """An answer outlives the cache object, the latest one counts, and what was not put is None."""
    with AnswerCache(path) as cache:
        assert cache.get("k") is None
        cache["k"] = "old"
        cache["k"] = "Grüße, \u2603"
    with AnswerCache(str(path)) as cache:
        assert cache.get("k") == "Grüße, \u2603"
        assert cache.get("other") is None
        assert len(cache) == 1


def test_processes_may_share_a_file(path: Path) -> None:
    """Three processes that open and write one file at the same time lose nothing."""
    names = ("ann", "bob", "cy")
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [
        processes.start([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in names
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("go\n", timeout=30)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    with AnswerCache(path) as cache:
        assert len(cache) == 800
        assert {cache.get(f"{name} {number}") for name in names for number in range(200)} == {
            f"by {n}" for n in names
        }


def test_threads_may_share_a_cache(path: Path) -> None:
    """Threads that use one cache at the same time lose nothing, nor what another cache has put."""
    with AnswerCache(path) as cache, ThreadPoolExecutor(4) as threads:
        begin = threading.Barrier(4)

        def use(name: str) -> list[str | None]:
            begin.wait(10)
            for number in range(100):
                cache[f"{name} {number}"] = f"by {name}"
                cache[f"all {number}"] = "by any"
            return [cache.get(f"{name} {number}") for number in range(100)]

        for name, found in zip("abcd", threads.map(use, "abcd"), strict=True):
            assert found == [f"by {name}"] * 100
        assert len(cache) == 500
        assert {cache.get(f"d {number}") for number in range(100)} == {"by d"}


def make_damaged(path: Path) -> Path:
    path.write_bytes(b"no database, but longer than its header would be " * 100)
    return path


def make_other(path: Path) -> Path:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE answers (question TEXT)")
    database.close()
    return path


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


def make_bookmarks(path: Path) -> Path:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE bookmarks (url TEXT)")
    database.close()
    return path


@pytest.mark.parametrize(
    "make",
    [
        make_damaged,
        make_bookmarks,
        make_other,
        make_folder,
        lambda path: path / "deeper" / "answers.db",
    ],
    ids=["damaged", "bookmarks", "other database", "folder", "no folder"],
)
def test_what_is_no_cache_is_refused(path: Path, make: Callable[[Path], Path]) -> None:
    """A file that is something else is an error that names it, and is left as it is."""
    place = make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError, match="cannot be used as an answer cache") as caught:
        AnswerCache(place)
    assert caught.value.path == str(place)
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize(
    "use",
    [lambda cache: cache.get("k"), lambda cache: operator.setitem(cache, "k", "v")],
    ids=["get", "put"],
)
def test_trouble_during_the_run_names_the_file(
    path: Path, use: Callable[[AnswerCache], object]
) -> None:
    """If the file fails later, the error says what is wrong with which file."""
    with AnswerCache(path) as cache:
        database = sqlite3.connect(path)
        database.execute("DROP TABLE answers")
        database.close()
        with pytest.raises(
            InputError, match="cannot be used as an answer cache: no such table: answers"
        ) as caught:
            use(cache)
    assert caught.value.path == str(path)


def test_a_locked_file_costs_an_answer_and_no_run(path: Path) -> None:
    """What cannot be written or read while another process writes is not there, and no error."""
    with AnswerCache(path) as cache, closing(sqlite3.connect(path)) as blocker:
        cache["first"] = "answer"
        blocker.execute("BEGIN EXCLUSIVE")
        cache["second"] = "answer"
        blocker.rollback()
        assert (cache.get("first"), cache.get("second")) == ("answer", None)
