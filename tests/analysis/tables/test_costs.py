"""Costs: what each model took, in decisions and texts."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import costs, read_log
from prism.errors import InputError

WriteLog = Callable[..., Path]


def call(**keys: Any) -> dict[str, Any]:
    """Return what the event of an answer says of its cost."""
    known = {"latency": 0.5, "request_seconds": 0.25, "host": "h", "model": "small"}
    return {**known, "attempts": 1, "input_tokens": 10, "output_tokens": 2, **keys}


def text(**keys: Any) -> dict[str, Any]:
    """Return the event of a text."""
    written = {"agent_id": "ada", "key": "k", "prompt_hash": "0", "text": "Hi.", "reason": None}
    stamped = {"event": "text.written", "timestamp": "2026-01-01T00:00:00Z", "round": 1, "tick": 1}
    return {**stamped, **written, "source": "model", **call(**keys)}


def test_costs_are_those_of_decisions_and_texts(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Each model has its requests, tokens and seconds; what asked no model costs nothing."""
    log = write_log(
        [
            make.decision("x", ["b", "c"], "b", **call(source="model")),
            make.decision("x", ["b", "c"], "b", **call(source="fallback", attempts=3)),
            make.decision("x", ["b", "c"], "b", **call(source="fallback", model=None, attempts=0)),
            make.decision("x", ["b", "c"], "b"),
            text(model="large", input_tokens=None, output_tokens=None),
            text(model="small"),
        ]
    )
    unknown = {"input_tokens": None, "output_tokens": None}
    assert costs(read_log(log)).to_dicts() == [
        {"model": "large", "answers": 1, "calls": 1, **unknown, "seconds": 0.25},
        {
            "model": "small",
            "answers": 3,
            "calls": 5,
            "input_tokens": 30,
            "output_tokens": 6,
            "seconds": 0.75,
        },
    ]
    by_what = costs(read_log(log), by=["what", "model"])
    assert by_what.select("what", "model", "answers").rows() == [
        ("decisions", "small", 2),
        ("texts", "large", 1),
        ("texts", "small", 1),
    ]
    with pytest.raises(InputError, match="cannot be grouped by colour: choose from model, host"):
        costs(read_log(log), by=["colour"])


def test_a_run_without_a_model_costs_nothing(folder: Path) -> None:
    """The table of a run that asked no model is empty, with the same columns."""
    table = costs(read_log(folder))
    assert (table.height, table.columns[:2]) == (0, ["model", "answers"])
