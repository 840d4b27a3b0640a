"""Memories whose file is damaged, missing, or newer."""

import json
import os
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import InputError
from prism.programs.thinking import Memory
from tests.programs.thinking.memory.living import live

WHOLE = b'{"working_memory": {"a": "b"}, "storage": {"c": "d"}, "state": "thinking"}'
DAMAGED = {
    "cut": WHOLE[:40],
    "empty": b"",
    "blank": b" \n",
    "zeros": bytes(100),
    "garbage": bytes(range(256)),
    "not UTF-8": WHOLE.replace(b"d", b"\xff"),
    "an array": b"[]",
    "text": b'"x"',
    "very deep": b"[" * 100_000,
}


SLIPS = {
    "more behind": WHOLE + b"}",
    "a key twice": WHOLE.replace(b'"storage"', b'"working_memory"'),
    "working memory a text": b'{"working_memory": "x"}',
    "storage an array": b'{"storage": []}',
    "storage null": b'{"storage": null}',
    "state a number": b'{"state": 1}',
    "prism a text": b'{"prism": "x"}',
    "schema a text": b'{"prism": {"schema": "1"}}',
    "cycle negative": b'{"prism": {"cycle": -1}}',
    "cycle true": b'{"prism": {"cycle": true}}',
    "next thought 0": b'{"prism": {"next_thought": 0}}',
    "used an array": b'{"prism": {"used": []}}',
    "used a text": b'{"prism": {"used": {"a": "b"}}}',
    "prefixes": b'{"prism": {"thought_prefixes": [1]}}',
    "infinite": b'{"storage": {"a": 1e999}}',
    "not a number": b'{"storage": {"a": NaN}}',
    "endless number": b'{"storage": {"a": 1' + b"0" * 5000 + b"}}",
    "deep": b'{"storage": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}",
    "a key misspelt": WHOLE.replace(b"storage", b"storrage"),
    "a key of prism's misspelt": b'{"prism": {"cylce": 1}}',
    "a state misspelt": WHOLE.replace(b"thinking", b"thinkin"),
    "a comma too many": WHOLE.replace(b"}}", b"},}").replace(b'"d"}', b'"d",}'),
}


def kept(path: Path, *, cycles: int = 3) -> list[dict[str, Any]]:
    """Live for some cycles, and return what the memory was after each."""
    states = []
    with Memory.open(path) as memory:
        for _ in range(cycles):
            live(memory)
            memory.commit()
            states.append(memory.to_dict())
    return states


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
@pytest.mark.sampled(5)
def test_a_damaged_file_is_restored(content: bytes, tmp_path: Path) -> None:
    """The newest backup takes its place, with a warning that names both; it is kept beside."""
    path = tmp_path / "memory.json"
    states = kept(path)
    path.write_bytes(content)

    with pytest.warns(RuntimeWarning, match="memory.json.*restored from .*memory.json.1.bak"):
        memory = Memory.open(path)
    with memory:
        assert memory.to_dict() == states[-2]
        assert len(memory.faults) == 1
    assert (tmp_path / "memory.json.damaged").read_bytes() == content
    with Memory.open(path) as again:
        assert (again.to_dict(), again.faults) == (states[-2], ())


@pytest.mark.parametrize("content", SLIPS.values(), ids=SLIPS.keys())
@pytest.mark.sampled(6)
def test_a_slip_of_an_editor_is_named_and_left_alone(content: bytes, tmp_path: Path) -> None:
    """What somebody wrote by hand is in no backup: nothing is restored, and nothing set aside."""
    path = tmp_path / "memory.json"
    kept(path)
    path.write_bytes(content)
    before = sorted(each.name for each in tmp_path.iterdir())

    for opening in (Memory.open, Memory.read):
        with pytest.raises(InputError, match="correct it there"):
            opening(path)
    assert path.read_bytes() == content
    assert sorted(each.name for each in tmp_path.iterdir()) == before


def test_a_slip_has_its_line(tmp_path: Path) -> None:
    """Broken JSON is told with its line, and so are a value of the wrong type and a key twice."""
    path = tmp_path / "memory.json"
    for text, line in (
        ('{\n "working_memory": {},\n "storage": {"a": "b",}\n}', 3),
        ('{\n "working_memory": {},\n\n "storage": []\n}', 4),
        ('{\n "storage": {},\n "prism": {\n  "used": {"storage": "x"}}}', 4),
        ('{\n "storage": {"a": 1,\n "a": 2}}', 3),
        ('{\n "working_memory": {},\n "storrage": {}}', 3),
        ('{\n "state": "thinkin"}', 2),
        ('{\n "prism": {\n  "version": {}}}', 3),
    ):
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            Memory.open(path)
        assert caught.value.line == line


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_alone_is_an_error(content: bytes, tmp_path: Path) -> None:
    """Without a good backup nothing is written, and the error says what to do."""
    path = tmp_path / "memory.json"
    path.write_bytes(content)
    (tmp_path / "memory.json.1.bak").write_bytes(b"[1]")
    (tmp_path / "memory.json.2.bak").write_bytes(b"{")

    with pytest.raises(InputError, match="it has no valid backup: repair it"):
        Memory.open(path)
    with pytest.raises(InputError, match="it has no valid backup: repair it"):
        Memory.read(path)
    assert path.read_bytes() == content
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "memory.json",
        "memory.json.1.bak",
        "memory.json.2.bak",
    ]


