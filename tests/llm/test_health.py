"""What is known of a host's health: its circuit breaker and its throttle."""

import pytest

from prism.reasoner._slots import (
    FAILURES_TO_OPEN,
    FIRST_HOLD_SECONDS,
    LONGEST_HOLD_SECONDS,
    LONGEST_PAUSE_SECONDS,
    CircuitBreaker,
    Throttle,
)
from tests.kit.clocks import Clock


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def open_up(breaker: CircuitBreaker) -> None:
    for _ in range(FAILURES_TO_OPEN):
        breaker.failed(probe=breaker.asked())


def test_a_success_in_between_starts_the_count_again(breaker: CircuitBreaker) -> None:
    """Failures that are not in a row never open it."""
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.allows()
    assert breaker.seconds_left() == 0


def test_a_failed_probe_doubles_the_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    """Every failed probe doubles the pause, up to the longest."""
    open_up(breaker)
    pauses = []
    for _ in range(7):
        pauses.append(breaker.seconds_left())
        clock.time += pauses[-1]
        breaker.failed(probe=breaker.asked())
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(clock)


def limit_of(throttle: Throttle) -> int:
    """Return how many questions at once are allowed, of a hundred."""
    return sum(throttle.allows(in_flight) for in_flight in range(100))


def test_answers_raise_the_limit_one_by_one(throttle: Throttle) -> None:
    """The limit grows by one after five rounds of answers; a refusal starts the count anew."""
    throttle.refused(2)
    limits = []
    for number in range(26):
        limits.append(limit_of(throttle))
        if number == 8:
            throttle.refused(2)
        throttle.answered()
    assert limits == [2] * 18 + [3] * 8


def test_a_host_that_asks_for_a_pause_is_not_tried_with_more_for_a_while(
    throttle: Throttle, clock: Clock
) -> None:
    """One question too many would hold up all others, so the limit stays for half a minute."""
    throttle.refused(2, asks_pause=True)
    for _ in range(100):
        throttle.answered()
    assert limit_of(throttle) == 2
    clock.time += 30
    throttle.answered()
    assert limit_of(throttle) == 3


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
def test_retry_after_has_a_limit(clock: Clock, wish: float, hold: float) -> None:
    """A host is held for as long as it asks for, up to half a minute, and a random moment more."""
    holds = []
    for _ in range(100):
        throttle = Throttle(clock)
        throttle.hold(wish)
        holds.append(throttle.seconds_left() - hold)
    assert len(set(holds)) > 50  # runs that were refused together do not come back together
    assert -1e-9 < min(holds) < max(holds) < FIRST_HOLD_SECONDS + 1e-9
