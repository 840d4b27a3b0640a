"""One run of a rehearsal, in a process of its own: ``python -m prism.worlds._rehearsing FOLDER``.

It records what a world does outside of prism: calls whose result differs each time, and values that
are stored elsewhere.

For each round, a file holds the fields at its end and what was logged in it. A straight run goes
through all rounds, as does a backward one, whose loops begin with the last agent. A resumed run
carries out each round in a process that has not seen the others.
"""

from __future__ import annotations

import ast
import logging
import multiprocessing
import random
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from operator import attrgetter
from pathlib import Path
from traceback import walk_tb
from types import CellType, FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import orjson

from prism._faults import place_of_method
from prism.errors import SimulationError
from prism.runlog import RunLog
from prism.runs._documents import documents
from prism.statechart import Statechart
from prism.telemetry._loggers import LOGGER_NAME, LateLogger
from prism.telemetry.events import ROUND_ENDED
from prism.worlds._addresses import code_of
from prism.worlds._asking import TemplateWriter
from prism.worlds._kinds import methods_of
from prism.worlds._loop import Loop
from prism.worlds._run import Run
from prism.worlds._snapshot import Encoder

CLOCK, ENTROPY, GENERATOR = "clock", "entropy", "generator"

_TELLING: Mapping[str, re.Pattern[str]] = {
    CLOCK: re.compile(
        r"time\.(?!sleep|struct_time|mktime|strptime|tzset)\w+|datetime\.(now|today|utcnow)|date\.today"
    ),
    ENTROPY: re.compile(r"(uuid|secrets)\.[a-z]\w*|\w+\.urandom|random\.SystemRandom\.[a-z]\w*"),
    # calls to numpy's generators are not visible here, but their states are compared
    GENERATOR: re.compile(r"random\.(?!getstate)[a-z]\w*"),
}
"""Calls that return something different each time, as `_named` names them."""

_DEEPEST = 3

Note = tuple[str, str, str]
"""The kind of call, its name, and its file and line."""


class _Enough(BaseException):
    """Ends a run after the requested round."""


class Rehearsal:
    """One run of a world, all of it or a round at a time.

    Args:
        out: A folder named after the way of running. It holds the options as ``job.json``, and the
            results are written into it.
    """

    def __init__(self, out: Path) -> None:
        self.out, self.way = out, out.name
        self._padding = _padding(5 if self.way == "second" else 0)
        # no model is asked, even for texts
        options: Run[Any] = Run.from_config(self._read("job"), out / "run.json")
        self.options = options.replace(writer=TemplateWriter())
        self.last = self.options.rounds
        place = self.options.place
        self.files = {str(file) for file in code_of(self.options.world_class, place).values()}
        self.calls: dict[Note, None] = {}
        self.warnings: list[str] = []
        self.round, self.told = -1, 0

    def run(self) -> None:
        """Run in the way that the folder is named after; only the first run is watched."""
        if self.way == "resumed":
            self.resumed()
            return
        watched = self.files if self.way == "first" else ()
        with watching(watched) as self.calls, hearing() as self.warnings:
            attempt(self, 1, self.last)

    def resumed(self) -> None:
        """Carry out each round in a process that has not seen the others."""
        how = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        context: Any = multiprocessing.get_context(how)
        for number in range(1, self.last + 1):
            child = context.Process(target=attempt, args=(self, number, number))
            child.start()
            child.join()
            if (self.out / "error.json").exists() or child.exitcode or self._has_ended(number):
                return

    def _has_ended(self, number: int) -> bool:
        """Return whether the world ended the run in a round."""
        events = map(orjson.loads, self._read(str(number))["lines"])
        return any(event["event"] == ROUND_ENDED and event.get("stopped") for event in events)

    def rounds(self, first: int, last: int) -> None:
        """Carry out some rounds, starting from the state after the previous one."""
        self._padding += _padding(first)
        late = LateLogger()
        run = self.options.prepare(late)
        with RunLog(self.out / f"log_{first}.jsonl", run.clock) as log:
            late.open(log.logger)
            if self.way == "backwards":
                run._host.turn_round()
            before = self._outside()

            def done(summary: Any) -> None:
                self.round = 0 if summary is None else summary.number
                log.flush()
                lines = log.path.read_text().splitlines()
                self._write(str(self.round), {**_left_by(run), "lines": lines[self.told :]})
                self.told = len(lines)
                if self.round == last < run.rounds:
                    raise _Enough

            if first == 1:
                done(None)
            else:
                self.round = first - 1
                rounds = [self._read(str(each)) for each in range(first)]
                lines = [orjson.loads(line) for each in rounds for line in each["lines"]]
                run.restore(rounds[-1]["snapshot"], lines)
            try:
                run.run(done)
            except _Enough:
                return
            finally:
                after = self._outside().items()
                changed = [name for name, text in after if before.get(name) != text]
                said = [*self.warnings, *self._unconnected(run)]
                self._write("notes", [list(self.calls), changed, said])

    def _unconnected(self, run: Loop) -> list[str]:
        """Return the user's methods that read neighbours in a world without a network."""
        cls = type(run.world)
        # a method of that name may know them from a space
        if run._host.has_network or hasattr(cls, "neighbours"):
            return []

        return [
            f"{place_of_method(cls, name)}: reads the neighbours of an agent, and without a "
            "network nobody has any: set self.network in setup"
            for name, method in methods_of(cls)
            if method.__code__.co_filename in self.files
            and "neighbours" in method.__code__.co_names
        ]

    def _outside(self) -> dict[str, str]:
        loaded = list(sys.modules.values())
        return kept_outside(each for each in loaded if vars(each).get("__file__") in self.files)

    def _write(self, name: str, content: Any) -> None:
        data = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        (self.out / f"{name}.json").write_bytes(data)

    def _read(self, name: str) -> Any:
        return orjson.loads((self.out / f"{name}.json").read_bytes())


