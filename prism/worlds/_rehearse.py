"""Rehearsing a world: does it make the same run in another process, and after a resume?"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from math import isclose
from operator import eq
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson

from prism._faults import place_of
from prism.errors import DefinitionError, SimulationError
from prism.worlds._addresses import code_of
from prism.worlds._host import NAMES_THE_LINE
from prism.worlds._kinds import make_kinds, parts_of
from prism.worlds._rehearsing import CLOCK, ENTROPY, GENERATOR, sets_in
from prism.worlds._run import Run
from prism.worlds._world import DEFAULT_AGENTS, World, kinds_of

_PROGRAM = "prism.worlds._rehearsing"
MOST_ROUNDS = 20

_FIRST, _SECOND, _RESUMED, _BACKWARDS = "first", "second", "resumed", "backwards"

_EXPLAINED = ("SimulationError", "DefinitionError", "AgentError", "FieldValueError")
_STREAMS = "use agent.random in steps, and self.random in the world"
_MENDS = {
    CLOCK: "use self.round and self.tick, which are the run's own time",
    ENTROPY: _STREAMS,
    GENERATOR: _STREAMS,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes a world's run differ after a resume, or in another process.

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
        """Return the finding as one line."""
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

    First, the class is checked. Then two processes with different hash seeds run it from beginning
    to end, and a third carries out each round without having seen the others. Fields and logs must
    be the same. Unless its ``order`` is ``"listed"``, the world is run once more with every loop
    over its agents reversed (in a ``together`` world, their turns, too), which must not change any
    field. Decisions are drawn by their weights; no model is asked.

    Args:
        world: The world's class or address, as for `Run`.
        agents: Number of agents, or a file of them.
        rounds: Number of rounds; by default that of the class, but at most 20.
        ticks: Ticks in a round; by default that of the class.
        seed: Seed of every random number.
        parameters: The world's parameters by name.
        treatments: Treatments and their rounds; by default all that the class does not apply by
            itself, in the middle of the run.
        keep: Columns of the file of agents to keep.

    Returns:
        The findings; none if all runs are the same.

    Raises:
        InputError: If there is no such world, parameter, treatment or file.
        SimulationError: If a process could not be run to its end.
    """
    try:
        chosen: Any = world
        cls = Run(chosen).world_class
        options: Run[Any] = Run(
            chosen,
            agents,
            rounds=min(cls.rounds, MOST_ROUNDS) if rounds is None else rounds,
            ticks=ticks,
            seed=seed,
            parameters=parameters or {},
            treatments=() if treatments is None else tuple(treatments),
            keep=tuple(keep),
        )
        parts = parts_of(cls)
        # a world's own populate may make other kinds, which are checked when they are made
        if cls.populate is World.populate and (kinds := kinds_of(cls)):
            make_kinds(options.world_with_parameters, kinds, parts, None, lambda: 0.0)
    except DefinitionError as error:
        where = str(place_of(error) or "")
        return [Finding(problem, where=where) for problem in str(error).split("; ")]

    if treatments is None:
        options = options.replace(treatments=in_the_middle(options))

    with TemporaryDirectory(prefix="prism-rehearsal-") as folder:
        return _Rehearsal(options, Path(folder)).findings()


def in_the_middle(options: Run[Any]) -> tuple[str, ...]:
    """Return the treatments that the class does not apply by itself, for the middle of a run."""
    parts, middle = parts_of(options.world_class), (options.rounds + 1) // 2
    return tuple(f"{name}@{middle}" for name, at in parts.treatments.items() if not at)


class _Difference(NamedTuple):
    """Where a run first differs from the first run, by round and place, and its failure."""

    round: int
    where: str
    error: Mapping[str, Any] | None = None

    def told(self, when: str) -> str:
        fault = f"fails {when}: {self.error['type']}: {self.error['message']}" if self.error else ""
        return fault or f"is not the same {when}"


