"""Processes that carry out the runs of a batch, and whoever watches over them.

A process is told on its input what to do: a line of JSON is a message. The first says how the batch
is carried out, ``run`` is a run to begin or to resume, ``stop`` ends the run under way behind a
checkpoint. Where the input ends, the process that wrote it is gone: this one ends at once, as every
run can be resumed.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import IO, Any

from prism.errors import PrismError
from prism.runs import Observer, Outcome, RunOptions, begin, resume
from prism.runs._credentials import with_credentials
from prism.runs._folder import RunFolder
from prism.runs._ledger import Ledger, lending
from prism.science._batch_tables import is_of_feed, measure_run
from prism.social import SocialRun
from prism.worlds import WorldRun

MOST_DEATHS = 2
"""A run is resumed so often when the process that carries it out dies; then it has failed."""

COMPLETE, FAILED, STOPPED = "complete", "failed", "stopped"

_NOTED = ("prism.agents", "prism.llm", "prism.runs.models", "prism.statechart")
"""Loggers whose warnings belong to a run."""

_SECONDS_TO_END = 5.0
_MAIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); " + (
    "from prism.science._batch_crew import main; main()"
)

Message = Mapping[str, Any]
Told = tuple["_Worker | None", Message | None]
"""Who says what: nobody interrupts, and no message is the end of a process."""


@dataclass(slots=True)
class Watcher:
    """What to do with what the processes say.

    Args:
        round_ended: Called with a run and the rounds that it has made.
        run_ended: Called with a run, how it has ended, and what went wrong.
        warn: Called with a run and what went wrong in it and was dealt with.
        note: Called with what is good to know of all.
    """

    round_ended: Callable[[str, int], object]
    run_ended: Callable[[str, str, str | None], object]
    warn: Callable[[str, str], object]
    note: Callable[[str], object]


@dataclass(slots=True)
class Crew:
    """Carries out runs in several processes.

    Args:
        how: What every process is told at first.
        workers: How many processes.
        watcher: Whom to tell.
        ledger: The budget that they share, if any.
        lock: The file that is locked meanwhile: the processes hold it, too.
    """

    how: Message
    workers: int
    watcher: Watcher
    ledger: Ledger | None
    lock: int
    _queue: SimpleQueue[Told] = field(default_factory=SimpleQueue)
    _jobs: dict[str, Message] = field(default_factory=dict)
    _waiting: deque[str] = field(default_factory=deque)
    _crew: list[_Worker] = field(default_factory=list)
    _deaths: Counter[str] = field(default_factory=Counter)
    _interruptions: int = 0

    def carry_out(self, jobs: Mapping[str, Message]) -> None:
        """Carry out runs to their end.

        Args:
            jobs: What to tell a process of each run, by its name.

        Raises:
            KeyboardInterrupt: After an interruption, when the runs under way have a checkpoint;
                after a second one at once.
        """
        self._jobs = dict(jobs)
        self._waiting = deque(jobs)
        with self._interruptible(), self._ending():
            for sharer in range(min(self.workers, len(jobs))):
                self._start(sharer)
            while any(each.run for each in self._crew):
                self._hear(*self._queue.get())

        if self._interruptions:
            raise KeyboardInterrupt

    def _start(self, sharer: int) -> None:
        worker = _Worker({**self.how, "sharer": sharer}, self._queue, self.lock)
        self._crew.append(worker)
        self._employ(worker)

    def _employ(self, worker: _Worker) -> None:
        worker.run = None
        if self._waiting and not self._interruptions:
            worker.run = self._waiting.popleft()
            worker.say(self._jobs[worker.run])

    def _hear(self, worker: _Worker | None, message: Message | None) -> None:
        if worker is None:
            self._interrupt()
        elif message is None:
            self._bury(worker)
        elif worker.run is None:
            return
        elif "round" in message:
            self.watcher.round_ended(worker.run, message["round"])
        elif "warning" in message:
            self.watcher.warn(worker.run, message["warning"])
        elif "ended" in message:
            self.watcher.run_ended(worker.run, message["ended"], message["error"])
            self._employ(worker)

    def _interrupt(self) -> None:
        self._interruptions += 1
        if self._interruptions > 1:
            raise KeyboardInterrupt

        self.watcher.note("stopping when the rounds under way have ended; Ctrl-C stops at once")
        for worker in self._crew:
            worker.say({"stop": True})

    def _bury(self, worker: _Worker) -> None:
        """Have the run of a process that died resumed by another one."""
        self._crew.remove(worker)
        worker.end()
        how = _cause(worker.process.wait())
        if self.ledger is not None:
            self.ledger.forget(worker.sharer)

        run = worker.run
        if run is not None:
            self._deaths[run] += 1
            if self._interruptions:
                self.watcher.run_ended(run, STOPPED, None)
            elif self._deaths[run] > MOST_DEATHS:
                problem = f"its process {how}, as the {MOST_DEATHS} before it that resumed the run"
                self.watcher.run_ended(run, FAILED, problem)
            else:
                self.watcher.warn(run, f"its process {how}: the run is resumed")
                self._waiting.appendleft(run)

        if self._waiting and not self._interruptions:
            self._start(worker.sharer)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Take Ctrl-C as a message, so that it ends nothing halfway."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        before = signal.signal(signal.SIGINT, lambda *_: self._queue.put((None, None)))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End all processes in the end: at once if something went wrong."""
        try:
            yield
        except BaseException:
            for worker in self._crew:
                worker.process.kill()
            raise
        finally:
            for worker in self._crew:
                worker.end()


