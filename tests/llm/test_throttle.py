"""Asking a busy host no more than it takes."""

import pytest

from prism.llm._throttle import (
    FIRST_HOLD_SECONDS,
    LONGEST_BUSY_SECONDS,
    LONGEST_HOLD_SECONDS,
    LONGEST_RETRY_AFTER,
    Throttle,
)


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(clock)


def limit_of(throttle: Throttle) -> int:
    """Return how many questions at once are allowed, of a hundred."""
    return sum(throttle.allows(in_flight) for in_flight in range(100))


def test_a_host_that_refuses_nothing_has_no_limit(throttle: Throttle) -> None:
    """Without a refusal everything is allowed, whatever is under way."""
    throttle.answered()
    assert (limit_of(throttle), throttle.seconds_left()) == (100, 0)


def test_a_refusal_tells_how_many_are_taken(throttle: Throttle) -> None:
    """Of eight at once five are refused, one after the other: three are what it takes, and there is no hold."""
    for others in (7, 6, 5, 4, 3):
        assert throttle.refused(others) is False
    assert (limit_of(throttle), throttle.seconds_left()) == (3, 0)


def test_a_late_refusal_does_not_raise_the_limit(throttle: Throttle) -> None:
    """A refusal with more questions under way than the limit leaves it as it is."""
    throttle.refused(2)
    throttle.refused(6)
    assert limit_of(throttle) == 2


def test_answers_raise_the_limit_one_by_one(throttle: Throttle) -> None:
    """One more is tried when the limit has been filled with answers five times; a refusal begins the count anew."""
    throttle.refused(2)
    limits = []
    for number in range(26):
        limits.append(limit_of(throttle))
        if number == 8:
            throttle.refused(2)
        throttle.answered()
    assert limits == [2] * 18 + [3] * 8


def test_a_host_that_refuses_a_single_question_is_held(throttle: Throttle, clock: Clock) -> None:
    """Where nothing else is under way the next may not be put for a while, and then one."""
    throttle.refused(0)
    assert 0 < throttle.seconds_left() <= FIRST_HOLD_SECONDS
    assert limit_of(throttle) == 0
    clock.time += throttle.seconds_left()
    assert (limit_of(throttle), throttle.seconds_left()) == (1, 0)


def longest_hold(refusals: int) -> float:
    """Return the longest of many holds after so many refusals."""
    clock = Clock()
    holds = []
    for _ in range(200):
        throttle = Throttle(clock)
        for _ in range(refusals):
            clock.time += throttle.seconds_left()
            throttle.refused(0)
        holds.append(throttle.seconds_left())
    assert len(set(holds)) > 100
    return max(holds)


@pytest.mark.parametrize(
    ("refusals", "longest"), [(1, 0.2), (2, 0.4), (3, 0.8), (50, LONGEST_HOLD_SECONDS)]
)
def test_holds_grow_and_differ(refusals: int, longest: float) -> None:
    """A hold is random, up to a bound that doubles with every refusal until it is 5 s."""
    assert longest / 2 < longest_hold(refusals) <= longest


@pytest.mark.parametrize(
    ("wish", "hold"), [(0.0, 0), (2.5, 2.5), (29, 29), (3600, 30), (float("inf"), 30)]
)
def test_a_wish_to_be_left_alone_has_a_limit(clock: Clock, wish: float, hold: float) -> None:
    """A host is held for as long as it asks for, up to half a minute, and a random moment more."""
    holds = []
    for _ in range(100):
        throttle = Throttle(clock)
        throttle.hold(wish)
        holds.append(throttle.seconds_left() - hold)
    assert len(set(holds)) > 50  # runs that were refused together do not come back together
    assert -1e-9 < min(holds) < max(holds) < FIRST_HOLD_SECONDS + 1e-9


def test_nothing_ends_a_hold_that_was_asked_for(throttle: Throttle) -> None:
    """Neither an answer nor a refusal of what was under way lets others ask earlier."""
    throttle.hold(LONGEST_RETRY_AFTER)
    throttle.refused(1)
    throttle.answered()
    throttle.refused(0)
    assert throttle.seconds_left() >= LONGEST_RETRY_AFTER
    assert limit_of(throttle) == 0


def test_a_host_that_has_long_refused_everything_fails(throttle: Throttle, clock: Clock) -> None:
    """A refusal is a failure after half a minute without an answer, unless others are still under way."""
    assert throttle.refused(0) is False
    clock.time += LONGEST_BUSY_SECONDS - 1
    assert throttle.refused(0) is False
    clock.time += 1
    assert (throttle.refused(1), throttle.refused(0)) == (False, True)
    throttle.answered()
    assert throttle.refused(0) is False
