"""Every agent, with what it is and did."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from prism.analysis import read_log
from tests.kit.tables import agents

WriteLog = Callable[..., Path]


def test_numbers_in_names_are_sorted_as_numbers(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Agents come in natural order: by the numbers in their names, and not by the digits."""
    names = ["b_1", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "a", "02", "2", "10"]
    lines = [make.move(name, "on", "off") for name in names]
    table = agents(read_log(write_log(lines)))
    expected = ["02", "2", "10", "a", "a_2", "a_2_x", "a_10", "a_10_2", "a_10_11", "a_100", "b_1"]
    assert table["agent_id"].to_list() == expected


def test_the_log_of_a_loop_has_no_columns_of_a_feed(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A log whose first line names no chart has columns of posts only if something was posted."""
    loop = [make.event("run.started", schema=1), make.move("x", "a", "b")]
    assert "posts" not in agents(read_log(write_log(loop))).columns
    assert "posts" in agents(read_log(write_log([*loop, make.post("x", "p1")]))).columns
