"""Decisions: sources, costs, entropy, latencies, and what texts cost."""

from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import read_log
from prism.errors import InputError
from tests.kit.tables import costs, decisions

WriteLog = Callable[..., Path]


def call(**keys: Any) -> dict[str, Any]:
    """Return what the event of an answer says of its cost."""
    known = {"latency": 0.5, "request_seconds": 0.25, "host": "h", "model": "small"}
    return {**known, "attempts": 1, "input_tokens": 10, "output_tokens": 2, **keys}


def asked(make: SimpleNamespace, **keys: Any) -> dict[str, Any]:
    """Return a decision that a model was asked for."""
    return make.decision("x", ["b", "c"], "b", **call(**{"source": "model", **keys}))


def test_what_stood_first_is_told_from_how_the_list_was_rotated(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """With a rotation of 1, the second option stood first."""
    for rotation, share in ((None, 1), (0, 1), (1, 0)):
        log = read_log(write_log([asked(make, rotation=rotation)]))
        assert decisions(log)["chosen_first"].to_list() == [share]


def test_costs_are_added_up_and_latencies_described(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Requests and tokens are summed without unknown ones; percentiles are interpolated."""
    latencies = [number / 10 for number in range(1, 102)]
    lines = [asked(make, latency=latency) for latency in latencies]
    lines += [asked(make, latency=1, attempts=3, input_tokens=None, output_tokens=None)]
    (row,) = decisions(read_log(write_log(lines))).iter_rows(named=True)
    assert (row["attempts"], row["input_tokens"], row["output_tokens"]) == (104, 1010, 202)
    cuts = quantiles([*latencies, 1.0], n=100, method="inclusive")
    assert [row[f"latency_p{share}"] for share in (50, 90, 99)] == [
        pytest.approx(cuts[share - 1]) for share in (50, 90, 99)
    ]
    assert row["latency_max"] == pytest.approx(10.1)


def test_decisions_are_grouped_by_names(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Decisions are grouped by any of the names, null included; another name is refused."""
    lines = [
        asked(make, source="fallback", reason="timed out"),
        asked(make, source="fallback", reason="timed out", round=2),
        asked(make, host="other"),
        make.decision("x", ["b", "c"], "c"),
    ]
    logs = read_log(write_log(lines))
    by_reason = decisions(logs, by=["source", "reason"])
    assert by_reason.select("source", "reason", "asked").rows() == [
        ("fallback", "timed out", 2),
        ("model", None, 1),
        ("policy", None, 1),
    ]
    by_host = decisions(logs, by=["host", "model"]).select("host", "asked", "latency_max")
    assert by_host.rows() == [(None, 1, None), ("h", 2, 0.5), ("other", 1, 0.5)]
    assert decisions(logs, by=["round"])["asked"].to_list() == [3, 1]
    assert decisions(logs, by=[]).select("asked").rows() == [(4,)]
    with pytest.raises(
        InputError, match="decisions_by cannot group by colour: use columns of events"
    ):
        decisions(logs, by=["colour"])


def test_latency_excludes_fallbacks_without_a_request(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Latency counts fallbacks after a request and shared answers, not fallbacks without one."""
    lines = [
        *(
            asked(make, source="fallback", reason="budget spent", latency=0.0, attempts=0)
            for _ in range(5)
        ),
        asked(make, source="fallback", reason="timed out", latency=30.0, attempts=2),
        asked(make, latency=10.0),
        asked(make, latency=20.0, attempts=0),
    ]
    (row,) = decisions(read_log(write_log(lines))).iter_rows(named=True)
    assert (row["asked"], row["from_fallback"], row["latency_p50"], row["latency_max"]) == (
        8,
        6,
        20.0,
        30.0,
    )
    bare = [{key: value for key, value in line.items() if key != "attempts"} for line in lines[5:7]]
    (row,) = decisions(read_log(write_log(bare))).iter_rows(named=True)
    assert row["latency_p50"] == 20.0


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ((1e-320, 1e308), 0.0),
        ((5e-324, 5e-324), 1.0),
        ((2**64 - 1, 1), 0.0),
        ((3, 1), 0.8112781244591328),
    ],
)
def test_entropy_is_of_scaled_probabilities(
    values: tuple[float, ...], bits: float, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Weights are scaled to 1; neither a very small nor a very large one disturbs the entropy."""
    weights = dict(zip("ab", values, strict=True))
    log = write_log([make.decision("x", ["a", "b"], "a", probabilities=weights)])
    (row,) = decisions(read_log(log)).iter_rows(named=True)
    assert row["entropy"] == row["entropy_share"] == pytest.approx(bits)


def text(**keys: Any) -> dict[str, Any]:
    """Return the event of a text."""
    written = {"agent_id": "ada", "key": "k", "prompt_hash": "0", "text": "Hi.", "reason": None}
    stamped = {"event": "text.written", "timestamp": "2026-01-01T00:00:00Z", "round": 1, "tick": 1}
    return {**stamped, **written, "source": "model", **call(**keys)}


def test_costs_are_those_of_decisions_and_texts(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Each model has its requests, tokens and seconds; a fallback costs, and is no answer."""
    log = write_log(
        [
            make.decision("x", ["b", "c"], "b", **call(source="model")),
            make.decision("x", ["b", "c"], "b", **call(source="fallback", attempts=3)),
            make.decision("x", ["b", "c"], "b", **call(source="fallback", model=None, attempts=0)),
            make.decision("x", ["b", "c"], "b"),
            text(model="large", input_tokens=None, output_tokens=None),
            text(model="large", source="failed", input_tokens=None, output_tokens=None),
            text(model="small"),
        ]
    )
    found = costs(read_log(log))
    assert found.columns == [
        "model",
        "answers",
        "calls",
        "input_tokens",
        "output_tokens",
        "seconds",
    ]
    assert found.rows() == [("large", 1, 2, None, None, 0.5), ("small", 2, 5, 30, 6, 0.75)]
    by_what = costs(read_log(log), by=["what", "model"]).select("what", "model", "answers")
    rows = [("decisions", "small", 1), ("texts", "large", 1), ("texts", "small", 1)]
    assert sorted(by_what.rows()) == rows
    with pytest.raises(InputError, match="costs_by cannot group by colour"):
        costs(read_log(log), by=["colour"])