class _Worker:
    """One process, and the thread that listens to it."""

    def __init__(self, how: Message, queue: SimpleQueue[Told], lock: int) -> None:
        self.sharer: int = how["sharer"]
        self.run: str | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, json.dumps(_search_path())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **_apart(lock),
        )
        self._queue = queue
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.say(how)

    def say(self, message: Message) -> None:
        assert self.process.stdin is not None
        # one that died is heard of by its end
        with suppress(OSError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def end(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # one that was killed may leave half a line
            if line.endswith(b"\n"):
                self._queue.put((self, json.loads(line)))
        self._queue.put((self, None))


def _apart(lock: int) -> dict[str, Any]:
    """Return what keeps a Ctrl-C at the terminal from a process, and has it hold the lock, too."""
    return {"process_group": 0, "pass_fds": (lock,)} if os.name == "posix" else {}


def _search_path() -> Sequence[str]:
    # the current folder has no name there in an interactive session
    return [each or os.getcwd() for each in sys.path]  # noqa: PTH109


def _cause(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


# What such a process does


def main() -> None:
    """Carry out runs until the input ends."""
    out = _take_output()
    messages: SimpleQueue[Message] = SimpleQueue()
    stop = Event()
    Thread(target=_listen, args=(messages, stop), daemon=True).start()

    how = messages.get()
    teller = _Teller(out, stop)
    with _budget(how), _telling_warnings(teller):
        while True:
            message = messages.get()
            # a stop before the run ends the one before it, which has ended
            status, error = _carry_out(message["run"], how, teller)
            teller.tell(ended=status, error=error)


def _take_output() -> IO[str]:
    """Keep standard output for messages; what a world prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _listen(messages: SimpleQueue[Message], stop: Event) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "stop" in message:
            stop.set()
        else:
            messages.put(message)

    os._exit(1)


class _Teller(Observer):
    """Tells whoever carries out the batch what goes on.

    Args:
        out: Where messages go.
        stop: Set if the run is to stop.
    """

    def __init__(self, out: IO[str], stop: Event) -> None:
        self._out = out
        self._stop = stop

    def tell(self, **message: Any) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def note(self, message: str) -> None:
        """Say nothing of a single run that goes well."""

    def warn(self, message: str) -> None:
        self.tell(warning=message)

    def is_to_stop(self) -> bool:
        return self._stop.is_set()

    def started(self, run: Any) -> None:
        self.tell(round=len(run.finished))

    def round_ended(self, summary: Any) -> None:
        self.tell(round=summary.number)


def _carry_out(run: Message, how: Message, teller: _Teller) -> tuple[str, str | None]:
    """Begin or resume one run; return how it has ended, and what went wrong."""
    folder = Path(run["folder"])
    outcome: Outcome[Any] | None
    kind: type[RunOptions[Any]] = WorldRun if "world" in run["config"] else SocialRun
    settings: dict[str, Any] = {
        "on_round": teller.round_ended,
        "checkpoint_every": how["checkpoint_every"],
        "observer": teller,
    }
    try:
        if RunFolder(folder).is_begun:
            outcome = resume(folder, kind, hosts=how["hosts"], **settings)
        else:
            plan = Path(how["plan"])
            config = with_credentials(run["config"], how["hosts"], plan)
            outcome = begin(kind.from_config(config, plan), folder, **settings)
        if outcome is not None and is_of_feed(outcome.summary["results"]):
            # while it is at hand, and by as many processes as there are
            measure_run(Path(how["plan"]).parent, run["name"])
    except KeyboardInterrupt:
        return STOPPED, None
    except PrismError as error:
        return FAILED, _one_line(str(error))
    except OSError as error:
        return FAILED, _one_line(f"{error.filename or folder}: {error.strerror or error}")
    except Exception as error:  # of the world's own code
        logging.getLogger("prism.science").warning("%s failed", folder, exc_info=error)
        return FAILED, _one_line(f"{type(error).__name__}: {error}")

    return COMPLETE, None


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _budget(how: Message) -> AbstractContextManager[None]:
    if how["ledger"] is None:
        return nullcontext()

    return lending(Ledger(Path(how["ledger"]), how["sharer"], **how["budget"]))


@contextmanager
def _telling_warnings(teller: _Teller) -> Iterator[None]:
    """Tell what is not in a run's log: about agents, triggers, a budget, prompts or a server."""
    handler = _Handler(teller)
    loggers = [logging.getLogger(name) for name in _NOTED]
    for logger in loggers:
        logger.addHandler(handler)
    yield


class _Handler(logging.Handler):
    def __init__(self, teller: _Teller) -> None:
        super().__init__(logging.WARNING)
        self._teller = teller

    def emit(self, record: logging.LogRecord) -> None:
        # an event of a log
        if not hasattr(record, "prism"):
            self._teller.warn(record.getMessage())
