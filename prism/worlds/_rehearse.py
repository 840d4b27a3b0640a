"""Rehearsing a world: does it make the same run in other processes, and after a resume?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from prism.errors import DefinitionError, SimulationError
from prism.worlds._addresses import code_of
from prism.worlds._kinds import make_kinds, parts_of
from prism.worlds._loop import DEFAULT_AGENTS
from prism.worlds._options import WorldRun
from prism.worlds._outside import GENERATOR, sets_in
from prism.worlds._world import World, kinds_of

_PROGRAM = "prism.worlds._rehearsing"
_ERROR, _NOTES = "error.json", "notes.json"
MOST_ROUNDS = 20

_FIRST = "first"
_Run = tuple[int, int, str]
"""The hash seed of a process, how much it shifts the addresses of objects, and how it runs."""

_RUNS: Mapping[str, _Run] = {
    _FIRST: (1, 0, "straight"),
    "second": (2, 5, "straight"),
    "third": (3, 11, "straight"),
    "resumed": (1, 0, "resumed"),
}
_BACKWARDS = "backwards"
_TURNED: Mapping[str, _Run] = {_BACKWARDS: (1, 0, _BACKWARDS)}
"""One more of a ``together`` world, in which the last agent has its turn first."""

_AGAIN: Mapping[str, _Run] = {"again": (1, 17, "straight")}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes a world's run another one on resuming, or in another process.

    Args:
        problem: What is wrong.
        mend: What to do about it.
        where: The class and field that show it, or the file and line; empty if not known.
        round: The round in which it shows; 0 before the first, None if nothing was run.
    """

    problem: str
    mend: str = ""
    where: str = ""
    round: int | None = None

    def __str__(self) -> str:
        """Return it as a line."""
        at = "" if self.round is None else f"round {self.round}: " if self.round else "setup: "
        where = f"{self.where}: " if self.where else ""
        return f"{at}{where}{self.problem}" + (f": {self.mend}" if self.mend else "")


@dataclass(frozen=True, slots=True)
class _Difference:
    """Where two runs part.

    Args:
        round: The round.
        where: What differs first.
        error: What one of them failed with, if it did.
    """

    round: int
    where: str
    error: Mapping[str, Any] | None = None


