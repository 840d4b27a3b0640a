"""The costs of a run's models in words."""

from typing import Any

import pytest

from prism.cli._spent import duration, spent_lines


def costs(calls: int, read: int, written: int, **more: Any) -> dict[str, Any]:
    """Return the costs of one model."""
    return {"calls": calls, "input_tokens": read, "output_tokens": written, **more}


def test_the_trial_of_a_server_has_its_line_and_its_price() -> None:
    """What was asked before the run is not among the answers, and is paid for, too."""
    spent = {
        "calls": 3,
        "tokens": 60,
        "money": 0.5,
        "by_model": {"tiny": costs(2, 30, 10, answers=2, money=0.3)},
        "trials": {"tiny": costs(1, 15, 5, money=0.2)},
    }
    assert list(spent_lines(spent)) == [
        "spent: 3 calls, 60 tokens, 0.5000 by its prices",
        "  tiny: 2 calls, 30 tokens read, 10 written, 0.3000 by its prices",
        "  tiny, tried before the run: 1 call, 15 tokens read, 5 written, 0.2000 by its prices",
    ]


def test_tokens_that_nobody_reports_are_not_called_none() -> None:
    """Whether a server that counts no tokens has read any, nobody knows."""
    models = {"a": costs(3, 0, 0, answers=2), "b": costs(1, 2, 0, answers=1)}
    assert list(spent_lines({"calls": 3, "tokens": 0, "by_model": {"a": models["a"]}})) == [
        "spent: 3 calls, no tokens reported"
    ]
    assert list(spent_lines({"calls": 4, "tokens": 2, "by_model": models})) == [
        "spent: 4 calls, 2 tokens",
        "  a: 3 calls, no tokens reported",
        "  b: 1 call, 2 tokens read, 0 written",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (59.6, "1 min 0 s"),
        (3599.6, "1 h 0 min"),
        (93_600, "1 d 2 h"),
        (86_400_000, "1,000 d 0 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, said: str) -> None:
    """It is rounded before it is divided, so that no minute has sixty seconds."""
    assert duration(seconds) == said