def test_warnings_as_errors(tmp_path: Path) -> None:
    """Where the warning is made an error, the memory is restored all the same, and not locked."""
    path = tmp_path / "memory.json"
    states = kept(path)
    path.write_bytes(b"")
    with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning):
        Memory.open(path)
    with Memory.open(path) as memory:
        assert memory.to_dict() == states[-2]


def test_older_backups(tmp_path: Path) -> None:
    """A backup that is damaged itself is passed over."""
    path = tmp_path / "memory.json"
    states = kept(path, cycles=4)
    path.write_bytes(b"")
    (tmp_path / "memory.json.1.bak").write_bytes(b"{")
    with pytest.warns(RuntimeWarning, match="memory.json.2.bak"):
        memory = Memory.open(path)
    with memory:
        assert memory.to_dict() == states[-3]


def test_a_missing_file_with_backups(tmp_path: Path) -> None:
    """A memory that is gone while its backups are there is restored, never silently begun anew."""
    path = tmp_path / "memory.json"
    states = kept(path)
    path.unlink()
    with pytest.warns(RuntimeWarning, match="is missing: restored"):
        memory = Memory.open(path)
    with memory:
        assert memory.to_dict() == states[-2]


def test_damaged_again(tmp_path: Path) -> None:
    """A second damaged file does not replace the first that was kept."""
    path = tmp_path / "memory.json"
    for content in (b"one", b"two"):
        kept(path)
        path.write_bytes(content)
        with pytest.warns(RuntimeWarning, match="restored"):
            Memory.open(path).close()
    assert (tmp_path / "memory.json.damaged").read_bytes() == b"one"
    assert (tmp_path / "memory.json.damaged.2").read_bytes() == b"two"


def test_reading_a_damaged_memory(tmp_path: Path) -> None:
    """Whoever only reads gets the backup, with a warning, and writes nothing."""
    path = tmp_path / "memory"
    states = kept(path)
    path.write_bytes(b"")
    files = sorted(tmp_path.iterdir())
    with pytest.warns(RuntimeWarning, match="is empty: read from .*memory.1.bak"):
        memory = Memory.read(path)
    assert memory.to_dict() == states[-2]
    memory.close()
    assert sorted(tmp_path.iterdir()) == files


def test_a_newer_memory(tmp_path: Path) -> None:
    """A memory of a newer prism is refused by its schema, not taken for damaged."""
    path = tmp_path / "memory"
    kept(path)
    document = json.loads(path.read_bytes())
    document["prism"]["schema"] = 3
    path.write_text(json.dumps(document))
    for opened in (Memory.open, Memory.read):
        with pytest.raises(InputError, match=r"memory, field 'schema': has schema 3.*up to 2"):
            opened(path)


@pytest.mark.parametrize("place", [".", "pipe", "nowhere/memory.json"])
def test_no_file(place: str, tmp_path: Path) -> None:
    """A folder, a pipe, or a file in a folder that does not exist is refused, not mended."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((InputError, OSError), match=r"name the file of a memory$|No such file"):
        Memory.open(tmp_path / place)
    with pytest.raises(InputError, match=r"name the file of a memory$|this memory does not exist$"):
        Memory.read(tmp_path / place)


def test_a_byte_order_mark(tmp_path: Path) -> None:
    """A file as some editors write it is read, and not taken for damaged."""
    path = tmp_path / "memory.json"
    kept(path)
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace(b" ", b"\r\n"))

    with Memory.open(path) as memory:
        assert memory.faults == ()
        assert memory.working == {"a": "b"}


def test_halves_of_surrogate_pairs_in_a_file(tmp_path: Path) -> None:
    """What JSON can say by an escape, and no file can hold, is replaced wherever it stands."""
    half = r'"\ud800"'
    path = tmp_path / "memory.json"
    path.write_text(f'{{"working_memory": {{"a": {half}}}, "other": [{{{half}: {half}}}]}}')

    with Memory.open(path) as memory:
        assert memory.working == {"a": "\ufffd"}
        live(memory)
        memory.commit()
        assert memory.unknown == {"other": [{"\ufffd": "\ufffd"}]}
        said = memory.to_dict()
    with Memory.open(path) as again:
        assert again.to_dict() == said


def test_links_and_odd_names(tmp_path: Path) -> None:
    """A link leads to the memory itself, whose name need not be UTF-8."""
    path = tmp_path / os.fsdecode(b"m\xe9 ?#%41.json")
    states = kept(path)
    (tmp_path / "link").symlink_to(path)
    with Memory.open(tmp_path / "link") as memory:
        assert memory.to_dict() == states[-1]
        with pytest.raises(InputError, match="is already open in this process"):
            Memory.open(path)
    assert (tmp_path / "link").is_symlink()


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=4)), max_size=5),
    st.integers(0, 400),
)
def test_a_json_file_that_is_damaged_anywhere(edits: list[tuple[int, bytes]], cut: int) -> None:
    """Whatever bytes a file has, it is read, restored, or refused with a reason."""
    whole = Memory.in_memory(json.loads(WHOLE)).to_json()
    content = whole[: len(whole) - cut] if cut < len(whole) else whole
    for place, piece in edits:
        start = place % (len(content) + 1)
        content = content[:start] + piece + content[start + len(piece) :]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memory.json"
        path.write_bytes(content)
        try:
            memory = Memory.open(path)
        except InputError as error:
            assert "correct it" in error.problem or "repair it" in error.problem  # noqa: PT017
            return
        with memory:
            live(memory)
            memory.commit()
        again = Memory.read(path)
        assert again.to_dict() == memory.to_dict()
        again.close()
