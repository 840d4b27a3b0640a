"""Runs of the same agents in lists of different orders."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from prism.runlog import RunLog, SimulatedClock
from prism.worlds import Run, World

AGENTS = 24
IDS = tuple(f"agent_{number}" for number in range(1, AGENTS + 1))
"""Ids in their natural order, which differs from that of the alphabet."""

ORDERS = tuple(tuple(Random(seed).sample(IDS, AGENTS)) for seed in range(3))
"""Three lists in random orders."""

_LISTING = ("run.started", "agent.joined", "agents.pictured")
"""Events that list the agents in their order."""


def permuted(
    world: World[Any], kind: Any, ids: Sequence[str], folder: Path, **options: Any
) -> tuple[list[Any], Any, dict[str, Any]]:
    """Run a world with a list of agents; return its log, its results and the fields by id."""
    clock, path = SimulatedClock(), folder / f"{len([*folder.iterdir()])}.jsonl"
    with RunLog(path, clock) as log:
        agents = [kind(agent_id=each) for each in ids]
        run: Run[Any] = Run(world, agents, logger=log.logger, clock=clock, seed=5, **options)
        results = run.run()

    events = [json.loads(line) for line in path.read_text().splitlines()]
    happened = [event for event in events if event["event"] not in _LISTING]
    names = [name for name in kind.fields if name not in ("agent_id", "name")]
    told = {each.agent_id: [each.state, *(getattr(each, n) for n in names)] for each in run.agents}

    return happened, results.to_dict(), told
