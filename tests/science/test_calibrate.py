"""Policies that are estimated from decisions."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("polars")

from prism.analysis import read_log
from prism.errors import FieldValueError, InputError
from prism.science import Policy, Unidentified, calibrate
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.choosing import OPTIONS, by_shares, logged

Write = Callable[..., Path]

COUNTS = {"lurker": (10, 30, 60), "contributor": (50, 30, 20)}
POINT = ("evaluating", "decides")


def policy_of(write_log: Write, rows: Iterable[Any], **how: Any) -> Policy:
    return calibrate(read_log(write_log(logged(rows))), **how)


def said(policy: Policy, what: str) -> list[Unidentified]:
    return [each for each in policy.unidentified if each.what == what]


def test_a_cell_has_the_shares_of_what_was_chosen(write_log: Write) -> None:
    """They are those of the group, and the file holds them as they are."""
    policy = policy_of(write_log, by_shares(COUNTS))
    found = policy.look_up(*POINT, OPTIONS, "lurker")
    assert found == ((0.1, 0.3, 0.6), False)
    (cell,) = (each for each in policy.cells if each.group == "lurker")
    assert (cell.counts, cell.n, cell.agents) == (COUNTS["lurker"], 100, 10)
    assert Policy.from_dict(policy.to_dict()) == policy


def test_a_small_group_is_not_identified_and_takes_the_pooled_shares(write_log: Write) -> None:
    """A group with too few decisions has no probabilities; look-ups say that all groups answer."""
    policy = policy_of(write_log, by_shares({**COUNTS, "superuser": (3, 2, 0)}))
    (cell,) = said(policy, "cell")
    assert (cell.group, cell.n, cell.reason) == (
        "superuser",
        5,
        "only 5 decisions of the 10 needed",
    )
    assert policy.look_up(*POINT, OPTIONS, "superuser") == ((63 / 205, 62 / 205, 80 / 205), True)


def test_other_options_have_no_answer(write_log: Write) -> None:
    """Options that were never offered together are not made up from others."""
    policy = policy_of(write_log, by_shares(COUNTS))
    assert policy.look_up(*POINT, ("composing", "scrolling"), "lurker") is None


def test_fallbacks_are_left_out_and_counted(write_log: Write) -> None:
    """Decisions that nobody made are no choices."""
    rows = list(by_shares(COUNTS))
    fell_back = [{**rows[0], "source": "fallback"}] * 7
    (source,) = policy_of(write_log, [*rows, *fell_back]).sources
    assert (source.decisions, dict(source.left_out)) == (200, {"fallback": 7})


def test_what_a_chart_allows_and_nobody_met_is_told(write_log: Write) -> None:
    """States that nobody decided in, and options that were never offered, are listed."""
    two = ("composing", "scrolling")
    rows = [
        {**row, "options": two, "chosen": two[n % 2]} for n, row in enumerate(by_shares(COUNTS))
    ]
    (never,) = said(policy_of(write_log, rows), "option")
    assert (never.name, never.reason) == ("engaging_like", "was never offered")

    door = state_enum("Door", ["open", "shut", "locked"])
    opened, shut, locked = door
    moves = [Transition("pushed", shut, target) for target in (opened, locked)]
    chart = Statechart(door, moves, initial=shut, decision_states=[shut])
    (state,) = said(policy_of(write_log, by_shares(COUNTS), charts=[chart]), "state")
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
