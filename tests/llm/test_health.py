"""What is known of a host's health: its circuit breaker and its throttle."""

import pytest

from prism.statechart.reasoner._slots import (
    FAILURES_TO_OPEN,
    FIRST_HOLD_SECONDS,
    FIRST_PAUSE_SECONDS,
    LONGEST_BUSY_SECONDS,
    LONGEST_HOLD_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_RETRY_AFTER,
    PROBE_SECONDS,
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


def test_a_breaker_opens_after_five_failures_in_a_row(breaker: CircuitBreaker) -> None:
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


def test_a_half_open_breaker_lets_one_probe_through(breaker: CircuitBreaker, clock: Clock) -> None:
    """When the pause is over one question may be put, and no second one while it is under way."""
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS - 0.01
    assert not breaker.allows()
    clock.time += 0.01
    assert breaker.allows()
    assert breaker.asked()
    assert not breaker.allows()
    assert breaker.is_open()


def test_a_successful_probe_closes_the_breaker(breaker: CircuitBreaker, clock: Clock) -> None:
    """After a good probe the breaker has five failures and the first pause again."""
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


def test_a_failed_probe_doubles_the_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    """Every failed probe doubles the pause, up to the longest."""
    open_up(breaker)
    pauses = []
    for _ in range(7):
        pauses.append(breaker.seconds_left())
        clock.time += pauses[-1]
        breaker.failed(probe=breaker.asked())
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]


def test_a_cancelled_probe_makes_room_for_another(breaker: CircuitBreaker, clock: Clock) -> None:
    """A cancelled probe says nothing, so the next question is the probe."""
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS
    breaker.abandoned(probe=breaker.asked())
    assert breaker.is_open()
    assert breaker.allows()


@pytest.mark.parametrize("ends", [CircuitBreaker.failed, CircuitBreaker.abandoned])
def test_older_questions_do_not_end_a_probe(
    breaker: CircuitBreaker, clock: Clock, ends: object
) -> None:
    """A question put before it opened neither lengthens the pause nor admits a second probe."""
    older = breaker.asked()
    open_up(breaker)
    clock.time += FIRST_PAUSE_SECONDS
    breaker.asked()
    ends(breaker, probe=older)
    assert not breaker.allows()
    assert not breaker.fails_fast()


def test_questions_wait_for_a_new_probe_only(breaker: CircuitBreaker, clock: Clock) -> None:
    """Questions wait for a host that works or is probed, but for no pause or endless probe."""
    assert not breaker.fails_fast()
    open_up(breaker)
    assert breaker.fails_fast()
    clock.time += FIRST_PAUSE_SECONDS
    assert breaker.fails_fast()
    breaker.asked()
    assert (breaker.fails_fast(), breaker.seconds_left()) == (False, PROBE_SECONDS)
    clock.time += PROBE_SECONDS
    assert (breaker.fails_fast(), breaker.seconds_left()) == (True, 0)
    breaker.succeeded()
    assert not breaker.fails_fast()


def test_questions_wait_until_the_patience_is_over(clock: Clock) -> None:
    """With patience questions wait from the first opening on, through failed probes, to its end."""
    breaker = CircuitBreaker(clock, patience=5)
    open_up(breaker)
    assert (breaker.fails_fast(), breaker.allows(), breaker.seconds_left()) == (False, False, 1)
    clock.time += 1
    assert (breaker.allows(), breaker.seconds_left()) == (True, 4)
    breaker.failed(probe=breaker.asked())
    assert (breaker.fails_fast(), breaker.seconds_left()) == (False, 2)
    clock.time += 2
    breaker.failed(probe=breaker.asked())
    assert (breaker.fails_fast(), breaker.seconds_left()) == (False, 2)
    clock.time += 2
    assert (breaker.fails_fast(), breaker.seconds_left()) == (True, 2)


def test_patience_begins_again_after_a_success(clock: Clock) -> None:
    """A host that has worked in between is waited for as long as at first."""
    breaker = CircuitBreaker(clock, patience=5)
    for _ in range(2):
        open_up(breaker)
        clock.time += 4
        assert not breaker.fails_fast()
        clock.time += 1
        assert breaker.fails_fast()
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


def test_a_refusal_shows_how_many_are_taken(throttle: Throttle) -> None:
    """Of eight at once five are refused in turn: three are what it takes, and there is no hold."""
    for others in (7, 6, 5, 4, 3):
        assert throttle.refused(others) is False
    assert (limit_of(throttle), throttle.seconds_left()) == (3, 0)


def test_a_late_refusal_does_not_raise_the_limit(throttle: Throttle) -> None:
    """A refusal with more questions under way than the limit leaves it as it is."""
    throttle.refused(2)
    throttle.refused(6)
    assert limit_of(throttle) == 2


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


def test_a_host_that_refuses_a_lone_question_is_on_hold(throttle: Throttle, clock: Clock) -> None:
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
def test_retry_after_has_a_limit(clock: Clock, wish: float, hold: float) -> None:
    """A host is held for as long as it asks for, up to half a minute, and a random moment more."""
    holds = []
    for _ in range(100):
        throttle = Throttle(clock)
        throttle.hold(wish)
        holds.append(throttle.seconds_left() - hold)
    assert len(set(holds)) > 50  # runs that were refused together do not come back together
    assert -1e-9 < min(holds) < max(holds) < FIRST_HOLD_SECONDS + 1e-9


def test_nothing_shortens_a_hold(throttle: Throttle) -> None:
    """Neither an answer nor a refusal of what was under way lets others ask earlier."""
    throttle.hold(LONGEST_RETRY_AFTER)
    throttle.refused(1)
    throttle.answered()
    throttle.refused(0)
    assert throttle.seconds_left() >= LONGEST_RETRY_AFTER
    assert limit_of(throttle) == 0


def test_a_host_that_asks_for_less_does_not_take_back_what_it_asked_for(throttle: Throttle) -> None:
    """Of two pauses that it asked for, the longer one is told."""
    throttle.hold(LONGEST_RETRY_AFTER)
    throttle.hold(1)
    assert throttle.seconds_asked() == pytest.approx(LONGEST_RETRY_AFTER)


def test_a_host_that_has_long_refused_everything_fails(throttle: Throttle, clock: Clock) -> None:
    """A refusal after half a minute without an answer is a failure, unless others are under way."""
    assert throttle.refused(0) is False
    clock.time += LONGEST_BUSY_SECONDS - 1
    assert throttle.refused(0) is False
    clock.time += 1
    assert (throttle.refused(1), throttle.refused(0)) == (False, True)
    throttle.answered()
    assert throttle.refused(0) is False
