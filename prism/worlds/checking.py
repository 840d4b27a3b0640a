"""Looking at a world: what its class declares, and whether it writes the same log each time."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cached_property
from inspect import cleandoc, getdoc
from itertools import zip_longest
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin

import orjson

from prism.errors import InputError, PrismError
from prism.randomness import RandomStream
from prism.runlog import RunLog, SimulatedClock
from prism.statechart.states import SEPARATOR, state_text
from prism.telemetry.events import AGENT_JOINED, TRANSITION
from prism.telemetry.loggers import describe
from prism.worlds._agent import Agent
from prism.worlds._agent_set import NOBODY, AgentSet
from prism.worlds._run import Run
from prism.worlds.addresses import class_of
from prism.worlds.arguments import parameters_of, plain_value
from prism.worlds.fields import MEASURE, MISSING, TREATMENT, Field, hints_of, marked
from prism.worlds.kinds import check_classes, definitions_of
from prism.worlds.treatments import read_treatment
from prism.worlds.world import World, kinds_of

MOST_ROUNDS = 20
"""Most rounds that are checked by default."""

_LISTING = tuple(
    f'{{"event":"{name}"'.encode() for name in ("run.started", "agent.joined", "agents.pictured")
)
"""How lines begin that list the agents in their order."""

_LONGEST = 300
_MISSPELT = 0.8
"""How similar an attribute that nobody reads is to the one that was meant."""

_SEED, _ORDER = "hash seed", "order of agents"

_CURES = {
    _SEED: "draw by agent.random or self.random, and sort sets before you loop over them",
    _ORDER: "draw by agent.random, choose agents by sample(1), and leave the order to prism",
}


# What a class declares


def about_world(cls: type[World[Any]], address: str | None) -> dict[str, Any]:
    """Return what ``prism world show`` prints.

    Args:
        cls: The world's class.
        address: Where it is.

    Raises:
        DefinitionError: If the class cannot work.
    """
    kinds, hints = kinds_of(cls), hints_of(cls)
    check_classes(cls, [each for each in kinds if issubclass(each, Agent)])

    def summary(name: str) -> str:
        return (getdoc(getattr(cls, name)) or "").partition("\n")[0]

    return {
        "world": cls.__name__,
        "address": address,
        "doc": cleandoc(cls.__doc__ or "") or getdoc(sys.modules[cls.__module__]) or "",
        "rounds": cls.rounds,
        "ticks": cls.ticks,
        "parameters": [
            _field(name, field, hints.get(name)) for name, field in parameters_of(cls).items()
        ],
        "kinds": [
            {
                "kind": each.__name__,
                "states": ", ".join(
                    state_text(state) for chart in definitions_of([each]) for state in chart.states
                ),
                "doc": cleandoc(each.__doc__ or ""),
            }
            for each in kinds
        ],
        "treatments": [
            {"treatment": name, "doc": summary(name)} for name in marked(cls, TREATMENT)
        ],
        "measures": [
            {"measure": name, "doc": title or summary(name)}
            for name, title in marked(cls, MEASURE).items()
        ],
    }


def _field(name: str, field: Field, hint: Any) -> dict[str, Any]:
    """Describe a parameter: its type, bounds and default."""
    options = get_args(hint) if get_origin(hint) is Literal else ()
    if isinstance(hint, type) and issubclass(hint, Enum):
        options = tuple(hint)
    bounds = {"least": field.least, "most": field.most, "options": plain_value(options) or None}
    default = {} if field.default is MISSING else {"default": plain_value(field.default)}
    return {
        "name": name,
        "type": getattr(hint, "__name__", None) or str(hint).replace("typing.", ""),
        **default,
        **{key: bound for key, bound in bounds.items() if bound is not None},
        "help": field.help,
    }


# Whether it runs the same


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
        problem = f"with another {self.cause}, line {self.line} of the log differs"
        return f"{problem}: {_CURES[self.cause]}\n  {self.first}\n  {self.second}"


def check_world(
    world: str,
    agents: str | int = 100,
    *,
    rounds: int | None = None,
    treatments: Sequence[str] | None = None,
    **options: Any,
) -> tuple[list[Finding], list[str]]:
    """Run a world with two hash seeds and with its agents in another order, and compare the logs.

    Args:
        world: Its address or short name.
        agents: Their number, or a table of them.
        rounds: Number of rounds; by default the world's own, but at most 20.
        treatments: Treatments as for a run; by default each of the world's once.
        options: Other arguments of the run.

    Returns:
        The first difference, if there is one, and notes on what was silent: events that did
        nothing, and states that nobody entered.

    Raises:
        InputError: If an argument is wrong, or the world cannot run.
    """
    cls, address = class_of(world)
    rounds = min(cls.rounds, MOST_ROUNDS) if rounds is None else rounds
    if treatments is None:
        names = enumerate(marked(cls, TREATMENT))
        treatments = [f"{name}@{1 + number % rounds}" for number, name in names]
    options |= {"world": address, "agents": agents, "rounds": rounds, "treatments": treatments}
    # refuse what is wrong here, where the message is whole
    for each in Run(**options).treatments:
        read_treatment(each)
    with TemporaryDirectory() as folder:
        logs = [Path(folder) / f"{name}.jsonl" for name in ("first", "seed", "order")]
        processes = [
            _start(seed, {**options, "path": str(log), "is_permuted": log is logs[2]})
            for seed, log in zip((1, 2, 1), logs, strict=True)
        ]
        # all are waited for, also if the first fails
        errors = [process.communicate()[1] for process in processes]
        for process, error in zip(processes, errors, strict=True):
            if process.returncode:
                # the world itself may have printed before
                problem = (error.decode("utf-8", "replace").splitlines() or ["it failed"])[-1]
                raise InputError(f"cannot be run: {problem}", field="world")
        notes = json.loads(logs[0].with_suffix(".notes").read_text())
        first, by_seed, by_order = (log.read_bytes().splitlines() for log in logs)

    return _compared(_SEED, first, by_seed) or _compared(_ORDER, first, by_order, _LISTING), notes


def _start(hash_seed: int, arguments: Mapping[str, Any]) -> Popen[bytes]:
    code = "from prism.worlds.checking import child; child()"
    command = [sys.executable, "-c", code, json.dumps(arguments, default=str)]
    paths = os.pathsep.join(each or os.getcwd() for each in sys.path)  # noqa: PTH109
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": paths}
    return Popen(command, stdout=PIPE, stderr=PIPE, env=environment)


def child() -> None:
    """Carry out one of the runs, in a process of its own; an error is its last line."""
    try:
        _carry_out(**json.loads(sys.argv[1]))
    except Exception as error:
        problem = str(error) if isinstance(error, PrismError) else describe(error)
        sys.exit(" ".join("; ".join([problem, *getattr(error, "__notes__", ())]).split()))


def _carry_out(path: str, *, is_permuted: bool, **options: Any) -> None:
    """Carry out a run, and write notes on what was silent beside its log."""
    clock, file = SimulatedClock(), Path(path)
    unconnected: dict[str, None] = {}

    def nobody(agent: Agent) -> AgentSet[Any]:
        unconnected[type(agent).__name__] = None
        return NOBODY

    neighbours: Any = cached_property(nobody)
    neighbours.__set_name__(Agent, "neighbours")
    setattr(Agent, "neighbours", neighbours)  # noqa: B010 - to a type checker it is a set
    with RunLog(file, clock) as log:
        run: Run[Any] = Run(**options, logger=log.logger, clock=clock)
        if is_permuted:
            # after setup, which may connect and place agents by their order
            population = run.loop.turns.population
            population.reorder(RandomStream(1, "order").shuffled(population.everybody()))
        run.run()
    notes = [*dict.fromkeys([*_silent(run, file), *_unread(run.world_class)])]
    if run.loop.world._network is None:
        problem = "reads its neighbours, but the world has no network: set one in setup"
        notes += [f"{kind} {problem}" for kind in unconnected]
    # not to the standard output, to which the world itself may print
    file.with_suffix(".notes").write_text(json.dumps(notes))


def _compared(
    cause: str, first: Sequence[bytes], second: Sequence[bytes], ignored: tuple[bytes, ...] = ()
) -> list[Finding]:
    """Return the first line that differs, if any does, but for lines that begin in some ways."""
    for number, lines in enumerate(zip_longest(first, second, fillvalue=b""), 1):
        if lines[0] != lines[1] and not all(line.startswith(ignored) for line in lines):
            texts = [line.decode("utf-8", "replace")[:_LONGEST] for line in lines]
            return [Finding(cause, number, *texts)]
    return []


def _unread(cls: type[World[Any]]) -> Iterator[str]:
    """Yield attributes that a world's file assigns and never reads, and that seem misspelt."""
    file = Path(sys.modules[cls.__module__].__file__ or "")
    nodes = [*ast.walk(ast.parse(file.read_bytes()))]
    attributes = [each for each in nodes if isinstance(each, ast.Attribute)]
    known = {each.attr for each in attributes if not isinstance(each.ctx, ast.Store)}
    known |= {name for kind in (cls, *kinds_of(cls)) for name in dir(kind)}
    known |= {each.id for each in nodes if isinstance(each, ast.Name)}
    for each in attributes:
        for near in () if each.attr in known else get_close_matches(each.attr, known, 1, _MISSPELT):
            problem = f"is assigned in line {each.lineno} of {file.name}, and never read there"
            yield f"{each.attr!r} {problem}; did you mean {near!r}?"


def _silent(run: Run[Any], log: Path) -> Iterator[str]:
    """Yield events that did nothing or were never fired, and states that nobody entered."""
    turns = run.loop.turns
    for (trigger, state), number in turns.missed.most_common():
        if not turns.made[trigger]:
            problem = "where it does nothing, and never made a transition"
            yield f"{trigger!r} was fired {number:,} times in {state!r}, {problem}"
    events = map(orjson.loads, log.read_bytes().splitlines())
    steps = [each for each in events if each["event"] in (AGENT_JOINED, TRANSITION)]
    texts = (str(each.get("to_state", each.get("state"))) for each in steps)
    entered = {leaf for text in texts for leaf in text.split(SEPARATOR)}
    # a self-transition leaves no line
    fired = {*turns.made, *(each.get("trigger") for each in steps)}
    fired.update(trigger for trigger, _ in turns.missed)
    for definition in turns.population.definitions:
        for trigger in definition.hierarchy.triggers:
            if trigger not in fired:
                yield f"{trigger!r} was never fired"
        for state in definition.states:
            if state_text(state) not in entered:
                yield f"nobody was ever in {state_text(state)!r}"
