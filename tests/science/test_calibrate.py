"""Policies that are estimated from decisions."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("polars")

from prism.analysis import read_log
from prism.errors import FieldValueError, InputError
from prism.science import Calibration, Unidentified, calibrate
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.choosing import OPTIONS, by_shares, logged

Write = Callable[..., Path]

COUNTS = {"lurker": (10, 30, 60), "contributor": (50, 30, 20)}
POINT = ("evaluating", "decides")


def calibrated(write_log: Write, rows: Iterable[Any], **how: Any) -> Calibration:
    return calibrate(read_log(write_log(logged(rows))), **how)


def said(found: Calibration, what: str) -> list[Unidentified]:
    return [each for each in found.unidentified if each.what == what]


def test_a_cell_has_the_shares_of_what_was_chosen(write_log: Write) -> None:
    """The table has those of each group, and the policy those of all together."""
    found = calibrated(write_log, by_shares(COUNTS))
    (cell,) = (each for each in found.cells if each.group == "lurker")
    assert (cell.counts, cell.n, cell.agents) == (COUNTS["lurker"], 100, 10)
    assert cell.probabilities == (0.1, 0.3, 0.6)
    assert found.policy.look_up(*POINT, OPTIONS) == [0.3, 0.3, 0.4]


def test_a_small_group_is_not_identified(write_log: Write) -> None:
    """A group with too few decisions has no probabilities, but counts among all."""
    found = calibrated(write_log, by_shares({**COUNTS, "superuser": (3, 2, 0)}))
    (cell,) = said(found, "cell")
    assert (cell.group, cell.n, cell.reason) == (
        "superuser",
        5,
        "only 5 decisions of the 10 needed",
    )
    assert found.policy.look_up(*POINT, OPTIONS) == [63 / 205, 62 / 205, 80 / 205]


def test_fallbacks_are_left_out_and_counted(write_log: Write) -> None:
    """Decisions that nobody made are no choices."""
    rows = list(by_shares(COUNTS))
    fell_back = [{**rows[0], "source": "fallback"}] * 7
    (source,) = calibrated(write_log, [*rows, *fell_back]).sources
    assert (source.decisions, dict(source.left_out)) == (200, {"fallback": 7})


def test_what_a_chart_allows_and_nobody_met_is_told(write_log: Write) -> None:
    """States that nobody decided in, and options that were never offered, are listed."""
    two = ("composing", "scrolling")
    rows = [
        {**row, "options": two, "chosen": two[n % 2]} for n, row in enumerate(by_shares(COUNTS))
    ]
    (never,) = said(calibrated(write_log, rows), "option")
    assert (never.name, never.reason) == ("engaging_like", "was never offered")

    door = state_enum("Door", ["open", "shut", "locked"])
    opened, shut, locked = door
    moves = [Transition("pushed", shut, target) for target in (opened, locked)]
    chart = Statechart(door, moves, initial=shut, decision_states=[shut])
    (state,) = said(calibrated(write_log, by_shares(COUNTS), charts=[chart]), "state")
    assert (state.state, state.event) == ("shut", "pushed")


def test_impossible_arguments_are_refused(write_log: Write) -> None:
    """A number below 1, an unknown attribute, and runs without decisions are refused."""
    logs = read_log(write_log(logged(by_shares(COUNTS))))
    with pytest.raises(FieldValueError, match="least"):
        calibrate(logs, least=0)
    with pytest.raises(InputError, match="is 'mood', which is not an attribute of the agents"):
        calibrate(logs, by="mood")
    with pytest.raises(InputError, match="hold no decisions"):
        calibrate(read_log(write_log(logged([]))))