class _Rehearsal:
    """The runs of a rehearsal, and their comparison.

    Args:
        options: The run.
        folder: Where the runs are written.
    """

    def __init__(self, options: Run[Any], folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._cls = options.world_class

    def findings(self) -> list[Finding]:
        """Carry out the runs, and return the findings."""
        is_ordered = self._cls.order == "listed" and not self._cls.together
        self._run(_FIRST, _SECOND, _RESUMED, *[_BACKWARDS] * (not is_ordered))
        notes: Any = self._read(_FIRST, "notes") or ([], [], [])
        self._calls: Sequence[Sequence[str]]
        self._changed: Sequence[str]
        self._calls, self._changed, heard = notes
        if error := self._read(_FIRST, "error"):
            return [self._of_failure(error)]

        found = list(map(Finding, heard))
        if by_process := self._difference(_SECOND):
            found += self._of_process(by_process)
        # a call that differs between processes also differs after a resume
        if not by_process or self._changed or not self._calls:
            found += self._of_resume()

        return found or ([] if is_ordered else self._of_order())

    def _of_failure(self, error: Mapping[str, Any]) -> Finding:
        kind = "" if error["type"] in _EXPLAINED else f"{error['type']}: "
        where = error["place"] or ""
        # a draw is detected at the end of the tick
        if not where and "draws from" in error["message"]:
            where = ", ".join(place for _, place in self._draws())

        problem = error["message"].removesuffix(NAMES_THE_LINE)

        # a failure happened in the round after the last completed one
        return Finding(f"{kind}{problem}", "", where, error["round"] + 1)

    def _of_process(self, found: _Difference) -> list[Finding]:
        problem = "gives a different answer in each process, and after resuming"
        if self._calls:
            seen = f"seen in {found.where}"
            return [
                Finding(f"{name} {problem}", _MENDS[kind], f"{place}, {seen}", found.round)
                for kind, name, place in self._calls
            ]

        problem = found.told("in processes with different hash seeds") + (
            ": it depends on the order of a set, hash(), the address of an object (a set of "
            "agents, id), a file or the environment"
        )
        mend = "use a dict[..., None], a list or sorted(...), and read files into fields"
        return [Finding(problem, mend + self._sets(), found.where, found.round)]

    def _of_resume(self) -> list[Finding]:
        if not (found := self._difference(_RESUMED)):
            return []

        told = found.told("after a resume")
        where = found.where if found.error is None else found.error["place"] or ""
        if culprits := self._culprits(found.round):
            return [
                Finding(f"{problem}, so that {where} {told}", mend, place, found.round)
                for place, problem, mend in culprits
            ]

        problem = (
            f"{told}, so something is kept outside the declared fields, or recall does not "
            "restore it"
        )
        mend = "declare fields with state(...), and look for closures, files and caches"
        return [Finding(problem, mend + self._sets(), where, found.round)]

    def _of_order(self) -> list[Finding]:
        if not (found := self._difference(_BACKWARDS)):
            return []

        rule, when = "the order of", "when loops go through the agents from the last to the first"
        mend = (
            "draw for each agent from its own random, break ties by agent_id, or set  "
            'order = "listed"'
        )
        if self._cls.together:
            rule, when = f"in a together world {rule}", "when the last agent has its turn first"
            mend = "change only the own agent in a step, send messages, or use tick_ends"

        problem = f"{found.told(when)}, though {rule} agents must not matter"
        return [Finding(problem, mend, found.where, found.round)]

    def _culprits(self, number: int) -> list[tuple[str, str, str]]:
        """Return each value that a resume does not restore, with its place and a remedy."""
        problem = "draws from a generator that is not kept"
        draws = [(place, f"{name} {problem}", _STREAMS) for name, place in self._draws()]
        problem = "changes during the run and is not kept"
        mend = "declare a field with state(...), in the world or the agent"
        outside = [(name.rpartition(" ")[2], f"{name} {problem}", mend) for name in self._changed]
        problem = "state(kept=False) is not restored by recall(event)"
        mend = "restore it from the log, or keep it"
        one, again = (
            (self._read(name, str(number)) or {}).get("unkept", {}) for name in (_FIRST, _RESUMED)
        )
        unkept = [(name, problem, mend) for name in again if one.get(name) != again[name]]

        return draws or outside or unkept

    def _draws(self) -> Iterator[tuple[str, str]]:
        return ((name, place) for kind, name, place in self._calls if kind == GENERATOR)

    def _sets(self) -> str:
        place = self._options.place
        made = sets_in(code_of(self._cls, place).values())
        return f" (sets are made at {', '.join(made)})" if made else ""

    def _difference(self, name: str) -> _Difference | None:
        """Return where a run differs from the first; with reversed turns, only fields count."""
        for number in range(self._options.rounds + 1):
            one, other = (self._read(each, str(number)) for each in (_FIRST, name))
            error = self._read(name, "error")
            if one is None and other is None and error is None:
                # in both runs, the world ended before its last round
                return None
            if one is None or other is None:
                return _Difference(number, "the run", error)

            if where := _place_of(one, other, is_backwards=name == _BACKWARDS):
                return _Difference(number, where)

        return None

    def _read(self, name: str, what: str) -> Any:
        path = self._folder / name / f"{what}.json"
        return orjson.loads(path.read_bytes()) if path.exists() else None

    def _run(self, *names: str) -> None:
        """Run processes in parallel, and wait for all of them."""
        with ExitStack() as stack:
            started = {name: stack.enter_context(self._start(name)) for name in names}
            for process in started.values():
                stack.callback(process.kill)
            for name, process in started.items():
                _, told = process.communicate()
                if process.returncode:
                    last = told.strip().rpartition("\n")[2]
                    raise SimulationError(f"the rehearsal {name!r} could not be run: {last}")

    def _start(self, name: str) -> subprocess.Popen[str]:
        out = self._folder / name
        out.mkdir()
        (out / "job.json").write_bytes(orjson.dumps(self._options.to_config()))
        paths = os.pathsep.join(each or os.getcwd() for each in sys.path)  # noqa: PTH109
        hash_seed = "2" if name == _SECOND else "1"

        return subprocess.Popen(
            [sys.executable, "-m", _PROGRAM, str(out)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


def _place_of(one: Any, other: Any, *, is_backwards: bool) -> str:
    """Return the first field or line in which two rounds differ, or nothing if they agree."""
    if is_backwards:
        # sums of the same numbers in another order can differ in their last digits
        return _other_field(one["fields"], other["fields"], _is_close)

    where = _other_field(one["fields"], other["fields"], eq)

    return where or _other_line(one["lines"], other["lines"])


def _other_field(
    one: Mapping[str, Any], other: Mapping[str, Any], is_same: Callable[[Any, Any], bool]
) -> str:
    """Return the first field in which two rounds differ, or nothing if they agree."""
    if one.keys() != other.keys():
        return "the population"

    return next((name for name, value in one.items() if not is_same(other[name], value)), "")


def _is_close(one: Any, other: Any) -> bool:
    """Return whether two values are the same except for rounding errors."""
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_is_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_close, one, other))

    return bool(one == other)


def _other_line(one: Sequence[str], other: Sequence[str]) -> str:
    for line, others in zip_longest(one, other):
        if line != others:
            event = orjson.loads(line or others)
            by = f" of {event['agent_id']}" if "agent_id" in event else ""
            return f"the event {event['event']}{by}"

    return ""
