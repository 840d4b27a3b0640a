"""One run of a rehearsal, in a process of its own: ``python -m prism.worlds._rehearsing JOB``.

A file per round tells what the fields were when it ended, and what was logged in it. A straight run
goes through all rounds, and so does one that goes backwards, which gives the last agent its turn
first; a resumed one makes each round in a process that has not seen the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from operator import attrgetter
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

import orjson

from prism.errors import SimulationError
from prism.runlog import RunLog, SimulatedClock
from prism.worlds._addresses import code_of
from prism.worlds._loop import Run
from prism.worlds._options import WorldRun
from prism.worlds._outside import Note, kept_outside, watching
from prism.worlds._snapshot import Encoder

ERROR, NOTES = "error.json", "notes.json"
STRAIGHT, RESUMED, BACKWARDS = "straight", "resumed", "backwards"

_FAILED = 3


class _Enough(BaseException):
    """Ends a run after the round that was to be made."""


class Rehearsal:
    """One run of a world, all of it or a round.

    Args:
        job: What to run: ``config``, ``out`` (a folder) and ``way``.
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = job
        self.out = Path(job["out"])
        # other numbers of objects of every size in each process, so that addresses differ, too
        self._padding = [bytes(size) for size in range(0, 1024, 16) for _ in range(job["padding"])]
        self.options = WorldRun.from_config(job["config"], self.out / "run.json")
        cls = self.options._class()
        files = code_of(cls, str(self.options.world).rpartition(":")[0]).values()
        self.files = {str(file) for file in files}
        self.round = -1

    def straight(self) -> None:
        """Run all rounds, and note what is called and what changes outside of fields."""
        with ExitStack() as stack:
            calls = stack.enter_context(watching(self.files))
            log, run = self._begin(stack, "log.jsonl")
            before = kept_outside(self._modules())
            stack.callback(lambda: self._note(calls, before))
            done = self._writing(log, run)
            done(None)
            run.run(done)

    def _note(self, calls: Iterable[Note], before: Mapping[str, str]) -> None:
        after = kept_outside(self._modules())
        changed = [name for name in after if before.get(name) != after[name]]
        _write(self.out / NOTES, {"calls": list(calls), "changed": changed})

    def one_round(self, number: int) -> None:
        """Make one round from what the one before it has left."""
        with ExitStack() as stack:
            log, run = self._begin(stack, f"log_{number}.jsonl")
            done = self._writing(log, run)
            if number == 1:
                done(None)
            else:
                self.round = number - 1
                rounds = [_read(self.out / f"{each}.json") for each in range(number)]
                lines = [json.loads(line) for each in rounds for line in each["lines"]]
                run.restore(rounds[-1]["snapshot"], lines)

            def enough(summary: Any) -> None:
                done(summary)
                if summary.number < run.rounds:
                    raise _Enough

            with suppress(_Enough):
                run.run(enough)

    def resumed(self) -> None:
        """Make each round in a process that has not seen the others."""
        for number in range(1, int(self.options.rounds or 1) + 1):
            if self._apart(number) != 0:
                return

    def _apart(self, number: int) -> int:
        if not hasattr(os, "fork"):
            job = self.out / f"job_{number}.json"
            _write(job, {**self.job, "way": "round", "round": number})
            return subprocess.run(
                [sys.executable, "-m", __spec__.name, job], check=False
            ).returncode

        child = os.fork()
        if child == 0:
            os._exit(attempt(self, lambda: self.one_round(number)))
        _, status = os.waitpid(child, 0)

        return os.waitstatus_to_exitcode(status)

    def _begin(self, stack: ExitStack, name: str) -> tuple[RunLog, Run[Any]]:
        clock = SimulatedClock()
        log = stack.enter_context(RunLog(self.out / name, clock))
        run = self.options.prepare()(log.logger, clock)
        run._host.goes_backwards = self.job["way"] == BACKWARDS
        return log, run

    def _writing(self, log: RunLog, run: Run[Any]) -> Callable[[Any], None]:
        told = 0

        def write(summary: Any) -> None:
            nonlocal told
            self.round = 0 if summary is None else summary.number
            log.flush()
            content = log.path.read_bytes()
            _write(
                self.out / f"{self.round}.json",
                {
                    "kinds": [kind.__name__ for kind in dict.fromkeys(map(type, run.agents))],
                    "snapshot": run.snapshot(),
                    "unkept": _unkept(run),
                    "lines": content[told:].decode().splitlines(),
                },
            )
            told = len(content)

        return write

    def _modules(self) -> list[ModuleType]:
        return [
            module
            for module in list(sys.modules.values())
            if getattr(module, "__file__", None) in self.files
        ]


def attempt(rehearsal: Rehearsal, do: Callable[[], object]) -> int:
    """Do something; what goes wrong is written down. Return the exit status."""
    try:
        do()
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
        _write(rehearsal.out / ERROR, told)
        return _FAILED

    return 0


def _unkept(run: Run[Any]) -> dict[str, Any]:
    """Return the fields that no checkpoint keeps, as far as there is a form for them."""
    found = {}
    owners: Sequence[Any] = [run.world, *run.agents]
    for cls in dict.fromkeys(map(type, owners)):
        for name, field in getattr(cls, "fields", {}).items():
            if field.declared.kept:
                continue
            code = Encoder(run.agents, type(run.world).__module__)
            those = [each for each in owners if type(each) is cls]
            with suppress(SimulationError):  # there is no form for it
                found[f"{cls.__name__}.{name}"] = code.column(those, attrgetter(name), name)

    return found


def _write(path: Path, content: Any) -> None:
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS))


def _read(path: Path) -> Any:
    return orjson.loads(path.read_bytes())


def main(path: str) -> int:
    """Do a job; return the exit status."""
    job = _read(Path(path))
    rehearsal = Rehearsal(job)
    ways: Mapping[str, Callable[[], object]] = {
        STRAIGHT: rehearsal.straight,
        BACKWARDS: rehearsal.straight,
        RESUMED: rehearsal.resumed,
        "round": lambda: rehearsal.one_round(job["round"]),
    }

    return attempt(rehearsal, ways[job["way"]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
