"""Decisions: sources, costs, entropy, latencies, and what texts cost."""

from statistics import quantiles
from typing import Any

import pytest

from prism.errors import InputError
from tests.kit import make
from tests.kit.logs import LogOf

CALL = {"source": "model", "model": "small", "latency": 0.5, "request_seconds": 0.25}
COST = {"attempts": 1, "input_tokens": 10, "output_tokens": 2}
NO_TOKENS = {"input_tokens": None, "output_tokens": None}
LATENCIES = [number / 10 for number in range(1, 102)]
CUTS = quantiles([*LATENCIES, 1.0], n=100, method="inclusive")
FELL_BACK = {"source": "fallback", "reason": "timed out"}


def decision(**keys: Any) -> make.Event:
    """Return a decision that a model was asked for."""
    return make.decision("x", ["b", "c"], "b", **{**CALL, **COST, **keys})


def text(**keys: Any) -> make.Event:
    """Return the event of a text."""
    written = {"agent_id": "ada", "key": "k", "prompt_hash": "0", "text": "Hi.", "reason": None}
    return make.event("text.written", **{**written, **CALL, **COST, **keys})


STATES: dict[str, tuple[list[dict[str, Any]], dict[str, float]]] = {
    # the first of its list is chosen
    **{
        f"rotated by {turn}": ([{"rotation": turn}], {"chosen_first": share})
        for turn, share in ((None, 1), (0, 1), (1, 0))
    },
    # sums without unknown ones, and percentiles between two
    "sums": (
        [*({"latency": each} for each in LATENCIES), {"latency": 1, "attempts": 3, **NO_TOKENS}],
        {
            **{"attempts": 104, "input_tokens": 1010, "output_tokens": 202},
            **{f"latency_p{share}": CUTS[share - 1] for share in (50, 90, 99)},
            "latency_max": 10.1,
        },
    ),
    # latencies without fallbacks that sent nothing
    "latencies": (
        [
            *[{**FELL_BACK, "latency": 0.0, "attempts": 0}] * 5,
            {**FELL_BACK, "latency": 30.0, "attempts": None},
            {"latency": 10.0},
            {"latency": 20.0, "attempts": 0},
        ],
        {"asked": 8, "from_fallback": 6, "latency_p50": 20.0, "latency_max": 30.0},
    ),
    **{
        f"entropy of {one:g} and {other:g}": (
            [{"probabilities": {"b": one, "c": other}}],
            {"entropy": bits, "entropy_share": bits},
        )
        for one, other, bits in (
            (1e-320, 1e308, 0.0),
            (5e-324, 5e-324, 1.0),
            (2**64 - 1, 1, 0.0),
            (3, 1, 0.8112781244591328),
        )
    },
}


def test_columns(log_of: LogOf) -> None:
    """Decisions of a state and a model are a row."""
    lines = [decision(state=state, **keys) for state, (own, _) in STATES.items() for keys in own]
    rows = {row["state"]: row for row in log_of(lines).rows("decisions")}
    assert rows.keys() == STATES.keys()
    for state, (_, columns) in STATES.items():
        found = {name: rows[state][name] for name in columns}
        assert found == pytest.approx(columns), state


DECIDED = [
    decision(**FELL_BACK),
    decision(**FELL_BACK, round=2),
    decision(),
    make.decision("x", ["b", "c"], "c"),
]
COSTS = [
    decision(money=1.5),
    decision(source="fallback", attempts=3),
    decision(source="fallback", model=None, attempts=0),
    make.decision("x", ["b", "c"], "b"),
    text(model="large", **NO_TOKENS),
    text(model="large", source="failed", **NO_TOKENS),
    text(model="small"),
]


@pytest.mark.parametrize(
    ("lines", "table", "names", "columns", "rows"),
    [
        (
            *(DECIDED, "decisions_by", ["source", "reason"], "source, reason, asked"),
            [("fallback", "timed out", 2), ("model", None, 1), ("policy", None, 1)],
        ),
        (DECIDED, "decisions_by", ["round"], "round, asked", [(1, 3), (2, 1)]),
        (
            *(COSTS, "costs_by", ["model"], "*"),
            [("large", 1, 2, None, None, 0.5, None), ("small", 2, 5, 30, 6, 0.75, 1.5)],
        ),
        (
            *(COSTS, "costs_by", ["what", "model"], "what, model, answers"),
            [("texts", "large", 1), ("decisions", "small", 1), ("texts", "small", 1)],
        ),
    ],
)
def test_rows_by_names(
    lines: list[make.Event], table: str, names: list[str], columns: str, rows: Any, log_of: LogOf
) -> None:
    """Decisions and costs are grouped by any columns, null included; a fallback is no answer."""
    assert log_of(lines).table(table, names).project(columns).fetchall() == rows


def test_another_name_is_refused(log_of: LogOf) -> None:
    """The message names columns."""
    with pytest.raises(InputError, match="costs_by cannot group by colour: use columns of events"):
        log_of(COSTS).table("costs_by", ["colour"])
