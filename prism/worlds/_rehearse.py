"""Rehearsing a world: does it make the same run in another process, and after a resume?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
from prism.worlds._rehearsing import GENERATOR, sets_in
from prism.worlds._world import World, kinds_of

_PROGRAM = "prism.worlds._rehearsing"
MOST_ROUNDS = 20

_FIRST, _SECOND, _RESUMED, _AGAIN, _BACKWARDS = "first", "second", "resumed", "again", "backwards"
_RUNS: Mapping[str, tuple[int, int]] = {
    _FIRST: (1, 0),
    _SECOND: (2, 5),
    _RESUMED: (1, 0),
    # only where the second differs: what then differs, too, does not come from a set of texts
    _AGAIN: (1, 17),
    # only of a together world: the last agent has its turn first
    _BACKWARDS: (1, 0),
}
"""The hash seed of each process, and how much it shifts the addresses of objects."""

_EXPLAINED = ("SimulationError", "DefinitionError", "AgentError", "FieldValueError")
_MENDS = {
    "clock": "use self.round and self.tick, which are the run's own time",
    "entropy": "use agent.random in steps, and self.random in the world",
    GENERATOR: "use agent.random in steps, and self.random in the world",
}


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

    The class is checked first. Then two processes, whose hash seeds differ, run it from the
    beginning to the end, and a third makes each round without having seen the others. Fields and
    logs must be the same. A ``together`` world is run once more, with the last agent's turn first,
    which must not change a field. Decisions are drawn by their weights; no model is asked.

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
        return _Rehearsal(options, Path(folder)).findings()


@dataclass(frozen=True, slots=True)
class _Difference:
    """The round and the place in which a run parts from the first, and what it failed with."""

    round: int
    where: str
    error: Mapping[str, Any] | None = None


class _Rehearsal:
    """The runs of a rehearsal, and what comes of comparing them.

    Args:
        options: The run.
        folder: Where the runs are written.
    """

    def __init__(self, options: WorldRun, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._is_together = options._class().together

    def findings(self) -> list[Finding]:
        """Run them, and return what was found."""
        self._run(_FIRST, _SECOND, _RESUMED, *[_BACKWARDS] * self._is_together)
        calls, changed = self._read(_FIRST, "notes") or ([], [])
        error = self._read(_FIRST, "error")
        if error is not None:
            return [_of_failure(error, calls)]

        by_process, by_resume = self._difference(_SECOND), self._difference(_RESUMED)
        if by_process is None and by_resume is None:
            by_turns = self._difference(_BACKWARDS) if self._is_together else None
            return [] if by_turns is None else [_of_turns(by_turns)]

        self._run(_AGAIN)
        by_time = self._difference(_AGAIN)
        found = []
        if by_time is not None:
            found += _of_calls(by_time, calls) or [self._of_order(by_time, is_of_texts=False)]
        elif by_process is not None:
            found.append(self._of_order(by_process, is_of_texts=True))
        if by_resume is not None and (by_time is None or changed):
            found += self._of_resume(by_resume, calls, changed)

        return found

    def _of_order(self, found: _Difference, *, is_of_texts: bool) -> Finding:
        problem = (
            "is not the same in processes of other hash seeds: the order of a set decides, or "
            "hash()"
            if is_of_texts
            else "is not the same in two processes of one hash seed: something depends on the "
            "addresses of objects (a set of agents, id), on a file or on the environment"
        )
        mend = "use a dict[..., None], a list or sorted(...), and read files into fields"
        mend += self._sets()

        return Finding(problem, mend, found.where, found.round)

    def _of_resume(
        self, found: _Difference, calls: Sequence[Sequence[str]], changed: Sequence[str]
    ) -> list[Finding]:
        told, where = "is not the same after a resume", found.where
        if found.error is not None:
            told = f"fails after a resume: {found.error['type']}: {found.error['message']}"
            where = found.error["place"] or ""

        draws = [
            (f"{name} draws from a generator that is not kept, so that", _MENDS[kind], place)
            for kind, name, place in calls
            if kind == GENERATOR
        ]
        outside = [
            (
                f"{name} changes in the course of the run and is not kept, so that",
                "declare a field with state(...), in the world or the agent",
                name.rpartition(" ")[2],
            )
            for name in changed
        ]
        if draws or outside:
            return [
                Finding(f"{problem} {where} {told}", mend, place, found.round)
                for problem, mend, place in draws or outside
            ]
        if unkept := self._unkept(found.round):
            problem = f"state(kept=False) is not the same after a resume, and {where} shows it"
            mend = "make it again in recall(event) from what the log tells, or keep it"
            return [Finding(problem, mend, name, found.round) for name in unkept]

        problem = (
            f"{told}, so something is kept outside the declared fields, recall misses it, or it "
            "depends on the addresses of objects (a set of agents, id)"
        )
        mend = "declare fields with state(...), and look for closures, files and caches"
        return [Finding(problem, mend + self._sets(), where, found.round)]

    def _sets(self) -> str:
        place = str(self._options.world).rpartition(":")[0]
        made = sets_in(code_of(self._options._class(), place).values())
        return f" (sets are made at {', '.join(made)})" if made else ""

    def _unkept(self, last: int) -> Sequence[str]:
        """Return the fields that `recall` has not made again in the rounds up to one."""
        found: dict[str, None] = {}
        for number in range(last + 1):
            one, other = (self._read(name, str(number)) for name in (_FIRST, _RESUMED))
            if other is not None:
                kept = other["unkept"]
                names = (name for name, value in one["unkept"].items() if kept.get(name) != value)
                found |= dict.fromkeys(names)

        return list(found)

    def _difference(self, name: str) -> _Difference | None:
        """Return where a run parts from the first; where turns are turned, only fields count."""
        for number in range(int(self._options.rounds or 1) + 1):
            one, other = (self._read(each, str(number)) for each in (_FIRST, name))
            if other is None:
                return _Difference(number, "the run", self._read(name, "error"))

            where = _other_field(one["fields"], other["fields"])
            if not where and name != _BACKWARDS:
                where = _other_line(one["lines"], other["lines"])
            if where:
                return _Difference(number, where)

        return None

    def _read(self, name: str, what: str) -> Any:
        path = self._folder / name / f"{what}.json"
        return orjson.loads(path.read_bytes()) if path.exists() else None

    def _run(self, *names: str) -> None:
        """Run processes beside each other, to the end of all."""
        started: list[subprocess.Popen[str]] = []
        try:
            started += map(self._start, names)
            for name, process in zip(names, started, strict=True):
                _, told = process.communicate()
                if process.returncode:
                    last = (told or "").strip().rpartition("\n")[2]
                    raise SimulationError(f"the rehearsal {name!r} could not be run: {last}")
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait()

    def _start(self, name: str) -> subprocess.Popen[str]:
        hash_seed, padding = _RUNS[name]
        out = self._folder / name
        out.mkdir()
        job = {"config": self._options.to_config(), "way": name, "padding": padding}
        (out / "job.json").write_bytes(orjson.dumps(job))
        paths = os.pathsep.join(each or os.getcwd() for each in sys.path)  # noqa: PTH109

        return subprocess.Popen(
            [sys.executable, "-m", _PROGRAM, str(out)],
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


def _other_field(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the first field in which two rounds differ; nothing if all are the same."""
    if one.keys() != other.keys():
        return "the population"

    return next((name for name, value in one.items() if other[name] != value), "")


def _other_line(one: Sequence[str], other: Sequence[str]) -> str:
    for line, others in zip(one, other, strict=False):
        if line != others:
            event = orjson.loads(line)
            by = f" of {event['agent_id']}" if "agent_id" in event else ""
            return f"the event {event['event']}{by}"

    return "" if len(one) == len(other) else "the number of events"


def _of_failure(error: Mapping[str, Any], calls: Sequence[Sequence[str]]) -> Finding:
    kind = "" if error["type"] in _EXPLAINED else f"{error['type']}: "
    draws = [place for kind, _, place in calls if kind == GENERATOR]
    # a draw is found when the tick has ended
    where = error["place"] or ("" if "draws from" not in error["message"] else ", ".join(draws))

    # what failed did so in the round after the last that was finished
    return Finding(f"{kind}{error['message']}", "", where, error["round"] + 1)


def _of_calls(found: _Difference, calls: Sequence[Sequence[str]]) -> list[Finding]:
    problem = "gives another answer in each process, and after a resume"
    return [
        Finding(f"{name} {problem}", _MENDS[kind], f"{at}, seen in {found.where}", found.round)
        for kind, name, at in calls
    ]


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
