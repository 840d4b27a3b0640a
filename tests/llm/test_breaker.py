"""Leaving a failing host alone."""

import pytest

from prism.llm._breaker import (
    FAILURES_TO_OPEN,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    PROBE_SECONDS,
    CircuitBreaker,
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
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def open_up(breaker: CircuitBreaker) -> None:
    for _ in range(FAILURES_TO_OPEN):
        breaker.failed(probe=breaker.asked())


def test_it_opens_after_five_failures_in_a_row(breaker: CircuitBreaker) -> None:
    """Four failures leave the host in use, the fifth does not."""
    states = []
    for _ in range(5):
        breaker.failed(probe=breaker.asked())
        states.append((breaker.allows(), breaker.is_open()))
    assert states == [(True, False)] * 4 + [(False, True)]
    assert breaker.seconds_left() == FIRST_PAUSE_SECONDS


def test_a_success_in_between_starts_the_count_again(breaker: CircuitBreaker) -> None:
    """Failures that are not in a row never open it."""
    for _ in range(10):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.allows()
    assert breaker.seconds_left() == 0


def test_one_probe_is_let_through_after_the_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    """When the pause is over one question may be put, and no second one while it is under way."""
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS - 0.01
    assert not breaker.allows()
    clock.time += 0.01
    assert breaker.allows()
    assert breaker.asked()
    assert not breaker.allows()
    assert breaker.is_open()


def test_a_probe_that_succeeds_closes_it(breaker: CircuitBreaker, clock: Clock) -> None:
    """After a good probe the host is used as before, and has five failures and the first pause again."""
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS
    breaker.failed(probe=breaker.asked())
    clock.time += 2 * FIRST_PAUSE_SECONDS
    breaker.asked()
    breaker.succeeded()
    assert breaker.allows()
    assert not breaker.is_open()
    assert not breaker.asked()
    open_up(breaker)
    assert breaker.seconds_left() == FIRST_PAUSE_SECONDS


def test_a_probe_that_fails_doubles_the_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    """Every failed probe doubles the pause, up to the longest."""
    open_up(breaker)
    pauses = []
    for _ in range(7):
        pauses.append(breaker.seconds_left())
        clock.time += pauses[-1]
        breaker.failed(probe=breaker.asked())
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]


def test_a_probe_that_is_abandoned_leaves_room_for_another(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    """A cancelled probe says nothing, so the next question is the probe."""
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS
    breaker.abandoned(probe=breaker.asked())
    assert breaker.is_open()
    assert breaker.allows()


@pytest.mark.parametrize("ends", [CircuitBreaker.failed, CircuitBreaker.abandoned])
def test_older_questions_do_not_end_the_probe(
    breaker: CircuitBreaker, clock: Clock, ends: object
) -> None:
    """A question put before it opened neither lengthens the pause nor lets a second probe through."""
    older = breaker.asked()
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS
    breaker.asked()
    ends(breaker, probe=older)
    assert not breaker.allows()
    assert not breaker.is_hopeless()


def test_there_is_hope_while_a_probe_is_new(breaker: CircuitBreaker, clock: Clock) -> None:
    """It pays to wait for a host that works or is being probed, but not in the pause, nor for a probe without end."""
    assert not breaker.is_hopeless()
    open_up(breaker)
    assert breaker.is_hopeless()
    clock.time += FIRST_PAUSE_SECONDS
    assert breaker.is_hopeless()
    breaker.asked()
    assert (breaker.is_hopeless(), breaker.seconds_left()) == (False, PROBE_SECONDS)
    clock.time += PROBE_SECONDS
    assert (breaker.is_hopeless(), breaker.seconds_left()) == (True, 0)
    breaker.succeeded()
    assert not breaker.is_hopeless()


def test_patience_gives_hope_until_it_is_over(clock: Clock) -> None:
    """With patience it pays to wait from the first opening on, through failed probes, but not for ever."""
    breaker = CircuitBreaker(clock, patience=5)
    open_up(breaker)
    assert (breaker.is_hopeless(), breaker.allows(), breaker.seconds_left()) == (False, False, 1)
    clock.time += 1
    assert (breaker.allows(), breaker.seconds_left()) == (True, 4)
    breaker.failed(probe=breaker.asked())
    assert (breaker.is_hopeless(), breaker.seconds_left()) == (False, 2)
    clock.time += 2
    breaker.failed(probe=breaker.asked())
    assert (breaker.is_hopeless(), breaker.seconds_left()) == (False, 2)
    clock.time += 2
    assert (breaker.is_hopeless(), breaker.seconds_left()) == (True, 2)


def test_patience_begins_again_after_a_success(clock: Clock) -> None:
    """A host that has worked in between is waited for as long as at first."""
    breaker = CircuitBreaker(clock, patience=5)
    for _ in range(2):
        open_up(breaker)
        clock.time += 4
        assert not breaker.is_hopeless()
        clock.time += 1
        assert breaker.is_hopeless()
        breaker.succeeded()


def test_pause_and_wait_may_be_others(clock: Clock) -> None:
    """The first pause, also after a success, and the wait for a probe are those that were given."""
    breaker = CircuitBreaker(clock, first_pause=0.5, probe_wait=3)
    open_up(breaker)
    assert breaker.seconds_left() == 0.5
    clock.time += 0.5
    breaker.asked()
    assert breaker.seconds_left() == 3
    breaker.succeeded()
    open_up(breaker)
    assert breaker.seconds_left() == 0.5
