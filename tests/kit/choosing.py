"""Logs of decisions whose probabilities are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp
from random import Random
from typing import Any

OPTIONS = ("composing", "engaging_like", "scrolling")

LURKER = {"composing": 0.1, "engaging_like": 0.3, "scrolling": 0.6}
CONTRIBUTOR = {"composing": 0.5, "engaging_like": 0.3, "scrolling": 0.2}

INTERCEPTS = {"lurker": (-2.0, -1.0), "contributor": (0.5, 0.2)}
SLOPES = (2.0, 1.0)
"""Coefficients of composing and liking, where scrolling is the base."""


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
        if "relevance" in row:
            yield {"event": "post.weighed", **when, "post_id": "p", "relevance": row["relevance"]}

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


def drawn(
    shares: Mapping[str, Mapping[str, float]], each: int, seed: int, agents: int = 50
) -> Iterator[dict[str, Any]]:
    """Yield decisions that are drawn with the shares of each group, so many for each."""
    random = Random(seed)
    for group, chances in shares.items():
        for place in range(each):
            chosen = random.choices(list(chances), list(chances.values()))[0]
            yield {"agent_id": f"{group}_{place % agents}", "group": group, "chosen": chosen}


def drawn_by_logit(each: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield decisions that are drawn by a logit of `INTERCEPTS` and `SLOPES`."""
    random = Random(seed)
    for group, intercepts in INTERCEPTS.items():
        for place in range(each):
            relevance = round(random.random(), 3)
            utilities = [a + b * relevance for a, b in zip(intercepts, SLOPES, strict=True)]
            weights = [*map(exp, utilities), 1.0]
            yield {
                "agent_id": f"{group}_{place % 50}",
                "group": group,
                "chosen": random.choices(OPTIONS, weights)[0],
                "relevance": relevance,
            }
