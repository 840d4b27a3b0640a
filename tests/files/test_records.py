"""Records of files that somebody else wrote."""

import csv
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.errors import FieldValueError, InputError
from prism.files import Record, read_json_lines, reading
from prism.files.records import MAX_FILE_BYTES, distinct_ends, read_csv
from tests.kit.files import position_of

Write = Callable[[str, str | bytes], Path]

DEEP = "[" * 100_000
LONG_NUMBER = "1" * 5_000


def record(**fields: Any) -> Record:
    return Record(Path("people.jsonl"), 7, fields)


def complaint(path: Path, read: Callable[[Path], Any]) -> InputError:
    """Return the error that reading a file record by record ends in."""
    with pytest.raises(InputError) as caught, reading(path):
        list(read(path))
    return caught.value


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_json_lines_know_their_line(write: Write, end: str) -> None:
    """Every line is a record with its number; blank lines and a byte order mark are skipped."""
    path = write("a.jsonl", "\ufeff" + end.join(['{"a": 1}', "", "   ", '{"a": "\u2028"}']))
    with reading(path):
        found = [(record.line, record.fields) for record in read_json_lines(path)]
    assert found == [(1, {"a": 1}), (4, {"a": "\u2028"})]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ('{"a": 1}\n{"a": \n{"a": 3}\n', 2, r"is not valid JSON: Expecting value \(col"),
        ('{"a": 1}\n\n{"a": 1} {}\n', 3, r"is not valid JSON: Extra data \(column 10\)"),
        ("{}\n[1]\n", 2, "must be a JSON object"),
        ("{}\n" + DEEP, 2, "is nested too deeply"),
        (f"{{}}\n[{LONG_NUMBER}]", 2, "contains a number with too many digits"),
        (b'\n{"a": "\xff"}\n', None, r"is not UTF-8 text \(invalid start byte\)"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_broken_record_is_named(
    write: Write, content: str | bytes, line: int | None, problem: str
) -> None:
    """An error in JSON is an InputError with file and, if it is known, line."""
    path = write("a.jsonl", content)
    error = complaint(path, read_json_lines)
    assert (error.path, error.line, error.field) == (str(path), line, None)
    with pytest.raises(InputError, match=problem):
        raise error


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, write: Write) -> None:
    """A missing, empty or unreadable file, or a folder, is an InputError that says so."""
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)
    pipe, endless = tmp_path / "pipe.jsonl", tmp_path / "endless.jsonl"
    os.mkfifo(pipe)
    endless.touch()
    # without its bytes
    os.truncate(endless, MAX_FILE_BYTES + 1)
    reasons = {
        tmp_path / "none.jsonl": "there is no such file",
        tmp_path: "is a folder, not a file",
        write("empty.jsonl", ""): "is empty",
        write("file", "x") / "below.jsonl": f"cannot be read: {os.strerror(errno.ENOTDIR)}",
        pipe: "is a pipe or device, but must be read twice: give a file",
        endless: "is larger than 1024 MiB: split it",
        loop: f"cannot be read: {os.strerror(errno.ELOOP)}",
    }
    for path, reason in reasons.items():
        assert str(complaint(path, read_json_lines)) == f"{path}: {reason}"


def test_texts_are_read_as_they_are() -> None:
    """Texts are returned unchanged; null counts as absent."""
    ann = record(name=" Ann ", bio="", mood=None)
    texts = [ann.text("name"), ann.text("bio", "none"), ann.text("mood", "calm"), ann.text("x", "")]
    assert texts == [" Ann ", "", "calm", ""]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "is missing"),
        ({"name": None}, "is missing"),
        ({"name": 5}, "must be text, got 5"),
        ({"name": " \n"}, "must not be empty"),
        ({"name": "A\0"}, r"contains a NUL or half a surrogate pair: 'A\\x00'"),
        ({"name": "A\ud800"}, r"contains a NUL or half a surrogate pair: 'A\\ud800'"),
    ],
)
def test_a_required_text_must_be_one(fields: dict[str, Any], problem: str) -> None:
    """A required text that is missing, blank, unwritable or of another type is refused."""
    with pytest.raises(InputError, match=rf"^people\.jsonl, line 7, field 'name': {problem}$"):
        record(**fields).text("name")


def test_an_error_is_placed_at_its_field() -> None:
    """An error of prism about a value gets file, line and field, and keeps its cause."""
    with pytest.raises(InputError) as caught, record(age=200).at("age"):
        raise FieldValueError("too old")
    assert str(caught.value) == "people.jsonl, line 7, field 'age': too old"
    assert isinstance(caught.value.__cause__, FieldValueError)


def test_one_path_twice_is_told_apart_by_its_number() -> None:
    """Other paths are told apart by their ends."""
    runs = [Path("/runs/a/one"), Path("/runs/b/one")]
    assert distinct_ends(runs) == ["a/one", "b/one"]
    assert distinct_ends([runs[0], runs[0]]) == ["/runs/a/one #1", "/runs/a/one #2"]


def test_many_repeated_keys_cost_little(write: Write) -> None:
    """A line of 100,000 repeated keys is refused by the first of them, in no time to speak of."""
    keys = [f'"k{number % 50_000}": 0' for number in range(100_000)]
    error = complaint(write("a.jsonl", "{" + ", ".join(keys) + "}"), read_json_lines)
    assert position_of(error)[1:] == (1, "k0")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_may_have_any_usual_separator(write: Write, separator: str) -> None:
    """The header says what separates; other marks stay in their cells."""
    path = write("a.csv", f'name{separator}age\nann{separator}"3;1,0"\n')
    (record,) = read_csv(path)
    assert (record.line, record.fields) == (2, {"name": "ann", "age": "3;1,0"})
    # the limit of the whole process is as it was
    assert csv.field_size_limit() == 131_072