def _padding(number: int) -> list[bytes]:
    """Return this many objects of every size, to shift the addresses of later objects."""
    return [bytes(size) for size in range(0, 1024, 16) for _ in range(number)]


def attempt(rehearsal: Rehearsal, first: int, last: int) -> None:
    """Carry out some rounds, and write down what goes wrong."""
    try:
        with documents():
            rehearsal.rounds(first, last)
    except Exception as error:
        passed = [(each.f_code.co_filename, line) for each, line in walk_tb(error.__traceback__)]
        own = [f"{Path(file).name}:{line}" for file, line in passed if file in rehearsal.files]
        told = {"type": type(error).__name__, "message": str(error), "round": rehearsal.round}
        rehearsal._write("error", {**told, "place": own[-1] if own else None})


def _left_by(run: Loop) -> dict[str, Any]:
    """Return the state after a round, including fields that no checkpoint keeps."""
    snapshot = run.snapshot()
    kinds = [kind.__name__ for kind in dict.fromkeys(map(type, run._host.agents))]
    fields, unkept = dict(_fields(snapshot, kinds)), dict(_unkept(run))

    return {"snapshot": snapshot, "fields": fields, "unkept": unkept}


def _fields(snapshot: Mapping[str, Any], kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a snapshot under the names that findings give them."""
    for kind, kept in zip(kinds, snapshot.get("kinds", ()), strict=False):
        ids = kept["ids"]
        for name, column in {"state": kept["states"], **kept["fields"]}.items():
            yield from zip((f"{kind}.{name} of {each}" for each in ids), column, strict=True)
        inboxes = dict(kept["inboxes"])
        yield from ((f"{kind}.inbox of {each}", inboxes.get(at)) for at, each in enumerate(ids))

    yield from ((f"{name} of the world", value) for name, value in snapshot["world"].items())
    yield from ((f"the world's {name}", each) for name, each in snapshot.items() if name != "world")


def _unkept(run: Loop) -> Iterator[tuple[str, Any]]:
    """Yield the fields that no checkpoint keeps, if they can be represented."""
    owners: Sequence[Any] = [run.world, *run._host.agents]
    for cls in dict.fromkeys(map(type, owners)):
        for name, field in getattr(cls, "fields", {}).items():
            if field.declared.kept:
                continue
            code = Encoder(run._host.agents, type(run.world).__module__)
            those = [each for each in owners if type(each) is cls]
            with suppress(SimulationError):  # it cannot be represented
                yield f"{cls.__name__}.{name}", code.column(those, attrgetter(name), name)


@contextmanager
def watching(files: Collection[str]) -> Iterator[dict[Note, None]]:
    """Record calls in some files whose results always differ, such as the time and random numbers.

    Args:
        files: Names of the files, as their code objects have them.
    """
    notes: dict[Note, None] = {}

    def look(frame: FrameType, event: str, called: Any) -> None:
        is_builtin = event == "c_call"
        caller = frame if is_builtin else frame.f_back
        if event not in ("call", "c_call") or caller is None:
            return
        if (file := caller.f_code.co_filename) not in files:
            return

        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        owner = frame.f_locals.get("self")
        if is_builtin:
            module, owner = getattr(called, "__module__", None), getattr(called, "__self__", None)
            name = called.__name__

        asked = _named(module, owner, name)
        for kind, pattern in _TELLING.items():
            if pattern.fullmatch(asked):
                notes[kind, f"{asked}()", f"{Path(file).name}:{caller.f_lineno}"] = None

    # this slows down every call of the run, so it is skipped if nothing is watched
    sys.setprofile(look if files else None)
    try:
        yield notes
    finally:
        sys.setprofile(None)


@contextmanager
def hearing() -> Iterator[list[str]]:
    """Record warnings for programmers, such as a trigger without a transition."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(LOGGER_NAME)
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def _named(module: str | None, owner: Any, name: str) -> str:
    """Return the name of a called function as a user would write it."""
    cls = owner if isinstance(owner, type) else type(owner)
    if isinstance(owner, random.Random):
        return f"random.{name}" if cls is random.Random else f"random.{cls.__name__}.{name}"
    if module is None:
        module = cls.__module__
        name = f"{cls.__name__}.{name}"

    return name if module == "datetime" else f"{module}.{name}"


def sets_in(files: Iterable[Path]) -> list[str]:
    """Return the places where code makes sets, as ``file:line``."""
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_bytes())):
            called = getattr(getattr(node, "func", None), "id", None)
            if isinstance(node, (ast.Set, ast.SetComp)) or called in ("set", "frozenset"):
                found.append(f"{file.name}:{node.lineno}")  # type: ignore[attr-defined]

    return list(dict.fromkeys(found))


