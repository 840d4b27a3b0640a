"""Rehearsing a world: is its run the same in another process, and when it is resumed?

Each run is a process of its own: ``python -m prism.worlds._rehearse FOLDER``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import walk_tb
from typing import Any

import orjson

from prism._faults import place_of, place_of_method
from prism.errors import DefinitionError, SimulationError
from prism.runlog import RunLog
from prism.runs._documents import documents
from prism.telemetry.loggers import LateLogger
from prism.worlds._addresses import file_of
from prism.worlds._asking import TemplateWriter
from prism.worlds._kinds import make_kinds, methods_of, parts_of
from prism.worlds._loop import Loop
from prism.worlds._run import Run
from prism.worlds._world import DEFAULT_AGENTS, World, kinds_of

_PROGRAM = "prism.worlds._rehearse"
MOST_ROUNDS = 20

_FIRST, _SECOND, _RESUMED = "first", "second", "resumed"

_EXPLAINED = ("SimulationError", "DefinitionError", "AgentError", "FieldValueError")
_BY_PROCESS = (
    "is not the same in two processes: it depends on random numbers that are not the run's, the "
    "clock, the order of a set, hash() or id(), a file or the environment"
)
_IN_ANY_PROCESS = (
    "draw from agent.random in steps and from self.random in the world, read self.round and "
    "self.tick, use a dict[..., None] or sorted(...) for a set, and read files into fields"
)
_BY_RESUME = "is not the same after a resume: something is kept outside the declared fields"
_IN_FIELDS = "declare fields with state(...), and look for globals, closures and caches"


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
    """Run a world in fresh processes, twice and resumed in the middle, and compare the runs.

    First, the class is checked. Then two processes with different hash seeds run it from beginning
    to end, and a third resumes it in the middle. Fields and logs must be the same. Decisions are
    drawn by their weights; no model is asked.

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
        middle = (options.rounds + 1) // 2
        due = [f"{name}@{middle}" for name, at in parts.treatments.items() if not at]
        options = options.replace(treatments=tuple(due))

    with TemporaryDirectory(prefix="prism-rehearsal-") as folder:
        return _compare_runs(options, Path(folder))


def _compare_runs(options: Run[Any], folder: Path) -> list[Finding]:
    """Carry out a world in several processes, and return how its runs differ."""
    job = {"run": options.to_config(), "resumes": None}
    first, second = _carry_out({_FIRST: job, _SECOND: job}, folder)
    if error := first["error"]:
        kind = "" if error["type"] in _EXPLAINED else f"{error['type']}: "
        return [Finding(kind + error["message"], "", error["place"] or "", error["round"])]

    found = list(map(Finding, first["notes"]))
    if difference := _difference(first, second, _BY_PROCESS, _IN_ANY_PROCESS):
        return [*found, difference]

    # a world may end the run before its last round
    if middle := (len(first["rounds"]) - 1) // 2:
        job["resumes"] = first["rounds"][: middle + 1]
        (resumed,) = _carry_out({_RESUMED: job}, folder)
        resumed["rounds"] = job["resumes"] + resumed["rounds"]
        if difference := _difference(first, resumed, _BY_RESUME, _IN_FIELDS):
            found.append(difference)

    return found


def _difference(one: Any, other: Any, problem: str, mend: str) -> Finding | None:
    """Return the first difference of two runs, or None if they are the same."""
    for number, (mine, others) in enumerate(zip_longest(one["rounds"], other["rounds"])):
        if mine is None or others is None:
            fault = other["error"] or {"place": None, "type": "the run", "message": "ends"}
            where = fault["place"] or "the run"
            told = f"fails there with {fault['type']}: {fault['message']}; it"
            return Finding(f"{told} {problem}", mend, where, number)
        if where := _other_field(mine, others) or _other_line(mine["lines"], others["lines"]):
            return Finding(problem, mend, where, number)

    return None


