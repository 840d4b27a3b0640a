"""All events of one kind as a query, with every key that they have."""

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import read_log
from prism.analysis._reading.scanning import query_of
from prism.errors import InputError
from prism.runlog import configure
from prism.runlog._events import EVENTS

SCHEMA = {"a": pl.Int64(), "b": pl.Int64()}


class Parts:
    """A table made in parts, which notes what was asked of it."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.needed: set[str] = set()
        self.made = 0

    def whole(self) -> pl.DataFrame:
        """Return the table at once."""
        total = sum(self.sizes)
        return pl.DataFrame({"a": range(total), "b": [a % 3 for a in range(total)]}, schema=SCHEMA)

    def __call__(self, needed: Collection[str]) -> Iterator[pl.DataFrame]:
        """Make the parts, with a column that nobody asked for."""
        self.needed, start = set(needed), 0
        for size in self.sizes:
            self.made += 1
            yield self.whole().slice(start, size).with_columns(extra=pl.lit(1))
            start += size


@given(sizes=st.lists(st.integers(0, 5), max_size=5), most=st.integers(0, 12))
def test_query_of_parts_equals_the_whole_table(sizes: list[int], most: int) -> None:
    """Filters, columns and heads of a query are those of the whole table."""
    parts = Parts(sizes)
    query, whole = query_of(parts, schema=SCHEMA), parts.whole()
    is_even = pl.col("a") % 2 == 0
    assert query.collect().equals(whole)
    assert query.filter(is_even).select("b").collect().equals(whole.filter(is_even).select("b"))
    assert query.filter(is_even).head(most).collect().equals(whole.filter(is_even).head(most))


def test_query_makes_only_what_it_needs() -> None:
    """A query asks for the columns of its result and its filter, and stops after its rows."""
    parts = Parts([2, 2, 2, 2])
    assert query_of(parts, schema=SCHEMA).select("a").head(3).collect()["a"].to_list() == [0, 1, 2]
    assert parts.needed == {"a"}
    assert parts.made == 2
    query_of(parts, schema=SCHEMA).filter(pl.col("b") == 1).select("a").collect()
    assert parts.needed == {"a", "b"}


WriteLog = Callable[..., Path]

ADDED = {"run", "line"}
STAMPED = {"event", "timestamp", "round", "tick"}

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.lists(st.sampled_from(["a", "b,c"]), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
)
NAMES = st.sampled_from(
    ["agent_id", "state", "run", "line", "key_run", 'k"ey', "\u00e4", "latency"]
)


def kind(value: Any) -> str:
    """Return what sort of value it is; numbers are one sort, as are lists that hold only texts."""
    if isinstance(value, list):
        return "texts" if all(isinstance(each, str) for each in value) else "json"
    return "number" if type(value) in (int, float) else type(value).__name__


def expected(values: list[Any]) -> list[Any]:
    """Return what a column of these values holds: JSON text if they are of several kinds."""
    kinds = {kind(value) for value in values if value is not None}
    if kinds == {"dict"} or len(kinds) > 1:
        return [None if value is None else orjson.dumps(value).decode() for value in values]
    if kinds == {"number"} and any(type(value) is float for value in values):
        return [None if value is None else float(value) for value in values]
    return values


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=8))
def test_a_scan_has_every_key_of_an_event(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[dict[str, Any]]
) -> None:
    """Events of one's own come back key by key, in the type that has room for all their values."""
    path = tmp_path_factory.mktemp("log") / "own.jsonl"
    path.write_bytes(b"".join(orjson.dumps({"event": "my.own", **each}) + b"\n" for each in drawn))
    table = read_log(path).scan("my.own").collect()
    keys = list(dict.fromkeys(key for event in drawn for key in event))
    columns = [name for name in table.columns if name not in ("line", "timestamp", "round", "tick")]
    assert len(columns) == len(keys)
    for key, column in zip(keys, columns, strict=True):
        assert column.endswith(key)
        assert table[column].to_list() == expected([event.get(key) for event in drawn])


