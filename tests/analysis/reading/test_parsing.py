"""From lines of JSON to columns."""

import json
from typing import Any

import orjson
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.analysis._reading.parsing import (
    OBJECTS,
    _read_in_halves,
    objects_of,
    parse,
)
from prism.runlog._events import EVENTS
from prism.runlog._reader import Block

MANY = 5 * settings().max_examples
"""Examples of what is cheap: more where CI asks for more of all."""

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


@settings(max_examples=2 * settings().max_examples)
@given(lines=st.lists(LINE, max_size=12), first=st.integers(1, 10**9))
def test_every_line_is_a_row_a_bad_line_or_blank(lines: list[bytes], first: int) -> None:
    """JSON lines become rows with their numbers, other lines are named, blank ones are neither."""
    parsed = parse(block_of(b"".join(line + b"\n" for line in lines), first), ["event", "round"])
    numbered = list(enumerate(lines, start=first))
    assert parsed.frame["line"].to_list() == [number for number, line in numbered if is_json(line)]
    assert list(parsed.bad_lines) == [
        number for number, line in numbered if line.strip() and not is_json(line)
    ]
    expected = [json.loads(line) for line in lines if is_json(line)]
    rows = [row if isinstance(row, dict) else {} for row in expected]
    assert parsed.frame.select("event", "round").rows() == [
        (row.get("event"), row.get("round")) for row in rows
    ]


@given(bad=st.sets(st.integers(0, 20)))
def test_lines_that_only_one_parser_takes_are_found_in_halves(bad: set[int]) -> None:
    """A line that polars refuses but orjson accepts costs no other line."""
    lines = [
        (number, b"{" if number in bad else b'{"event":"%d"}' % number) for number in range(20)
    ]
    frames = list(_read_in_halves(lines, ["event"]))
    read = [row for frame in frames for row in frame.select("line", "event").iter_rows()]
    assert read == [(number, str(number)) for number in range(20) if number not in bad]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['say "hi"', "a\\b", "line\nfeed", "\x00", "é…😀", '{"a":1}', "free text"]
)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "inf" not in str(value))


def objects_in(lines: list[bytes], numbers: list[int | None], *names: str) -> list[tuple[Any, ...]]:
    """Return what lines hold under keys of objects, as text."""
    found = objects_of(block_of(b"\n".join(lines), 5), pl.Series(numbers, dtype=pl.UInt32), names)
    assert found.schema == dict.fromkeys(names, pl.String)
    return found.rows()


@settings(max_examples=MANY)
@given(value=VALUE, ascii_alone=st.booleans())
def test_objects_are_kept_as_json(value: Any, ascii_alone: bool) -> None:
    """An object becomes JSON text that reads back as it was."""
    line = json.dumps({"event": "a", "context": value}, ensure_ascii=ascii_alone).encode()
    ((context, probabilities),) = objects_in([line], [5], "context", "probabilities")
    assert probabilities is None
    assert (context is None) == (value is None)
    assert value is None or json.loads(context) == value


def test_every_object_of_the_schema_keeps_the_order_of_its_keys() -> None:
    """No object of any event is left to polars, which shuffles the keys of one with many."""
    keys = [key for event in EVENTS for key in event.keys]
    assert {key.name for key in keys if "object" in str(key.schema.get("type"))} <= OBJECTS
    value = {f"agent_{number}": number for number in range(200)}
    block = block_of(orjson.dumps({"event": "agents.measured", "values": value}) + b"\n")
    frame = objects_of(block, pl.Series([1]), ["values"])
    assert list(json.loads(frame["values"][0])) == list(value)


HALF = st.sampled_from([r"\ud83d", "ud83d", r"\uDE00", r"\u0041", "a", r"\n", r"\"", r"\\"])


@settings(max_examples=MANY)
@given(texts=st.lists(st.lists(HALF, max_size=5), min_size=1, max_size=3))
def test_lone_surrogates_make_a_line_bad(texts: list[list[str]]) -> None:
    """A line with half a surrogate pair is bad; one with both halves is read."""
    lines = [f'{{"event":"{"".join(parts)}"}}'.encode() for parts in texts]
    is_sound = []
    for line in lines:
        try:
            is_sound.append(orjson.loads(line)["event"])
        except orjson.JSONDecodeError:
            is_sound.append(None)
    parsed = parse(block_of(b"\n".join(lines)), ["event"])
    assert parsed.frame["event"].to_list() == [text for text in is_sound if text is not None]
    assert list(parsed.bad_lines) == [
        number for number, text in enumerate(is_sound, start=1) if text is None
    ]
