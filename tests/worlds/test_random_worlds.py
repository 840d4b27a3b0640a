"""Worlds made at random resume, replay and permute to what they should."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from prism.runlog import RunLog, SimulatedClock
from prism.runs import RunFolder
from prism.worlds import Run
from tests.kit.random_worlds import ROUNDS, WAYS, RandomWorld, random_world

_MANY = 1000
LOUDER = ("louder@2",)


def random_run(
    random: RandomWorld, path: Path, order: Sequence[int] | None = None
) -> tuple[Run[Any], list[str]]:
    """Run a world; return the run and its log."""
    clock = SimulatedClock()
    with RunLog(path, clock) as log:
        agents = random.agents(range(random.number) if order is None else order)
        run = Run(random.world(), agents, logger=log.logger, clock=clock, seed=5, treatments=LOUDER)
        run.run()

    return run, path.read_text().splitlines()


def again(random: RandomWorld, path: Path, cut: int) -> bytes:
    """Carry a run out again over the beginning of its log, as a resume does."""
    folder = RunFolder(path.parent / f"cut_{cut}")
    folder.path.mkdir()
    (folder.path / "events.jsonl").write_bytes(path.read_bytes()[:cut])
    (folder.path / "run.json").write_text('{"prism": "", "schema": 1, "config": {}}')
    folder.is_new = False
    clock = SimulatedClock()
    with folder.writing({"config": {}}, clock) as logger:
        agents = random.agents(range(random.number))
        Run(random.world(), agents, logger=logger, clock=clock, seed=5, treatments=LOUDER).run()
    return (folder.path / "events.jsonl").read_bytes()


def condition(run: Run[Any]) -> dict[str, Any]:
    """Return what everybody has come to, by id."""
    return {
        each.agent_id: (
            each.state,
            each.ticks_in_state,
            each.met,
            each.notes,
            each.holds and each.holds.text,
            sorted(other.agent_id for other in each.neighbours),
            [(message.sender.agent_id, message.content) for message in each.inbox],
        )
        for each in run.agents
    }


def happened(log: Sequence[str]) -> list[Any]:
    """Return the events of a log that do not list the agents in their order."""
    listing = ("run.started", "agent.joined", "agents.pictured")
    return [
        event
        for event in map(json.loads, log)
        if event["event"] not in listing or "parent" in event
    ]


def check(seed: int, folder: Path, way: str | None = None) -> None:
    """Resume anywhere, and permute a world."""
    random = random_world(seed, way)
    path = folder / "straight.jsonl"
    run, log = random_run(random, path)
    whole, draw = path.read_bytes(), Random(seed)
    for cut in {draw.randrange(len(whole)) for _ in range(ROUNDS)}:
        assert again(random, path, cut) == whole, (seed, cut)
    order = draw.sample(range(random.number), random.number)
    other, permuted = random_run(random, folder / "permuted.jsonl", order)
    assert condition(other) == condition(run), seed
    # who joined, and the charts, are logged in the order of the list
    assert happened(permuted) == happened(log), seed


@pytest.mark.parametrize("way", sorted(set(WAYS)))
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(21)
def test_a_random_world_is_the_same_however_it_is_run(seed: int, way: str, tmp_path: Path) -> None:
    """Resumed anywhere, or with its list permuted: the same log."""
    check(seed, tmp_path, way)


@pytest.mark.long
def test_a_thousand_random_worlds_are_the_same_however_they_are_run(tmp_path: Path) -> None:
    """A thousand of them do."""
    for seed in range(100, 100 + _MANY):
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(seed, folder)
