"""What answers cost, and how much a run may spend."""

from typing import Any

import pytest

from prism.errors import FieldValueError
from prism.statechart import Budget
from tests.kit.clocks import Clock


@pytest.mark.parametrize("limit", ["max_calls", "max_tokens", "deadline"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_limits_are_above_zero(limit: str, value: float) -> None:
    """A limit that is not above 0 is a ValueError that names it."""
    with pytest.raises(FieldValueError, match=f"{limit} must be a number above 0, got {value!r}"):
        Budget(**{limit: value})


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


def test_the_deadline_counts_from_the_first_question(clock: Clock) -> None:
    """A deadline begins with the first question, and when it is over nothing can be taken."""
    budget = Budget(deadline=5)
    budget.clock = clock
    clock.time += 60
    assert budget.take() is None
    assert budget.seconds_left() == 5.0
    clock.time += 4
    assert budget.seconds_left() == 1.0
    clock.time += 2
    assert budget.seconds_left() == 0.0
    assert budget.take() == "budget spent: 5 seconds"
    assert budget.calls == 1