@pytest.mark.parametrize("event", [event.name for event in EVENTS])
@pytest.mark.sampled(45)
def test_a_scan_has_every_key_of_the_schema(
    event: str, folder: Path, events: list[dict[str, Any]]
) -> None:
    """Every event of prism can be scanned, with all keys of the schema, which hold what it has."""
    table = read_log(folder).scan(event).collect()
    keys = next(each.keys for each in EVENTS if each.name == event)
    assert set(table.columns) - {"line"} - STAMPED == {key.name for key in keys}

    lines = [each for each in events if each["event"] == event]
    assert table.height == len(lines)
    for key in keys:
        values = [line.get(key.name) for line in lines]
        as_text = [None if each is None else orjson.dumps(each).decode() for each in values]
        assert table[key.name].to_list() in (values, as_text)


def test_keys_bound_by_an_application_are_columns(tmp_path: Path) -> None:
    """What an application adds to prism's own events, and its own events, are there in one log."""
    import structlog

    with (
        configure(tmp_path / "own.jsonl"),
        structlog.contextvars.bound_contextvars(trial=3, round=2),
    ):
        structlog.get_logger().info("vote.cast", agent_id="ann", parties=["a", "b"], sure=True)

    logs = read_log(tmp_path / "own.jsonl")
    votes = logs.scan("vote.cast").select("round", "agent_id", "parties", "sure", "trial")
    assert votes.collect().rows() == [(2, "ann", ["a", "b"], True, 3)]
    assert "trial" not in logs.scan("statechart.transition").collect_schema()
    assert logs.scan("run.ended").collect_schema()["timestamp"] == pl.Datetime("us", "UTC")


def test_own_events_belong_to_the_run_of_their_file(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Events before, in and after the run get its label; those of earlier runs are left out."""
    own = make.event("my.own")
    run = [own, make.started(), own, make.event("run.ended"), own]
    both = read_log(write_log(run, "a.jsonl"), write_log([own], "b.jsonl"))
    assert both.scan("my.own").collect()["run"].to_list() == ["a", "a", "a", "b"]
    run[1] = make.event("run.started", schema=1)
    twice = read_log(write_log([*run, *run], "twice.jsonl"))
    assert twice.scan("my.own").collect()["line"].to_list() == [8, 10]
    assert [each.label for each in both.runs] == ["a"]


def test_scanned_columns_can_be_selected_and_filtered(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A filter on one's own key works with other columns selected, and heads end a scan early."""
    lines = [make.event("my.own", n=number, half=number / 2) for number in range(10)]
    scan = read_log(write_log(lines)).scan("my.own")
    assert scan.filter(pl.col("n") > 7).select("half").collect().rows() == [(4.0,), (4.5,)]
    assert scan.head(2).collect()["timestamp"].to_list() == [datetime(2026, 1, 1, tzinfo=UTC)] * 2
    assert scan.select("line").tail(1).collect().item() == 10


def test_scan_of_unknown_events_is_refused(folder: Path) -> None:
    """An event that neither prism nor the logs have is refused, with those of the logs named."""
    with pytest.raises(
        InputError, match=r"no event 'my\.own' in the logs; they have agent\.joined"
    ):
        read_log(folder).scan("my.own")


def test_more_keys_than_columns_are_refused(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log that makes up a key for every event does not become a table without end."""
    lines = [make.event("my.own", **{f"key{number}": 1}) for number in range(1001)]
    with pytest.raises(InputError, match="more than 1,000 different keys"):
        read_log(write_log(lines)).scan("my.own")


def test_deep_values_are_null(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A value nested deeper than JSON is written leaves the others of its event alone."""
    deep = b'{"event":"my.own","n":1,"deep":' + b"[" * 900 + b"]" * 900 + b"}"
    row = read_log(write_log([deep, make.event("my.own", n=2, deep=[1])])).scan("my.own").collect()
    assert row["n"].to_list() == [1, 2]
    assert row["deep"].to_list() == [None, "[1]"]


def test_a_log_that_grows_is_scanned_to_its_end(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Values of another kind that come after the keys were found are null, not an error."""
    path = write_log([make.event("my.own", n=1)])
    scan = read_log(path).scan("my.own")
    with path.open("ab") as file:
        file.write(b'{"event":"my.own","n":"many","m":1}\n')
    assert scan.select("n").collect().rows() == [(1,), (None,)]