def _other_field(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the first field in which two rounds differ, or nothing if they agree."""
    if one["snapshot"] == other["snapshot"]:
        return ""

    before, after = dict(_fields(**one)), dict(_fields(**other))
    if before.keys() != after.keys():
        return "the population"

    return next((name for name, value in before.items() if after[name] != value), "an inbox")


def _fields(
    snapshot: Mapping[str, Any], kinds: Sequence[str], **_others: Any
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a snapshot under the names that findings give them."""
    for kind, kept in zip(kinds, snapshot.get("kinds", ()), strict=False):
        ids = kept["ids"]
        for name, column in {"state": kept["states"], **kept["fields"]}.items():
            yield from zip((f"{kind}.{name} of {each}" for each in ids), column, strict=True)

    yield from ((f"{name} of the world", value) for name, value in snapshot["world"].items())
    yield from ((f"the world's {name}", each) for name, each in snapshot.items() if name != "world")


def _other_line(one: Sequence[str], other: Sequence[str]) -> str:
    """Return the first event in which two rounds differ, or nothing if they agree."""
    for line, others in zip_longest(one, other):
        if line != others:
            event = orjson.loads(line or others)
            by = f" of {event['agent_id']}" if "agent_id" in event else ""
            return f"the event {event['event']}{by}"

    return ""


def _carry_out(jobs: Mapping[str, Any], folder: Path) -> list[Any]:
    """Carry out runs at the same time, each in a process of its own, and return their records."""
    with ExitStack() as stack:
        started = []
        for name, job in jobs.items():
            out = folder / name
            out.mkdir()
            (out / "job.json").write_bytes(orjson.dumps(job))
            started.append(stack.enter_context(_start(out)))
            stack.callback(started[-1].kill)
        for name, process in zip(jobs, started, strict=True):
            _, told = process.communicate()
            if process.returncode:
                last = told.strip().rpartition("\n")[2]
                raise SimulationError(f"the rehearsal {name!r} could not be run: {last}")

    return [orjson.loads((folder / name / "record.json").read_bytes()) for name in jobs]


def _start(out: Path) -> subprocess.Popen[str]:
    paths = os.pathsep.join(each or os.getcwd() for each in sys.path)  # noqa: PTH109
    hash_seed = "2" if out.name == _SECOND else "1"
    return subprocess.Popen(
        [sys.executable, "-m", _PROGRAM, str(out)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


# In the process of a run


def _record(out: Path) -> None:
    """Carry out the run that a folder describes, and write down how each round ended."""
    job = orjson.loads((out / "job.json").read_bytes())
    # no model is asked, even for texts
    options: Run[Any] = Run.from_config(job["run"], out / "run.json")
    code = file_of(options.world_class)
    record: dict[str, Any] = {"rounds": [], "notes": [], "error": None}
    try:
        with documents():
            _carry_out_here(options.replace(writer=TemplateWriter()), job["resumes"], code, record)
    except Exception as error:
        passed = [(each.f_code.co_filename, line) for each, line in walk_tb(error.__traceback__)]
        own = [f"{Path(file).name}:{line}" for file, line in passed if file == code]
        record["error"] = {
            "type": type(error).__name__,
            "message": str(error),
            "place": own[-1] if own else None,
            # it failed in the round after the last completed one
            "round": len(record["rounds"]),
        }

    (out / "record.json").write_bytes(orjson.dumps(record, option=orjson.OPT_NON_STR_KEYS))


def _carry_out_here(
    options: Run[Any], resumes: Sequence[Any] | None, code: str, record: dict[str, Any]
) -> None:
    late = LateLogger()
    loop = options.prepare(late)
    with TemporaryDirectory() as folder, RunLog(Path(folder) / "log.jsonl", loop.clock) as log:
        late.opened = log.logger
        told = 0

        def end_round(_summary: Any) -> None:
            nonlocal told
            log.flush()
            lines = log.path.read_text().splitlines()
            kinds = [kind.__name__ for kind in dict.fromkeys(map(type, loop.agents))]
            ended = {"snapshot": loop.snapshot(), "kinds": kinds, "lines": lines[told:]}
            record["rounds"].append(ended)
            told = len(lines)

        if resumes is None:
            end_round(None)
        else:
            events = [orjson.loads(line) for each in resumes for line in each["lines"]]
            loop.restore(resumes[-1]["snapshot"], events)
        record["notes"] += _unconnected(loop, code)
        loop.run(end_round)


def _unconnected(loop: Loop, code: str) -> Iterator[str]:
    """Yield a note on each method that reads neighbours in a world without a network."""
    cls = type(loop.world)
    # a method of that name may know them from a space
    if loop._host.has_network or hasattr(cls, "neighbours"):
        return

    for name, method in methods_of(cls):
        body = method.__code__
        if body.co_filename == code and "neighbours" in body.co_names:
            yield (
                f"{place_of_method(cls, name)}: reads the neighbours of an agent, and without a "
                "network nobody has any: set self.network in setup"
            )


if __name__ == "__main__":
    _record(Path(sys.argv[1]))
