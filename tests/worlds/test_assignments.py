"""Who is treated."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import FieldValueError
from prism.worlds._assignments import CONTROL, Assignments

SUBJECTS = [f"agent_{number}" for number in range(200)]


@settings(max_examples=2 * settings().max_examples)
@given(st.integers(0, 99), st.lists(st.floats(0.01, 0.33), min_size=1, max_size=3))
def test_an_arm_depends_on_the_subject_alone(seed: int, shares: list[float]) -> None:
    """Nobody is in two arms, and order and company of the subjects change nobody's arm."""
    arms = [f"arm_{number}" for number in range(len(shares))]
    shuffled = Random(seed).sample(SUBJECTS, len(SUBJECTS))

    def assigned(groups: list[list[str]]) -> dict[str, str]:
        found = Assignments(seed)
        for arm, share in zip(arms, shares, strict=True):
            found.add_arm("votes", arm, share)
        for group in groups:
            for arm in arms:
                found.assign("agent_id", group, "votes", arm)

        told = list(found.drain())
        assert len(told) == len(SUBJECTS)
        assert not list(found.drain())
        return {each["agent_id"]: each["arm"] for each in told}

    together = assigned([SUBJECTS])
    assert assigned([[each] for each in shuffled]) == together
    assert set(together.values()) <= {*arms, CONTROL}


def test_shares_are_met_and_another_seed_or_experiment_draws_anew() -> None:
    """Of 4,000 subjects a share of .3 is between .27 and .33, four standard errors."""
    subjects = [str(number) for number in range(4000)]

    def chosen(seed: int, experiment: str) -> set[str]:
        found = Assignments(seed)
        found.add_arm(experiment, "likes", 0.3)
        return set(found.assign("post_id", subjects, experiment, "likes"))

    first = chosen(1, "a")
    assert 0.27 < len(first) / 4000 < 0.33
    for other in (chosen(2, "a"), chosen(1, "b")):
        assert 0.05 < len(first & other) / 4000 < 0.13


def test_arms_that_come_to_one_leave_nobody_out() -> None:
    """Three thirds have no control, whatever rounding does."""
    found = Assignments(0)
    for arm in "abc":
        found.add_arm("x", arm, 1 / 3)
    for arm in "abc":
        found.assign("agent_id", SUBJECTS, "x", arm)

    assert CONTROL not in {each["arm"] for each in found.drain()}


def test_arms_of_more_than_one_are_refused() -> None:
    """The message names experiment and arms."""
    found = Assignments(0)
    found.add_arm("votes", "likes", 0.6)
    with pytest.raises(FieldValueError, match=r"'votes' \(likes, dislikes\).*at most 1, got 1.2"):
        found.add_arm("votes", "dislikes", 0.6)


def test_an_arm_beside_a_whole_experiment_may_have_no_share() -> None:
    """It has nobody; one that has a share is refused with the sum of all shares."""
    found = Assignments(0)
    for arm, share in (("likes", 0.5), ("dislikes", 0.5), ("shares", 0)):
        found.add_arm("votes", arm, share)
    assert found.assign("agent_id", SUBJECTS, "votes", "shares") == []
    with pytest.raises(FieldValueError, match=r"at most 1, got 1\.1"):
        found.add_arm("votes", "replies", 0.1)


def test_an_arm_has_one_share() -> None:
    """An arm may be named again with its share, and not with another."""
    found = Assignments(0)
    found.add_arm("votes", "dislikes", 0.3)
    found.add_arm("votes", "likes", 0.1 + 0.2)
    found.add_arm("votes", "likes", 0.3)
    found.add_arm("votes", "shares", 0.4)
    found.add_arm("votes", "shares", 0.4)
    with pytest.raises(FieldValueError, match="'votes' has two arms 'likes' with different shares"):
        found.add_arm("votes", "likes", 0.4)


@pytest.mark.parametrize("share", [-0.5, float("nan"), "half"])
def test_a_share_is_a_number(share: Any) -> None:
    """What is no share would leave everybody untreated."""
    with pytest.raises(FieldValueError, match="share of arm 'likes' must be a number from 0 to 1"):
        Assignments(0).add_arm("votes", "likes", share)
