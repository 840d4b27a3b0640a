"""Looking at a world: what its class declares, and whether it writes the same log each time."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import cleandoc, getdoc
from itertools import zip_longest
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Literal, get_args, get_origin

import orjson

from prism.errors import InputError
from prism.randomness import RandomStream
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import Statechart
from prism.statechart.states import SEPARATOR, state_text
from prism.telemetry.events import AGENT_JOINED, TRANSITION
from prism.worlds._addresses import address_of, load_world
from prism.worlds._agent import Agent
from prism.worlds._agent_set import NOBODY, AgentSet
from prism.worlds._arguments import parameters_of, plain_value
from prism.worlds._fields import MEASURE, MISSING, TREATMENT, Field, hints_of, marked
from prism.worlds._kinds import check_classes
from prism.worlds._run import Run
from prism.worlds._world import World, kinds_of

MOST_ROUNDS = 20
"""Most rounds that are checked by default."""

_LISTING = ("run.started", "agent.joined", "agents.pictured", "agents.measured")
"""Events that list the agents in their order."""

_MOST_SHOWN = 300

_FIRST, _SEED, _ORDER = "first", "hash seed", "order of agents"
_RUNS = {_FIRST: (1, False), _SEED: (2, False), _ORDER: (1, True)}
"""The runs that are compared: the hash seed of each, and whether its agents are permuted."""


# What a class declares


def about_world(cls: type[World[Any]], address: str) -> dict[str, Any]:
    """Return what `prism world show` prints.

    Args:
        cls: The world's class.
        address: Where it is.

    Raises:
        DefinitionError: If the class cannot work.
    """
    check_classes(cls, [each for each in kinds_of(cls) if issubclass(each, Agent)])
    hints = hints_of(cls)
    return {
        "world": cls.__name__,
        "address": address,
        "doc": _doc(cls) or getdoc(sys.modules[cls.__module__]) or "",
        "rounds": cls.rounds,
        "ticks": cls.ticks,
        "parameters": [
            _field(name, field, hints.get(name)) for name, field in parameters_of(cls).items()
        ],
        "kinds": [
            {"kind": each.__name__, "states": _states(each), "doc": _doc(each)}
            for each in kinds_of(cls)
        ],
        "treatments": [
            {"treatment": name, "round": at or None, "doc": _summary(cls, name)}
            for name, at in marked(cls, TREATMENT).items()
        ],
        "measures": [
            {"measure": name, "doc": _summary(cls, name)} for name in marked(cls, MEASURE)
        ],
    }


def _summary(cls: type, name: str) -> str:
    """Return the first line of a method's docstring."""
    return (getdoc(getattr(cls, name)) or "").partition("\n")[0]


def _field(name: str, field: Field, hint: Any) -> dict[str, Any]:
    """Describe a parameter: its type, bounds and default."""
    bounds = {"least": field.least, "most": field.most, "options": _options(hint) or None}
    default = {} if field.default is MISSING else {"default": plain_value(field.default)}
    return {
        "name": name,
        "type": getattr(hint, "__name__", None) or str(hint).replace("typing.", ""),
        **default,
        **{key: bound for key, bound in bounds.items() if bound is not None},
        "help": field.help,
    }


def _options(hint: Any) -> list[Any]:
    """Return the values that a type allows, if it names them."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [plain_value(each) for each in hint]
    return [*get_args(hint)] if get_origin(hint) is Literal else []


def _states(kind: type) -> str:
    # a workflow or a thinking agent has its chart itself
    chart = getattr(kind, "chart", None)
    states = chart.definition.states if isinstance(chart, Statechart) else ()
    return ", ".join(map(state_text, states))


def _doc(cls: type) -> str:
    """Return the docstring of the class itself, not one that it inherits."""
    return cleandoc(vars(cls).get("__doc__") or "")


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
        cure = (
            "sort sets before you draw from them or loop over them"
            if self.cause == _SEED
            else "draw from agent.random, and leave the order of turns to prism"
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
        names = [name for name, number in marked(cls, TREATMENT).items() if not number]
        treatments = [f"{name}@{1 + number % rounds}" for number, name in enumerate(names)]
    options: dict[str, Any] = {
        "world": address,
        "agents": agents if isinstance(agents, int) else str(agents),
        "rounds": rounds,
        "ticks": ticks,
        "seed": seed,
        "parameters": dict(parameters or {}),
        "treatments": list(treatments),
    }
    # refuse what is wrong here, where the message is whole
    Run(**options)
    with tempfile.TemporaryDirectory() as folder:
        logs = {cause: Path(folder) / f"{cause}.jsonl" for cause in _RUNS}
        for process in [_start(logs[cause], options, *how) for cause, how in _RUNS.items()]:
            _, error = process.communicate()
            if process.returncode:
                problem = error.decode().strip().splitlines()[-1:] or ["it failed"]
                raise InputError(f"cannot be run: {problem[0]}", field="world")
        notes = json.loads(logs[_FIRST].with_suffix(".notes").read_text())
        lines = {cause: _lines(path) for cause, path in logs.items()}

    findings = _compared(_SEED, lines[_FIRST], lines[_SEED])
    if not findings:
        findings = _compared(_ORDER, _unlisted(lines[_FIRST]), _unlisted(lines[_ORDER]))
    return Checked(findings, notes)


def _start(
    path: Path, options: Mapping[str, Any], hash_seed: int, is_permuted: bool
) -> Popen[bytes]:
    arguments = json.dumps({"path": str(path), "is_permuted": is_permuted, "options": options})
    command = [sys.executable, "-c", "from prism.worlds._checking import child; child()", arguments]
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
    arguments = json.loads(sys.argv[1])
    clock, unconnected = SimulatedClock(), _Unconnected()
    setattr(Agent, "neighbours", unconnected)  # noqa: B010 - to a type checker it is a set
    with RunLog(arguments["path"], clock) as log:
        run: Run[Any] = Run(**arguments["options"], logger=log.logger, clock=clock)
        if arguments["is_permuted"]:
            # after setup, which may connect and place agents by their order
            population = run.loop.turns.population
            population.reorder(RandomStream(1, "order").shuffled(population.everybody()))
        run.run()
    notes = [*_silent(run, Path(arguments["path"]))]
    if run.loop.world._network is None:
        notes += [
            f"{kind} reads its neighbours, but the world has no network: set one in setup"
            for kind in unconnected.kinds
        ]
    # not to the standard output, to which the world itself may print
    Path(arguments["path"]).with_suffix(".notes").write_text(json.dumps(notes))


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
    """Return the first line that differs, if any does."""
    for number, lines in enumerate(zip_longest(first, second, fillvalue=b""), 1):
        if lines[0] != lines[1]:
            texts = [line.decode("utf-8", "replace")[:_MOST_SHOWN] for line in lines]
            return [Finding(cause, number, *texts)]
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
    events = map(orjson.loads, _lines(log))
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
