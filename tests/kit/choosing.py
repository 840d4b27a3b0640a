"""Logs of decisions whose probabilities are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

OPTIONS = ("composing", "engaging_like", "scrolling")


def logged(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the log of decisions: each has ``agent_id``, ``group``, ``chosen``, and more."""
    stamp = {"timestamp": "2026-01-01T00:00:00Z"}
    yield {
        **stamp,
        "event": "run.started",
        "schema": 1,
        "chart": "social_media",
        "round": 0,
        "tick": 0,
    }
    decided = list(rows)
    for agent, group in dict.fromkeys((row["agent_id"], row["group"]) for row in decided):
        joined = {"event": "agent.joined", "agent_id": agent, "archetype": group, "state": "idle"}
        yield {**stamp, "round": 0, "tick": 0, **joined}

    for number, row in enumerate(decided, start=1):
        when = {**stamp, "round": 1, "tick": number, "agent_id": row["agent_id"]}
        yield {
            "event": "reasoner.decision",
            **when,
            "state": row.get("state", "evaluating"),
            "trigger": "decides",
            "options": list(row.get("options", OPTIONS)),
            "chosen": row["chosen"],
            "source": row.get("source", "model"),
            "context": {"post_id": "p"},
        }


def by_shares(counts: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    """Yield decisions of 10 agents a group in which each option is chosen so often."""
    for group, row in counts.items():
        chosen = [name for name, count in zip(OPTIONS, row, strict=True) for _ in range(count)]
        for place, name in enumerate(chosen):
            yield {"agent_id": f"{group}_{place % 10}", "group": group, "chosen": name}
