"""Decisions: sources, costs, entropy, latencies, and what texts cost."""

from collections import Counter
from collections.abc import Callable
from math import log2
from pathlib import Path
from statistics import mean, quantiles
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import read_log
from prism.errors import InputError
from tests.kit.tables import costs, decisions

WriteLog = Callable[..., Path]


def asked(make: SimpleNamespace, **keys: Any) -> dict[str, Any]:
    """Return a decision that a model was asked for."""
    call = {
        "latency": 0.5,
        "model": "m",
        "host": "h",
        "attempts": 1,
        "input_tokens": 10,
        "output_tokens": 2,
    }
    return make.decision("x", ["b", "c"], "b", **{"source": "model", **call, **keys})


def test_decisions_of_a_run_without_model(folder: Path, events: list[dict[str, Any]]) -> None:
    """Decisions of a policy are counted, have a mean entropy, and cost nothing."""
    found = [event for event in events if event["event"] == "reasoner.decision"]
    (row,) = decisions(read_log(folder)).iter_rows(named=True)
    assert (row["state"], row["model"]) == ("evaluating", None)
    assert (row["asked"], row["answered"], row["from_policy"], row["from_fallback"]) == (
        len(found),
    ) * 3 + (0,)
    assert row["fallback_share"] == 0.0
    bits = [-sum(p * log2(p) for p in event["probabilities"].values() if p) for event in found]
    assert row["entropy"] == pytest.approx(mean(bits), rel=1e-4)
    assert row["entropy_share"] == pytest.approx(mean(b / log2(3) for b in bits), rel=1e-4)
    costs = (
        "attempts",
        "input_tokens",
        "output_tokens",
        "latency_p50",
        "latency_p99",
        "latency_max",
    )
    assert [row[name] for name in costs] == [None] * 6


def test_decisions_are_counted_by_source(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Each source is counted; all but the fallbacks are answered."""
    sources = ["model", "model", "cache", "replay", "policy", "fallback"]
    lines = [asked(make, source=source) for source in sources]
    (row,) = decisions(read_log(write_log(lines))).iter_rows(named=True)
    assert {source: row[f"from_{source}"] for source in sources} == dict(Counter(sources))
    assert (row["asked"], row["answered"]) == (6, 5)
    assert row["fallback_share"] == pytest.approx(1 / 6)


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
    assert decisions(logs, by=["host", "model"]).select("host", "asked", "latency_max").rows() == [
        (None, 1, None),
        ("h", 2, 0.5),
        ("other", 1, 0.5),
    ]
    assert decisions(logs, by=["reason"]).select("reason", "latency_max").rows() == [
        (None, 0.5),
        ("timed out", 0.5),
    ]
    assert decisions(logs, by=["round"])["asked"].to_list() == [3, 1]
    assert decisions(logs, by=[]).select("asked").rows() == [(4,)]
    with pytest.raises(
        InputError, match="decisions_by cannot group by colour: use columns of events"
    ):
        decisions(logs, by=["colour"])


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "line\nfeed", "é😀", "{}", "\x00"])
@pytest.mark.sampled(6)
def test_options_of_any_name_have_an_entropy(
    name: str, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Names of options and contexts may have any characters."""
    keys = {"probabilities": {name: 0.5, "c": 0.5}, "context": {name: name}, "state": name}
    (row,) = decisions(
        read_log(write_log([make.decision("x", [name, "c"], name, **keys)]))
    ).iter_rows(named=True)
    assert (row["state"], row["entropy"]) == (name, 1.0)


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


def test_the_parts_of_latency_are_of_those_who_know_them(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Waiting and requests are described over the decisions that say them; older logs do not."""
    lines = [
        *(asked(make, queue_seconds=part, request_seconds=2 * part) for part in (1.0, 3.0, 5.0)),
        asked(make),
    ]
    (row,) = decisions(read_log(write_log(lines))).iter_rows(named=True)
    assert [row[f"queue_{name}"] for name in ("p50", "p90", "p99")] == pytest.approx([3, 4.6, 4.96])
    assert [row[f"request_{name}"] for name in ("p50", "p90")] == pytest.approx([6, 9.2])
    (row,) = decisions(read_log(write_log([asked(make)]))).iter_rows(named=True)
    assert (row["latency_p50"], row["queue_p50"], row["request_p99"]) == (0.5, None, None)


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ((1e-320, 1e308), 0.0),
        ((1e308, 1e308), 1.0),
        ((5e-324, 5e-324), 1.0),
        ((5e-324, 0), 0.0),
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


@pytest.mark.parametrize(
    "value",
    [None, {}, "free text", [0.5, 0.5], {"a": "much"}, {"a": -1.0, "b": 2.0}, {"a": 0, "b": 0}],
)
@pytest.mark.sampled(7)
def test_invalid_probabilities_have_no_entropy(
    value: Any, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Invalid probabilities are left out of the mean, and the decision is counted."""
    lines = [
        make.decision("x", ["b", "c"], "b", probabilities=value),
        make.decision("x", ["b", "c"], "b", probabilities={"b": 1, "c": 1}),
    ]
    (row,) = decisions(read_log(write_log(lines))).iter_rows(named=True)
    assert (row["asked"], row["entropy"], row["entropy_share"]) == (2, 1.0, 1.0)


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
    """Each model has its requests, tokens and seconds; a fallback costs, and is no answer."""
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
            "answers": 2,
            "calls": 5,
            "input_tokens": 30,
            "output_tokens": 6,
            "seconds": 0.75,
        },
    ]
    by_what = costs(read_log(log), by=["what", "model"])
    assert sorted(by_what.select("what", "model", "answers").rows()) == [
        ("decisions", "small", 1),
        ("texts", "large", 1),
        ("texts", "small", 1),
    ]
    with pytest.raises(InputError, match="costs_by cannot group by colour"):
        costs(read_log(log), by=["colour"])


def test_a_run_without_a_model_costs_nothing(folder: Path) -> None:
    """The table of a run that asked no model is empty, with the same columns."""
    table = costs(read_log(folder))
    assert (table.height, table.columns[:2]) == (0, ["model", "answers"])
