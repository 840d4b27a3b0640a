"""Tables that only a report needs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from prism.analysis import Log, read_log
from prism.report._facts.counts import agent_table, latency_counts
from tests.kit.tables import agents


def test_agents_are_those_of_the_log(logs: Log, events: list[dict[str, Any]]) -> None:
    """Each agent has its name, last state, transitions and decisions, as counted plainly."""
    table = agent_table(logs)
    moves = Counter(
        event["agent_id"] for event in events if event["event"] == "statechart.transition"
    )
    asked = Counter(event["agent_id"] for event in events if event["event"] == "reasoner.decision")
    last = {
        event["agent_id"]: event["to_state"]
        for event in events
        if event["event"] == "statechart.transition"
    }
    joined = {event["agent_id"]: event for event in events if event["event"] == "agent.joined"}
    assert table.height == len(joined)
    for row in table.iter_rows(named=True):
        agent = row["agent_id"]
        assert (row["name"], row["archetype"]) == (
            joined[agent]["display_name"],
            joined[agent]["archetype"],
        )
        assert (row["transitions"], row["decisions"]) == (moves[agent], asked[agent])
        assert row["state"] == last.get(agent, joined[agent]["state"])
    acts = ["posts", "replies", "reshares", "likes", "likes_received"]
    assert_frame_equal(table.select(acts), agents(logs).select(acts))


@pytest.mark.parametrize(
    ("latency", "step"),
    [
        (1.0, 0),
        (0.999, -1),
        (1.26, 1),
        (0.1, -10),
        (0.001, -30),
        (10.0, 10),
        (3.2, 5),
        (0.0, -40),
        (1e-9, -40),
    ],
)
def test_latencies_are_counted_in_tenths_of_a_decade(
    write_log: Callable[..., Path], make: Any, latency: float, step: int
) -> None:
    """A latency counts at the tenth of a power of ten at or below it, and none below 0.1 ms."""
    log = write_log([make.decision("ada", ["a", "b"], "a", source="model", latency=latency)])
    assert latency_counts(read_log(log)).rows() == [("model", step, 1)]


def test_latencies_exclude_fallbacks_without_a_request(
    write_log: Callable[..., Path], make: Any
) -> None:
    """A fallback without a request is not counted, as in the percentiles of `decisions`."""
    keys = {"source": "fallback", "latency": 1.0}
    log = write_log(
        [make.decision("ada", ["a"], "a", attempts=attempts, **keys) for attempts in (0, 1, 2)]
    )
    assert latency_counts(read_log(log)).rows() == [("fallback", 0, 2)]


def test_decisions_without_latency_are_not_counted(logs: Log) -> None:
    """If no model was asked there is no latency."""
    assert latency_counts(logs).is_empty()