def rehearse(
    world: str | type[World[Any]],
    agents: int | str | Path = DEFAULT_AGENTS,
    *,
    rounds: int | None = None,
    ticks: int | None = None,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    treatments: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> list[Finding]:
    """Run a world in fresh processes, straight and resumed at each round, and compare the runs.

    The class is checked first. Then three processes, whose hash seeds differ, run it from the
    beginning to the end, and one makes each round without having seen the others. Fields and logs
    must be the same. A ``together`` world is run once more, with the last agent's turn first, which
    must not change a field. Decisions are drawn by their weights; no model is asked.

    Args:
        world: The world's class, or where it is, as `WorldRun` takes it.
        agents: How many agents, or a file of them.
        rounds: Number of rounds; by default what the class says, 20 at most.
        ticks: Ticks in a round; by default what the class says.
        seed: Seed of every random number.
        parameters: The world's parameters by name.
        treatments: Treatments and their rounds; by default all that the class does not apply by
            itself, in the middle of the run.
        keep: Columns of the file of agents to keep.

    Returns:
        What was found; nothing if all runs are the same.

    Raises:
        InputError: If there is no such world, parameter, treatment or file.
        SimulationError: If a process could not be run to its end.
    """
    try:
        cls = WorldRun(world)._class()
        options = WorldRun(
            world,
            agents,
            rounds=min(cls.rounds, MOST_ROUNDS) if rounds is None else rounds,
            ticks_per_round=ticks,
            seed=seed,
            parameters=parameters or {},
            treatments=() if treatments is None else tuple(treatments),
            keep=tuple(keep),
        )
        parts = parts_of(cls)
        # a population of its own may be of other kinds; it is looked at when it is made
        if cls.populate is World.populate and (kinds := kinds_of(cls)):
            make_kinds(cls(**options.parameters), kinds, parts, None, lambda: 0.0)
    except DefinitionError as error:
        return [Finding(problem) for problem in str(error).split("; ")]

    if treatments is None:
        middle = (int(options.rounds or 1) + 1) // 2
        named = tuple(f"{name}@{middle}" for name, at in parts.treatments.items() if not at)
        options = replace(options, treatments=named)

    with TemporaryDirectory(prefix="prism-rehearsal-") as folder:
        return _Rehearsals(options, Path(folder)).findings()


def _where(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the first field in which two rounds differ, else the first line of the log."""
    fields = _fields(one, other)
    if fields:
        return fields

    lines = zip(one["lines"], other["lines"], strict=False)
    for line, others in lines:
        if line != others:
            event = orjson.loads(line)
            by = f" of {event['agent_id']}" if "agent_id" in event else ""
            return f"the event {event['event']}{by}"

    return "the number of events" if len(one["lines"]) != len(other["lines"]) else ""


def _fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    before, after = one["snapshot"], other["snapshot"]
    columns_of = zip(one["kinds"], before.get("kinds", ()), after.get("kinds", ()), strict=False)
    for kind, kept, found in columns_of:
        if kept["ids"] != found["ids"]:
            return "the population"
        columns = {"state": kept["states"], "inbox": kept["inboxes"], **kept["fields"]}
        others = {"state": found["states"], "inbox": found["inboxes"], **found["fields"]}
        for name, column in columns.items():
            places = [
                place
                for place, pair in enumerate(zip(column, others[name], strict=False))
                if pair[0] != pair[1]
            ]
            if places:
                return f"{kind}.{name} of {kept['ids'][places[0]]}"

    for name, value in before["world"].items():
        if after["world"].get(name) != value:
            return f"{name} of the world"

    differing = [key for key in before if before[key] != after.get(key)]

    return f"the world's {differing[0]}" if differing else ""


class _Rehearsals:
    """The runs of a rehearsal, and what comes of comparing them.

    Args:
        options: The run.
        folder: Where the runs are written.
    """

    def __init__(self, options: WorldRun, folder: Path) -> None:
        self._options = options
        self._folder = folder

    def findings(self) -> list[Finding]:
        """Run them, and return what was found."""
        is_together = self._options._class().together
        self._run({**_RUNS, **_TURNED} if is_together else _RUNS)
        error = self._error(_FIRST)
        if error is not None:
            return [_failure(error, self._notes())]

        by_order = self._difference("second") or self._difference("third")
        by_resume = self._difference("resumed")
        if by_order is None and by_resume is None:
            by_turns = self._difference(_BACKWARDS, _fields) if is_together else None
            return [] if by_turns is None else [_of_turns(by_turns)]

        # what differs even with the same hash seed does not come from the order of a set of texts
        self._run(_AGAIN)
        by_time = self._difference("again")
        notes = self._notes()
        found = []
        if by_time is not None:
            found += self._of_time(by_time, notes)
        elif by_order is not None:
            found.append(self._of_order(by_order))

        if by_resume is not None and (by_time is None or notes["changed"]):
            found += self._of_resume(by_resume, notes)

        return found

    def _of_time(self, found: _Difference, notes: Mapping[str, Any]) -> list[Finding]:
        calls = [
            Finding(
                f"{name} gives another answer in each process, and after a resume",
                _MENDS[kind],
                f"{place}, seen in {found.where}",
                found.round,
            )
            for kind, name, place in notes["calls"]
        ]

        return calls or [
            Finding(
                "is not the same in two processes of one hash seed: something depends on the "
                "addresses of objects (a set of agents, id), on a file or on the environment",
                "keep agents in a list or dict, and what is read in a field" + self._sets(),
                found.where,
                found.round,
            )
        ]

    def _of_order(self, found: _Difference) -> Finding:
        return Finding(
            "is not the same in processes of other hash seeds: the order of a set decides, or "
            "hash()",
            "use a dict[..., None] or a list, or sorted(...)" + self._sets(),
            found.where,
            found.round,
        )

    def _of_resume(self, found: _Difference, notes: Mapping[str, Any]) -> list[Finding]:
        if found.error is not None:
            told = f"fails after a resume: {found.error['type']}: {found.error['message']}"
            where = found.error["place"] or ""
        else:
            told, where = "is not the same after a resume", found.where

        outside = [
            Finding(
                f"{name} changes in the course of the run and is not kept, so that {where} {told}",
                "declare a field with state(...), in the world or the agent",
                name.rpartition(" ")[2],
                found.round,
            )
            for name in notes["changed"]
        ]
        draws = [
            Finding(
                f"{name} draws from a generator that is not kept, so that {where} {told}",
                _MENDS[GENERATOR],
                place,
                found.round,
            )
            for kind, name, place in notes["calls"]
            if kind == GENERATOR
        ]

        return (
            draws
            or outside
            or self._unkept(found)
            or [
                Finding(
                    f"{told}, so something is kept outside the declared fields, or not made again "
                    "by recall",
                    "declare fields with state(...), and look for closures, files and caches",
                    where,
                    found.round,
                )
            ]
        )

    def _unkept(self, found: _Difference) -> list[Finding]:
        """Return the fields that `recall` has not made again before two runs part."""
        pairs = (
            [self._folder / name / f"{number}.json" for name in (_FIRST, "resumed")]
            for number in range(found.round + 1)
        )
        names = dict.fromkeys(
            name
            for one, other in pairs
            if other.exists()
            for name in _differing(_read(one)["unkept"], _read(other)["unkept"])
        )

        return [
            Finding(
                f"state(kept=False) is not the same after a resume, and {found.where} shows it",
                "make it again in recall(event) from what the log tells, or keep it",
                name,
                found.round,
            )
            for name in names
        ]

    def _notes(self) -> Any:
        path = self._folder / _FIRST / _NOTES
        return _read(path) if path.exists() else {"calls": [], "changed": []}

    def _sets(self) -> str:
        place = str(self._options.world).rpartition(":")[0]
        made = sets_in(code_of(self._options._class(), place).values())
        return f" (sets are made at {', '.join(made)})" if made else ""

    def _difference(
        self, name: str, differing: Callable[[Any, Any], str] = _where
    ) -> _Difference | None:
        error = self._error(name)
        for number in range(int(self._options.rounds or 1) + 1):
            one, other = (self._folder / each / f"{number}.json" for each in (_FIRST, name))
            if not other.exists():
                return _Difference(number, "the run", error)
            if one.read_bytes() != other.read_bytes():
                where = differing(_read(one), _read(other))
                if where:
                    return _Difference(number, where)

        return None

    def _error(self, name: str) -> Mapping[str, Any] | None:
        path = self._folder / name / _ERROR
        return _read(path) if path.exists() else None

    def _run(self, runs: Mapping[str, _Run]) -> None:
        """Run processes beside each other, to the end of all."""
        started: list[subprocess.Popen[str]] = []
        try:
            started += [self._start(name, *how) for name, how in runs.items()]
            for name, process in zip(runs, started, strict=True):
                _, told = process.communicate()
                if process.returncode not in (0, 3):
                    last = (told or "").strip().rpartition("\n")[2]
                    raise SimulationError(f"the rehearsal {name!r} could not be run: {last}")
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait()

    def _start(self, name: str, hash_seed: int, padding: int, way: str) -> subprocess.Popen[str]:
        out = self._folder / name
        out.mkdir()
        config = self._options.to_config()
        job = out / "job.json"
        job.write_bytes(
            orjson.dumps({"config": config, "out": str(out), "way": way, "padding": padding})
        )
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": os.pathsep.join(each or os.getcwd() for each in sys.path),  # noqa: PTH109
        }

        return subprocess.Popen(
            [sys.executable, "-m", _PROGRAM, str(job)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


_EXPLAINED = ("SimulationError", "DefinitionError", "AgentError", "FieldValueError")
_MENDS = {
    "clock": "use self.round and self.tick, which are the run's own time",
    "entropy": "use agent.random in steps, and self.random in the world",
    GENERATOR: "use agent.random in steps, and self.random in the world",
}


def _failure(error: Mapping[str, Any], notes: Mapping[str, Any]) -> Finding:
    kind = "" if error["type"] in _EXPLAINED else f"{error['type']}: "
    draws = [place for kind, _, place in notes["calls"] if kind == GENERATOR]
    # a draw is found when the tick has ended
    where = error["place"] or ("" if "draws from" not in error["message"] else ", ".join(draws))

    # what failed did so in the round after the last that was finished
    return Finding(f"{kind}{error['message']}", "", where, error["round"] + 1)


def _of_turns(found: _Difference) -> Finding:
    told = "is not the same"
    if found.error is not None:
        told = f"fails with {found.error['type']}: {found.error['message']},"

    return Finding(
        f"{told} when the last agent has its turn first, though in a together world the "
        "order of agents decides nothing",
        "let a step change its own agent alone, send messages, or leave it to tick_ends",
        found.where,
        found.round,
    )


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [name for name, value in one.items() if other.get(name) != value]


def _read(path: Path) -> Any:
    return orjson.loads(path.read_bytes())
