"""Worlds made at random resume, replay and permute to what they should."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from prism.runlog import ReplayReasoner, RunLog, SimulatedClock
from prism.worlds import Run
from tests.kit.random_worlds import ROUNDS, WAYS, RandomWorld, random_world

_MANY = 1000


def made(
    given: RandomWorld, path: Path, order: Sequence[int] | None = None, **options: Any
) -> tuple[Run[Any], list[str], list[Any]]:
    """Run a world; return the run, its log, and a snapshot of every round with its lines."""
    clock = SimulatedClock()
    kept: list[Any] = []
    with RunLog(path, clock) as log:
        agents = given.agents(range(given.number) if order is None else order)
        run = Run(given.world(), agents, logger=log.logger, clock=clock, seed=5, **options)

        def keep(_: Any) -> None:
            log.flush()
            kept.append((json.dumps(run.loop.snapshot()), path.read_text().splitlines()))

        run.run(keep)

    return run, path.read_text().splitlines(), kept


def resumed(given: RandomWorld, path: Path, kept: Any) -> list[str]:
    """Go on from a snapshot in a new run; return the whole log."""
    snapshot, lines = kept
    clock = SimulatedClock()
    with RunLog(path, clock) as log:
        agents = given.agents(range(given.number))
        run = Run(given.world(), agents, logger=log.logger, clock=clock, seed=5)
        run.loop.restore(json.loads(snapshot), map(json.loads, lines))
        run.run()

    return [*lines, *path.read_text().splitlines()]


def told(run: Run[Any]) -> dict[str, Any]:
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
    return [event for event in map(json.loads, log) if event["event"] not in listing]


def check(seed: int, folder: Path, way: str | None = None) -> None:
    """Resume after each round, replay, and permute a world."""
    given = random_world(seed, way)
    run, log, kept = made(given, folder / "straight.jsonl")
    for number in range(ROUNDS - 1):
        assert resumed(given, folder / f"{number}.jsonl", kept[number]) == log, (seed, number)

    replay = ReplayReasoner(folder / "straight.jsonl", verbatim=True)
    assert made(given, folder / "replayed.jsonl", reasoner=replay)[1] == log, seed
    if given.way == "listed":
        return

    order = Random(seed).sample(range(given.number), given.number)
    other, permuted, _ = made(given, folder / "permuted.jsonl", order)
    assert told(other) == told(run), seed
    # who joined, and the charts, are told in the order of the list
    assert happened(permuted) == happened(log), seed


@pytest.mark.parametrize("way", sorted(set(WAYS)))
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(21)
def test_a_random_world_is_the_same_however_it_is_run(seed: int, way: str, tmp_path: Path) -> None:
    """Resumed after any round, replayed, or with its list permuted: the same log."""
    check(seed, tmp_path, way)


@pytest.mark.long
def test_a_thousand_random_worlds_are_the_same_however_they_are_run(tmp_path: Path) -> None:
    """A thousand of them do."""
    for seed in range(100, 100 + _MANY):
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(seed, folder)
