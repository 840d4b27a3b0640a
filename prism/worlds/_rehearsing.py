"""One run of a rehearsal, in a process of its own: ``python -m prism.worlds._rehearsing FOLDER``.

It notes what a world does past prism: calls that give another answer each time, and values kept
elsewhere.

A file per round tells what the fields were when it ended, and what was logged in it. A straight run
goes through all rounds, and so does one that goes backwards, which gives the last agent its turn
first; a resumed one makes each round in a process that has not seen the others.
"""

from __future__ import annotations

import ast
import multiprocessing
import random
import secrets
import sys
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from operator import attrgetter
from pathlib import Path
from traceback import walk_tb
from types import FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import orjson

from prism.errors import SimulationError
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import Statechart
from prism.worlds._addresses import code_of
from prism.worlds._loop import Run
from prism.worlds._options import WorldRun
from prism.worlds._snapshot import Encoder

CLOCK, ENTROPY, GENERATOR = "clock", "entropy", "generator"

_OF_TIME = "time"
_NOT_A_CLOCK = ("sleep", "struct_time", "mktime", "strptime", "tzset")
_NOWS = ("datetime.now", "datetime.today", "datetime.utcnow", "date.today")
_OF_NUMPY = ("RandomState", "Generator")
_LIBRARIES = {uuid.__file__: "uuid", secrets.__file__: "secrets"}
_DEEPEST = 3

Note = tuple[str, str, str]
"""What kind of call, its name, and the file and line it is in."""


class _Enough(BaseException):
    """Ends a run after the round that was to be made."""


class Rehearsal:
    """One run of a world, all of it or a round.

    Args:
        out: A folder that holds what to run, as ``job.json``: ``config``, ``way`` and ``padding``;
            what comes of it is written there.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        job = self._read("job")
        self.way: str = job["way"]
        self._padding = _padding(job["padding"])
        self.options = WorldRun.from_config(job["config"], out / "run.json")
        place = str(self.options.world).rpartition(":")[0]
        self.files = {str(file) for file in code_of(self.options._class(), place).values()}
        self.round = -1

    def straight(self) -> None:
        """Run all rounds; the first run notes what is called and what changes outside of fields."""
        is_first = self.way == "first"
        calls: dict[Note, None] = {}
        with ExitStack() as stack:
            if is_first:
                calls = stack.enter_context(watching(self.files))
            log, run = self._begin(stack, "log.jsonl")
            before = self._outside() if is_first else {}
            done = self._writing(log, run)
            try:
                done(None)
                run.run(done)
            finally:
                after = self._outside() if is_first else {}
                changed = [name for name in after if before.get(name) != after[name]]
                self._write("notes", [list(calls), changed])

    def resumed(self) -> None:
        """Make each round in a process that has not seen the others."""
        how = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        for number in range(1, int(self.options.rounds or 1) + 1):
            process: Any = multiprocessing.get_context(how)
            child = process.Process(target=attempt, args=(self, self.one_round, number))
            child.start()
            child.join()
            if (self.out / "error.json").exists() or child.exitcode:
                return

    def one_round(self, number: int) -> None:
        """Make one round from what the one before it has left."""
        self._padding += _padding(number)
        with ExitStack() as stack:
            log, run = self._begin(stack, f"log_{number}.jsonl")
            done = self._writing(log, run)
            if number == 1:
                done(None)
            else:
                self.round = number - 1
                rounds = [self._read(str(each)) for each in range(number)]
                lines = [orjson.loads(line) for each in rounds for line in each["lines"]]
                run.restore(rounds[-1]["snapshot"], lines)

            def enough(summary: Any) -> None:
                done(summary)
                if summary.number < run.rounds:
                    raise _Enough

            with suppress(_Enough):
                run.run(enough)

    def _begin(self, stack: ExitStack, name: str) -> tuple[RunLog, Run[Any]]:
        clock = SimulatedClock()
        log = stack.enter_context(RunLog(self.out / name, clock))
        run = self.options.prepare()(log.logger, clock)
        run._host.goes_backwards = self.way == "backwards"
        return log, run

    def _writing(self, log: RunLog, run: Run[Any]) -> Callable[[Any], None]:
        told = 0

        def write(summary: Any) -> None:
            nonlocal told
            self.round = 0 if summary is None else summary.number
            log.flush()
            content, snapshot = log.path.read_bytes(), run.snapshot()
            kinds = [kind.__name__ for kind in dict.fromkeys(map(type, run.agents))]
            made = {
                "snapshot": snapshot,
                "fields": dict(_fields(snapshot, kinds)),
                "unkept": dict(_unkept(run)),
                "lines": content[told:].decode().splitlines(),
            }
            self._write(str(self.round), made)
            told = len(content)

        return write

    def _outside(self) -> dict[str, str]:
        modules = list(sys.modules.values())
        return kept_outside(
            each for each in modules if getattr(each, "__file__", None) in self.files
        )

    def _write(self, name: str, content: Any) -> None:
        data = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        (self.out / f"{name}.json").write_bytes(data)

    def _read(self, name: str) -> Any:
        return orjson.loads((self.out / f"{name}.json").read_bytes())


def _padding(number: int) -> list[bytes]:
    """Return so many objects of every size, which shift the addresses of those made later."""
    return [bytes(size) for size in range(0, 1024, 16) for _ in range(number)]


def attempt(rehearsal: Rehearsal, do: Callable[..., object], *arguments: Any) -> None:
    """Do something; what goes wrong is written down."""
    try:
        do(*arguments)
    except Exception as error:
        places = [
            f"{Path(frame.f_code.co_filename).name}:{line}"
            for frame, line in walk_tb(error.__traceback__)
            if frame.f_code.co_filename in rehearsal.files
        ]
        told = {
            "type": type(error).__name__,
            "message": str(error),
            "place": places[-1] if places else None,
            "round": rehearsal.round,
        }
        rehearsal._write("error", told)


def _fields(snapshot: Mapping[str, Any], kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a snapshot holds, each value by the name that a finding gives it."""
    for kind, kept in zip(kinds, snapshot.get("kinds", ()), strict=False):
        ids = kept["ids"]
        for name, column in {"state": kept["states"], **kept["fields"]}.items():
            yield from zip((f"{kind}.{name} of {each}" for each in ids), column, strict=True)
        inboxes = dict(kept["inboxes"])
        yield from ((f"{kind}.inbox of {each}", inboxes.get(at)) for at, each in enumerate(ids))

    yield from ((f"{name} of the world", value) for name, value in snapshot["world"].items())
    yield from ((f"the world's {name}", each) for name, each in snapshot.items() if name != "world")


