"""From lines of JSON to columns."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.analysis.parsing import TYPES, _read_in_halves, empty, parse
from prism.runlog.reader import Block

LINE = st.sampled_from(
    [
        b'{"event":"a","round":1}',
        b'{"round":2}',
        b"",
        b" \t",
        b"{",
        b"?",
        b"[1]",
        b"null",
        b'{"event":"b"} x',
        b"\x00\x00",
    ]
)


def block_of(data: bytes, first_line: int = 1) -> Block:
    return Block(data, first_line, data.count(b"\n") + (not data.endswith(b"\n")))


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


@settings(deadline=None, max_examples=60)
@given(lines=st.lists(LINE, max_size=12), first=st.integers(1, 10**9))
def test_every_line_is_a_row_a_bad_line_or_blank(lines: list[bytes], first: int) -> None:
    """Lines that are JSON become rows under their numbers, others are named, and blank ones are neither."""
    parsed = parse(block_of(b"".join(line + b"\n" for line in lines), first), ["event", "round"])
    numbered = list(enumerate(lines, start=first))
    assert parsed.frame["line"].to_list() == [number for number, line in numbered if is_json(line)]
    assert list(parsed.bad_lines) == [number for number, line in numbered if line.strip() and not is_json(line)]
    expected = [json.loads(line) for line in lines if is_json(line)]
    rows = [row if isinstance(row, dict) else {} for row in expected]
    assert parsed.frame.select("event", "round").rows() == [(row.get("event"), row.get("round")) for row in rows]


@settings(deadline=None, max_examples=60)
@given(bad=st.sets(st.integers(0, 20)))
def test_lines_that_only_one_parser_takes_are_found_in_halves(bad: set[int]) -> None:
    """Where the parser of columns refuses lines that passed the first look, all others are read."""
    lines = [(number, b"{" if number in bad else b'{"event":"%d"}' % number) for number in range(20)]
    frames = list(_read_in_halves(lines, ["event"]))
    read = [row for frame in frames for row in frame.select("line", "event").iter_rows()]
    assert read == [(number, str(number)) for number in range(20) if number not in bad]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"b": 0.25, "é": None}, '{"b": 0.25, "é": null}'),
        ([1, "x"], '[1, "x"]'),
        ("text", "text"),
        (None, None),
        (2, "2"),
    ],
)
def test_objects_are_kept_as_json(value: object, kept: str | None) -> None:
    """What is an object in the log is JSON text in its column, and reads back as it was."""
    line = json.dumps({"event": "a", "probabilities": value}).encode()
    (found,) = parse(block_of(line), ["event", "probabilities"]).frame["probabilities"]
    assert found == kept
    if isinstance(value, (dict, list)):
        assert json.loads(found) == value


def test_empty_frame_has_the_columns_of_others() -> None:
    """An empty frame goes together with any other."""
    frame = empty(["event", "round"])
    assert (frame.height, frame.columns) == (0, ["line", "event", "round", "run"])
    assert [frame.schema[name] for name in ("event", "round")] == [TYPES["event"], TYPES["round"]]
