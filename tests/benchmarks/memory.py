"""What a full history costs an agent, by tracemalloc."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence

from tests.benchmarks.fire import DEPTH, MixinAgent, two_state_chart
from tests.benchmarks.harness import Claim, Effort, Measurement, Table

LIMIT = 5_000.0
STEADY = 500
POST_IDS = [f"post_{number}" for number in range(STEADY)]


NameOf = Callable[[int, int], str]
"""``name_of(agent number, fire number)``: the post id of one fire."""


def run(effort: Effort) -> Sequence[Table]:
    """Measure what fires add to agents that have their empty history already."""
    ways: list[tuple[int, str, NameOf]] = [
        (DEPTH, "ids of existing posts", lambda _, fire: POST_IDS[fire]),
        (STEADY, "ids of existing posts", lambda _, fire: POST_IDS[fire]),
        # the same fire of another agent makes an equal one
        (DEPTH, "ids made for each fire", lambda _, fire: f"post_{fire}"),
        (STEADY, "ids made for each fire", lambda _, fire: f"post_{fire}"),
        (STEADY, "ids no other agent has", lambda agent, fire: f"agent_{agent}_post_{fire}"),
    ]
    found = [
        Measurement(f"{fires} fires, {name}", (_added(effort.agents, fires, name_of),))
        for fires, name, name_of in ways
    ]
    claims = [
        Claim(each.name, each.best, each.median, "bytes", at_most=LIMIT) for each in found[:4]
    ]
    title = f"memory, fifty entries with {{'post_id': ...}}, mean of {effort.agents:,} agents"
    return [Table(title, "bytes", found[0].name, found, claims)]


def _added(count: int, fires: int, name_of: NameOf) -> float:
    """Return the bytes that fires add to an agent. Every fire has a context dict of its own."""
    fire = two_state_chart().fire
    tracemalloc.start()
    try:
        agents = [MixinAgent() for _ in range(count)]
        before = tracemalloc.get_traced_memory()[0]
        for number, agent in enumerate(agents):
            for turn in range(fires):
                fire(agent, "go", {"post_id": name_of(number, turn)})
            if len(agent.state_history) != DEPTH:
                raise RuntimeError("an agent did not keep its history, so its size says nothing")
        return (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
