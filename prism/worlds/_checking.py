"""Checking a world: it runs several times in fresh processes, which must write the same log."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import orjson

from prism.errors import InputError
from prism.randomness import RandomStream
from prism.runlog import RunLog, SimulatedClock
from prism.statechart.states import state_text
from prism.worlds._addresses import address_of, load_world
from prism.worlds._agent import Agent
from prism.worlds._agent_set import NOBODY, AgentSet
from prism.worlds._marks import TREATMENT, marked
from prism.worlds._run import Run

MOST_ROUNDS = 20
"""Most rounds that are checked by default."""

_LISTING = ("run.started", "agent.joined", "agents.pictured", "agents.measured")
"""Events that list the agents in their order."""

_MOST_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference between two runs of a world that should be the same.

    Args:
        cause: What was different about the second run: ``hash seed`` or ``order of agents``.
        line: The number of the first line that differs.
        first: The line of the first run.
        second: The line of the second run.
    """

    cause: str
    line: int
    first: str
    second: str

    def __str__(self) -> str:
        """Return the finding in words."""
        cure = (
            "sort sets before you draw from them or loop over them"
            if self.cause == "hash seed"
            else "draw from agent.random, or set  order = 'listed'  if the order matters"
        )
        return (
            f"with another {self.cause}, line {self.line} of the log differs: {cure}\n"
            f"  {self.first}\n  {self.second}"
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking a world.

    Args:
        findings: Differences between runs.
        notes: What was silent: events that did nothing, and states that nobody entered.
    """

    findings: Sequence[Finding]
    notes: Sequence[str]


def check_world(
    world: str,
    agents: str | int = 100,
    *,
    rounds: int | None = None,
    ticks: int | None = None,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    treatments: Sequence[str] | None = None,
) -> Checked:
    """Run a world with two hash seeds and with its agents in another order, and compare the logs.

    Args:
        world: Its address or short name.
        agents: Their number, or a table of them.
        rounds: Number of rounds; by default the world's own, but at most 20.
        ticks: Ticks in a round; by default the world's own.
        seed: Seed of every random number.
        parameters: Parameters by name.
        treatments: Treatments as for a run; by default each of the world's once.

    Raises:
        InputError: If an argument is wrong, or the world cannot run.
    """
    address = address_of(world)
    cls = load_world(address)
    rounds = min(cls.rounds, MOST_ROUNDS) if rounds is None else rounds
    if treatments is None:
        own = [name for name, number in marked(cls, TREATMENT).items() if not number]
        treatments = [f"{name}@{1 + number % rounds}" for number, name in enumerate(own)]
    options = {
        "world": address,
        "agents": agents if isinstance(agents, int) else str(agents),
        "rounds": rounds,
        "ticks": ticks,
        "seed": seed,
        "parameters": dict(parameters or {}),
        "treatments": list(treatments),
    }
    # refuse what is wrong here, where the message is whole
    _run_of(options, None, None)
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            name: _start(Path(folder) / f"{name}.jsonl", options, hash_seed, is_permuted)
            for name, hash_seed, is_permuted in (
                *(("first", 1, False), ("hash seed", 2, False), ("order of agents", 1, True)),
            )
        }
        notes: list[str] = []
        for name, process in runs.items():
            _, error = process.communicate()
            if process.returncode:
                problem = error.decode().strip().splitlines()[-1:] or ["it failed"]
                raise InputError(f"cannot be run: {problem[0]}", field="world")
            if name == "first":
                notes = json.loads((Path(folder) / "first.notes").read_text())
        first = _lines(Path(folder) / "first.jsonl")
        found = _compared("hash seed", first, _lines(Path(folder) / "hash seed.jsonl"))
        if not found and cls.order != "listed":
            other = _lines(Path(folder) / "order of agents.jsonl")
            found = _compared("order of agents", _unlisted(first), _unlisted(other))

    return Checked(found, notes)


def _start(
    path: Path, options: Mapping[str, Any], hash_seed: int, is_permuted: bool
) -> Popen[bytes]:
    given = json.dumps({"path": str(path), "is_permuted": is_permuted, "options": options})
    command = [sys.executable, "-c", "from prism.worlds._checking import child; child()", given]
    paths = os.pathsep.join(each or os.getcwd() for each in sys.path)  # noqa: PTH109
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": paths}
    return Popen(command, stdout=PIPE, stderr=PIPE, env=environment)


class _Unconnected:
    """The neighbours of agents without a network; notes which kinds of agents read them."""

    def __init__(self) -> None:
        self.kinds: dict[str, None] = {}

    def __get__(self, agent: Any, cls: type) -> AgentSet[Any]:
        if agent is not None:
            self.kinds[cls.__name__] = None
        return NOBODY


def child() -> None:
    """Carry out one of the runs, in a process of its own, and note what was silent."""
    given = json.loads(sys.argv[1])
    clock, unconnected = SimulatedClock(), _Unconnected()
    setattr(Agent, "neighbours", unconnected)  # noqa: B010 - to a type checker it is a set
    with RunLog(given["path"], clock) as log:
        run = _run_of(given["options"], log.logger, clock)
        if given["is_permuted"]:
            # after setup, which may connect and place agents by their order
            population = run.loop.turns.population
            population.reorder(RandomStream(1, "order").shuffled(population.everybody()))
        run.run()
    notes = [*_silent(run, Path(given["path"]))]
    if run.loop.world._network is None:
        notes += [
            f"{kind} reads its neighbours, but the world has no network: set one in setup"
            for kind in unconnected.kinds
        ]
    # not to the standard output, to which the world itself may print
    Path(given["path"]).with_suffix(".notes").write_text(json.dumps(notes))


def _run_of(options: Mapping[str, Any], logger: Any, clock: Any) -> Run[Any]:
    return Run(**options, logger=logger, clock=clock)


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def _unlisted(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines of a log that do not list the agents."""
    return [
        line
        for line in lines
        if not line.startswith(tuple(f'{{"event":"{name}"'.encode() for name in _LISTING))
    ]


def _compared(cause: str, first: Sequence[bytes], second: Sequence[bytes]) -> list[Finding]:
    longest = max(len(first), len(second))
    for number in range(longest):
        one, other = (lines[number] if number < len(lines) else b"" for lines in (first, second))
        if one != other:
            shown = [line.decode("utf-8", "replace")[:_MOST_SHOWN] for line in (one, other)]
            return [Finding(cause, number + 1, *shown)]
    return []


def _silent(run: Run[Any], log: Path) -> Iterator[str]:
    """Yield events that did nothing or were never fired, and states that nobody entered."""
    turns = run.loop.turns
    for (trigger, state), number in turns.missed.most_common():
        if not turns.made[trigger]:
            yield (
                f"{trigger!r} was fired {number:,} times in {state!r}, where it does nothing, and "
                "never made a transition"
            )
    entered, fired = set(turns.population.begun), {trigger for trigger, _ in turns.missed}
    for line in _lines(log):
        event = orjson.loads(line)
        if event["event"] == "statechart.transition":
            entered.update(str(event["to_state"]).split("+"))
            fired.add(event["trigger"])
    for definition in turns.population.definitions:
        triggers = dict.fromkeys(each.trigger for each in definition.transitions)
        for trigger in triggers:
            if isinstance(trigger, str) and trigger not in fired:
                yield f"{trigger!r} was never fired"
        for state in definition.states:
            if state_text(state) not in entered:
                yield f"nobody was ever in {state_text(state)!r}"