def kept_outside(modules: Iterable[ModuleType]) -> dict[str, str]:
    """Return what modules hold in globals, class attributes and functions, as texts to compare."""
    found: dict[str, str] = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, ModuleType):
                continue
            if isinstance(value, type):
                if value.__module__ == module.__name__:
                    found |= _of_class(value)
            elif not isinstance(value, FunctionType) or value.__module__ == module.__name__:
                found[f"the global {module.__name__}.{name}"] = _text(value)

    return found


def _of_class(cls: type) -> dict[str, str]:
    if issubclass(cls, Enum):
        return {}

    return {
        f"the class attribute {cls.__name__}.{name}": _text(value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and not isinstance(value, (MemberDescriptorType, property))
    }


def _text(value: Any, depth: int = 0) -> str:
    """Return a text for the contents of a value; addresses of objects are stable in one process."""
    if isinstance(value, (Statechart, type, ModuleType, Enum)) or depth > _DEEPEST:
        return ""

    shown, parts = "", list[Any]()
    # a user's repr may fail, and not every object reveals its parts
    with suppress(Exception):
        shown = repr(value)
    with suppress(Exception):
        parts = list(_parts(value))

    return shown + "".join(f"({_text(part, depth + 1)})" for part in parts)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value, *value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, FunctionType):
        return (value.__defaults__, value.__kwdefaults__, vars(value), *_enclosed(value))

    if hasattr(value, "bit_generator"):  # numpy's
        return (str(value.bit_generator.state),)

    state = value.cache_info() if hasattr(value, "cache_info") else value.__getstate__()
    return () if state is None else (state,)


def _enclosed(function: FunctionType) -> list[Any]:
    # an empty cell equals only another empty cell
    cells = [cell for cell in function.__closure__ or () if cell != CellType()]
    return [cell.cell_contents for cell in cells]


if __name__ == "__main__":
    Rehearsal(Path(sys.argv[1])).run()
