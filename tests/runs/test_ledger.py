"""A budget that several processes share."""

from pathlib import Path

from prism.llm import Model
from prism.runs._ledger import Ledger, SharedBudget, lending
from prism.runs._makers import Shared
from prism.statechart import Budget


def both(path: Path, **limits: float) -> tuple[SharedBudget, SharedBudget]:
    """Return the budgets of two processes that share one."""
    first, second = (SharedBudget(Ledger(path, **limits)) for _ in range(2))  # type: ignore[arg-type]
    return first, second


def test_calls_are_counted_for_all_together(tmp_path: Path) -> None:
    """One budget is spent by whoever asks first; each knows what it has spent itself."""
    one, other = both(tmp_path / "budget", max_calls=3)
    assert [one.take(), other.take(), one.take()] == [None, None, None]
    assert other.take() == one.spent() == "budget spent: 3 calls of all runs together"
    assert (one.calls, other.calls) == (2, 1)

    other.add(retries=-1, tokens=40)
    assert other.take() is None
    assert (Ledger(tmp_path / "budget").look().tokens, one.tokens, other.tokens) == (40, 0, 40)


def test_what_a_killed_run_has_spent_stays_spent(tmp_path: Path) -> None:
    """A run that is resumed counts for itself what its checkpoint says, and nothing twice."""
    one, _ = both(tmp_path / "budget", max_calls=5)
    for _ in range(3):
        one.take()

    again, _ = both(tmp_path / "budget", max_calls=5)
    again.restore(calls=2, tokens=0, seconds=0.0)
    assert [again.take(), again.take()] == [None, None]
    assert again.take() is not None
    assert again.calls == 4


def test_the_time_of_an_interruption_does_not_count(tmp_path: Path) -> None:
    """The clock begins with the first question, and stands still until the batch goes on."""
    now = 100.0
    one, other = both(tmp_path / "budget", deadline=10.0)
    one.clock = other.clock = lambda: now
    assert one.seconds_left() == 10.0
    now = 104.0
    assert other.seconds_left() == 6.0

    now = 5000.0
    Ledger(tmp_path / "budget").take_up()
    assert other.seconds_left() == 6.0
    now = 5007.0
    assert one.spent() == "budget spent: 10 seconds of all runs together"


def test_runs_take_the_budget_that_is_lent(tmp_path: Path) -> None:
    """What asks a model in a run spends from the ledger that is lent, and else has its own."""
    options = Model("llama3.2")
    with lending(Ledger(tmp_path / "budget")):
        assert isinstance(Shared.of(options).budget, SharedBudget)
    assert type(Shared.of(options).budget) is Budget
