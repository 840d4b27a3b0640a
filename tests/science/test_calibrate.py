"""Policies that are estimated from decisions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from prism.analysis import Log, read_log
from prism.errors import InputError
from prism.science import calibrate
from tests.kit import make
from tests.kit.logs import WriteLog

LogOf = Callable[[Iterable[Any]], Log]

OPTIONS = ("composing", "engaging_like", "scrolling")
COUNTS = {"lurker": (10, 30, 60), "contributor": (50, 30, 20)}
POINT = ("evaluating", "decides")


@pytest.fixture
def log_of(write_log: WriteLog) -> LogOf:
    """Return a function that reads the log of decisions, each given by what it has of its own."""

    def log_of(rows: Iterable[Any]) -> Log:
        usual = {"agent": "ada", "options": OPTIONS, "state": "evaluating", "trigger": "decides"}
        decided = [make.decision(**{**usual, "source": "model", **row}) for row in rows]
        return read_log(write_log([make.started(), make.joined("ada"), *decided]))

    return log_of


def by_shares(counts: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    """Yield decisions of agents in which each option is chosen so often."""
    for agent, row in counts.items():
        for name, count in zip(OPTIONS, row, strict=True):
            yield from [{"agent": agent, "chosen": name}] * count


def test_the_policy_has_the_shares_of_what_was_chosen(log_of: LogOf) -> None:
    """The table says of how many decisions."""
    found = calibrate(log_of(by_shares(COUNTS)))
    assert [tuple(row.values()) for row in found.rows] == [
        (*POINT, "composing", 200, 60, 0.3),
        (*POINT, "engaging_like", 200, 60, 0.3),
        (*POINT, "scrolling", 200, 80, 0.4),
    ]
    assert found.policy.probabilities["evaluating"]["decides"] == {
        "composing": 0.3,
        "engaging_like": 0.3,
        "scrolling": 0.4,
    }


def test_too_few_decisions_and_what_was_never_chosen_are_reported(log_of: LogOf) -> None:
    """A situation with too few has no probabilities; an option that nobody chose has 0."""
    rows = [*by_shares({"lurker": (0, 40, 60)})]
    rows += [{**row, "state": "idle"} for row in by_shares({"lurker": (3, 4, 2)})]
    rows += [{**row, "state": "busy"} for row in by_shares({"lurker": (3, 4, 3)})]
    found = calibrate(log_of(rows))
    assert {row["probability"] for row in found.rows if row["state"] == "idle"} == {None}
    decides = found.policy.probabilities["evaluating"]["decides"]
    assert {name: share for name, share in decides.items() if share} == {
        "engaging_like": 0.4,
        "scrolling": 0.6,
    }
    assert found.policy.probabilities.keys() == {"evaluating", "busy"}


def test_fallbacks_are_left_out_and_counted(log_of: LogOf) -> None:
    """Decisions that nobody made are no choices."""
    rows = list(by_shares(COUNTS))
    fell_back = [{**rows[0], "source": "fallback"}] * 7
    found = calibrate(log_of([*rows, *fell_back]))
    assert (found.left_out, found.rows[0]["n"]) == ({"fallback": 7}, 200)


def test_runs_without_decisions_are_refused(log_of: LogOf) -> None:
    """There is nothing to count."""
    with pytest.raises(InputError, match=r"nothing to calibrate from: .* are missing"):
        calibrate(log_of([]))
