"""What a full history costs an agent, by tracemalloc."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

from tests.benchmarks.contenders import DEPTH, MixinAgent, two_state_chart
from tests.benchmarks.harness import Claim, Effort, Measurement, Table

LIMIT = 5_000.0
STEADY = 500
POST_IDS = [f"post_{number}" for number in range(STEADY)]

SHARED, FRESH, OWN = "ids of existing posts", "ids made for each fire", "ids no other agent has"

Fire = Callable[[Any, str, Any], object]
NameOf = Callable[[int, int], str]
"""``name_of(agent number, fire number)``: the post id of one fire."""


def run(effort: Effort) -> Sequence[Table]:
    """Measure what fires add to agents that have their empty history already."""
    sizes = {
        f"{DEPTH} fires, {SHARED}": _prism(effort, DEPTH, _shared),
        f"{STEADY} fires, {SHARED}": _prism(effort, STEADY, _shared),
        f"{DEPTH} fires, {FRESH}": _prism(effort, DEPTH, _fresh),
        f"{STEADY} fires, {FRESH}": _prism(effort, STEADY, _fresh),
        f"{STEADY} fires, {OWN}": _prism(effort, STEADY, _own),
    }
    found = [Measurement(name, (size,)) for name, size in sizes.items()]
    title = f"memory, fifty entries with {{'post_id': ...}}, mean of {effort.agents:,} agents"
    return [Table(title, "bytes", found[0].name, found, [_claim(line) for line in found[:4]])]


def _claim(line: Measurement) -> Claim:
    return Claim(line.name, line.best, line.median, "bytes", at_most=LIMIT)


def _prism(effort: Effort, fires: int, name_of: NameOf) -> float:
    return _added(MixinAgent, two_state_chart().fire, effort.agents, fires, name_of)


def _added(make: Callable[[], Any], fire: Fire, count: int, fires: int, name_of: NameOf) -> float:
    """Return the bytes that fires add to an agent. Every fire has a context dict of its own."""

    def fire_all(agents: Sequence[Any]) -> None:
        for number, agent in enumerate(agents):
            for turn in range(fires):
                fire(agent, "go", {"post_id": name_of(number, turn)})
            if len(agent.state_history) != DEPTH:
                raise RuntimeError("an agent did not keep its history, so its size says nothing")

    made, full = _traced(make, count, fire_all)
    return (full - made) / count


def _traced(
    make: Callable[[], Any], count: int, work: Callable[[Sequence[Any]], object]
) -> tuple[int, int]:
    """Return the bytes in use once the objects are made, and after the work on them."""
    tracemalloc.start()
    try:
        made = [make() for _ in range(count)]
        before = tracemalloc.get_traced_memory()[0]
        work(made)
        return before, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def _shared(agent: int, fire: int) -> str:
    return POST_IDS[fire]


def _fresh(agent: int, fire: int) -> str:
    """Make a new string; the same fire of another agent makes an equal one."""
    return f"post_{fire}"


def _own(agent: int, fire: int) -> str:
    return f"agent_{agent}_post_{fire}"
