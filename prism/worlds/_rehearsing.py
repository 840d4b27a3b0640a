"""One run of a rehearsal, in a process of its own: ``python -m prism.worlds._rehearsing FOLDER``.

A file per round tells what the fields were when it ended, and what was logged in it. A straight run
goes through all rounds, and so does one that goes backwards, which gives the last agent its turn
first; a resumed one makes each round in a process that has not seen the others.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from operator import attrgetter
from pathlib import Path
from traceback import walk_tb
from typing import Any

import orjson

from prism.errors import SimulationError
from prism.runlog import RunLog, SimulatedClock
from prism.worlds._addresses import code_of
from prism.worlds._loop import Run
from prism.worlds._options import WorldRun
from prism.worlds._outside import Note, kept_outside, watching
from prism.worlds._snapshot import Encoder


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
        # other numbers of objects of every size in each process, so that addresses differ, too
        self._padding = [bytes(size) for size in range(0, 1024, 16) for _ in range(job["padding"])]
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


if __name__ == "__main__":
    rehearsal = Rehearsal(Path(sys.argv[1]))
    attempt(rehearsal, rehearsal.resumed if rehearsal.way == "resumed" else rehearsal.straight)