def _unkept(run: Run[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that no checkpoint keeps, as far as there is a form for them."""
    owners: Sequence[Any] = [run.world, *run.agents]
    for cls in dict.fromkeys(map(type, owners)):
        for name, field in getattr(cls, "fields", {}).items():
            if field.declared.kept:
                continue
            code = Encoder(run.agents, type(run.world).__module__)
            those = [each for each in owners if type(each) is cls]
            with suppress(SimulationError):  # there is no form for it
                yield f"{cls.__name__}.{name}", code.column(those, attrgetter(name), name)


@contextmanager
def watching(files: Collection[str]) -> Iterator[dict[Note, None]]:
    """Note calls in some files of what gives another answer each time: time and random numbers.

    Args:
        files: Names of the files, as their code objects have them.
    """
    notes: dict[Note, None] = {}

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            caller, found = frame, _builtin(called)
        elif event == "call" and frame.f_back is not None:
            caller, found = frame.f_back, _written_in_python(frame)
        else:
            return

        if found is not None and caller.f_code.co_filename in files:
            place = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
            notes[(*found, place)] = None

    sys.setprofile(look)
    try:
        yield notes
    finally:
        sys.setprofile(None)


def _builtin(called: Any) -> tuple[str, str] | None:
    name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    module = getattr(called, "__module__", None)
    if module == _OF_TIME and name not in _NOT_A_CLOCK:
        return CLOCK, f"time.{name}()"
    if getattr(called, "__qualname__", "") in _NOWS:
        return CLOCK, f"{called.__qualname__}()"
    if name == "urandom":
        return ENTROPY, "os.urandom()"
    if isinstance(owner, random.Random):
        return _generator(owner, name)
    if type(owner).__name__ in _OF_NUMPY and type(owner).__module__.startswith("numpy"):
        return GENERATOR, f"numpy.random's {name}()"

    return None


def _written_in_python(frame: FrameType) -> tuple[str, str] | None:
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    if file == random.__file__:
        return _generator(frame.f_locals.get("self"), name)
    if file in _LIBRARIES and not name.startswith("_"):
        return ENTROPY, f"{_LIBRARIES[file]}.{name}()"

    return None


def _generator(owner: Any, name: str) -> tuple[str, str] | None:
    if name.startswith("_") or name == "getstate":
        return None
    if isinstance(owner, random.SystemRandom):
        return ENTROPY, f"random.SystemRandom's {name}()"

    return GENERATOR, f"random.{name}()"


def sets_in(files: Iterable[Path]) -> list[str]:
    """Return where code makes sets, as ``file:line``."""
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
    if isinstance(value, (Statechart, type, ModuleType, Enum)) or depth > _DEEPEST:
        return ""
    if isinstance(value, random.Random):
        return repr(value.getstate()) if not isinstance(value, random.SystemRandom) else ""
    if hasattr(value, "bit_generator"):  # numpy's
        return str(value.bit_generator.state)
    if hasattr(value, "cache_info"):
        return str(value.cache_info())
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        parts = [value.__defaults__, value.__kwdefaults__, vars(value), cells]
        return "".join(_text(part, depth + 1) for part in parts)
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"{type(value).__name__}({[_text(each, depth + 1) for each in value]})"
    if isinstance(value, dict):
        return str([(_text(a, depth + 1), _text(b, depth + 1)) for a, b in value.items()])

    shown = ""
    # a user's own repr may fail
    with suppress(Exception):
        shown = repr(value)
    own = getattr(value, "__dict__", None)

    return shown if not isinstance(own, dict) else f"{shown} {_text(own, depth + 1)}"


def _is_filled(cell: Any) -> bool:
    try:
        return bool(cell.cell_contents is not None)
    except ValueError:
        return False


if __name__ == "__main__":
    rehearsal = Rehearsal(Path(sys.argv[1]))
    attempt(rehearsal, rehearsal.resumed if rehearsal.way == "resumed" else rehearsal.straight)
