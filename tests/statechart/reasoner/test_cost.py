"""What answers cost, and how much a run may spend."""

from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest

from prism.errors import BudgetSpentError, FieldValueError
from prism.statechart import Budget, Cost
from prism.statechart.reasoner._spending import (
    COST_KEYS,
    KNOWN_COST_KEYS,
    Allowance,
    require_positive,
)
from tests.kit.clocks import Clock


@pytest.mark.parametrize("limit", ["max_calls", "max_tokens", "deadline"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_limits_are_above_zero(limit: str, value: float) -> None:
    """A limit that is not above 0 is a ValueError that names it."""
    with pytest.raises(FieldValueError, match=f"{limit} must be above 0, got {value!r}"):
        Budget(**{limit: value})


def test_no_limits_are_never_reached() -> None:
    """A budget without limits only counts."""
    budget = Budget()
    assert [budget.take() for _ in range(1000)] == [None] * 1000
    budget.add(retries=10**6, tokens=10**9)
    assert (budget.spent(), budget.seconds_left()) == (None, None)
    assert (budget.calls, budget.tokens) == (1_001_000, 10**9)


@pytest.mark.parametrize(
    ("limits", "costs", "taken", "reason"),
    [
        ({"max_calls": 3}, {}, 3, "budget spent: 3 calls"),
        ({"max_calls": 3}, {"retries": 1}, 2, "budget spent: 3 calls"),
        ({"max_calls": 1}, {"retries": 5}, 1, "budget spent: 1 calls"),
        ({"max_tokens": 100}, {"tokens": 50}, 2, "budget spent: 100 tokens"),
        ({"max_tokens": 100}, {"tokens": 99}, 2, "budget spent: 100 tokens"),
        ({"max_calls": 2, "max_tokens": 10}, {"tokens": 10}, 1, "budget spent: 10 tokens"),
        ({"max_calls": 2, "deadline": 3600.0}, {}, 2, "budget spent: 2 calls"),
    ],
)
def test_what_is_spent_is_spent(limits: Any, costs: Any, taken: int, reason: str) -> None:
    """Calls can be taken until they, their retries or tokens reach a limit, which is named then."""
    budget = Budget(**limits)
    for _ in range(taken):
        assert budget.take() is None
        budget.add(**costs)
    assert budget.spent() == budget.take() == budget.take() == reason
    assert budget.calls == taken * (1 + costs.get("retries", 0))


def test_a_budget_is_restored_from_its_dict() -> None:
    """A budget restored from another's dict has spent as much, and ends at the same call."""
    budget = Budget(max_calls=3)
    assert budget.take() is None
    budget.add(tokens=40)
    told = budget.to_dict()
    assert told == {"calls": 1, "tokens": 40, "seconds": 0.0}
    again = Budget(max_calls=3)
    again.restore(**told)
    assert again.to_dict() == told
    assert [again.take() for _ in range(3)] == [None, None, "budget spent: 3 calls"]


def test_a_restored_deadline_goes_on_where_it_was() -> None:
    """Seconds of an interrupted run count; a deadline that had not begun begins with a question."""
    budget = Budget(deadline=100)
    budget.restore(calls=5, tokens=0, seconds=99.0)
    left = budget.seconds_left()
    assert left is not None
    assert 0 < left <= 1
    assert 99 <= budget.to_dict()["seconds"] <= 100
    spent = Budget(deadline=100)
    spent.restore(calls=5, tokens=0, seconds=100.0)
    assert spent.take() == "budget spent: 100 seconds"
    fresh = Budget(deadline=100)
    fresh.restore(calls=0, tokens=0, seconds=0.0)
    assert fresh.to_dict()["seconds"] == 0.0
    assert fresh.take() is None
    assert 0 < (fresh.seconds_left() or 0) <= 100


def test_without_a_deadline_seconds_are_ignored() -> None:
    """A budget without a deadline tells no seconds and has none left after a restore."""
    budget = Budget(max_calls=9)
    budget.restore(calls=1, tokens=2, seconds=50.0)
    assert (budget.seconds_left(), budget.to_dict()["seconds"], budget.calls, budget.tokens) == (
        None,
        0.0,
        1,
        2,
    )


def test_the_deadline_counts_from_the_first_question(clock: Clock) -> None:
    """A deadline begins with the first question, and when it is over nothing can be taken."""
    budget = Budget(deadline=5)
    budget.clock = clock
    clock.time += 60
    assert budget.take() is None
    clock.time += 4
    assert budget.seconds_left() == 1.0
    clock.time += 2
    assert budget.seconds_left() == 0.0
    assert budget.take() == "budget spent: 5 seconds"
    assert budget.calls == 1


def test_a_cost_without_limits_may_always_go_on() -> None:
    """A cost that nobody bounds takes what slots say of it, and changes nothing."""
    cost = Cost(model="m1")
    cost.allowance.stalled(True)
    cost.allowance.admitted()
    assert cost.allowance.allows(10**6)
    assert cost == Cost(model="m1")


def test_the_allowance_of_a_cost_is_no_part_of_it() -> None:
    """Costs are equal by what is logged of them, whatever bounds them."""
    budget = Budget(max_calls=1)
    cost = Cost(allowance=Allowance(budget, most_attempts=2))
    cost.allowance.admitted()
    assert budget.calls == 1
    with pytest.raises(BudgetSpentError, match="1 calls"):
        cost.allowance.admitted()
    assert [cost.allowance.allows(1), cost.allowance.allows(2)] == [True, False]
    assert cost == Cost()
    assert "allowance" not in repr(cost)
    logged = [each.name for each in fields(Cost) if each.compare]
    assert logged == [*COST_KEYS, *KNOWN_COST_KEYS]


async def test_a_lease_counts_what_was_sent_whatever_ends_it() -> None:
    """What was admitted and not sent is given back; what was sent and not admitted counts."""
    budget = Budget(max_calls=9)
    for sent in (0, 1, 3):
        allowance = Allowance(budget)
        with suppress(KeyError):
            async with allowance.lease(lambda sent=sent: (sent, 2 * sent)):
                allowance.admitted()
                raise KeyError
    assert (budget.calls, budget.tokens) == (4, 8)


def test_what_a_common_request_cost_is_counted_once() -> None:
    """A cost without its charges keeps times, model and host, and adds nothing up."""
    cost = Cost(0.5, "m1", "h1", 2, 30, 4, 0.1, 0.4, 10**9, "stop")
    shared = Cost(
        0.5, "m1", "h1", 0, 0, 0, queue_seconds=0.1, request_seconds=0.4, done_reason="stop"
    )
    assert cost.without_charges() == shared
    assert cost.attempts == 2


@pytest.mark.parametrize("value", [0, -1.5, float("nan")])
def test_the_first_limit_that_is_not_above_zero_is_named(value: float) -> None:
    """Of several limits the first that is given and not above 0 is in the message."""
    with pytest.raises(FieldValueError, match=f"two must be above 0, got {value!r}"):
        require_positive(one=1, unset=None, two=value, three=0)
    require_positive(one=1, unset=None)
