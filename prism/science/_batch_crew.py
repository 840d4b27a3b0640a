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
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Self

from prism.errors import PrismError
from prism.files import make_folder
from prism.llm._credentials import with_credentials
from prism.runs import Observer
from prism.runs._folder import is_begun
from prism.runs._ledger import Ledger, lending
from prism.runs._running import carry_out, telling_warnings
from prism.science._batch_folder import LOGS, TRACEBACK_NAME, BatchFolder
from prism.science._batch_tables import is_of_feed, measure_log, measure_run, with_measures
from prism.social import Feed
from prism.worlds import Run, resume

if TYPE_CHECKING:
    from prism.science._plan import Configuration

BatchStatus = Literal["complete", "failed", "stopped", "not begun"]

MOST_DEATHS = 2
"""A run is resumed so often when the process that carries it out dies; then it has failed."""

COMPLETE: Final = "complete"
FAILED: Final = "failed"
STOPPED: Final = "stopped"

_logger = logging.getLogger("prism.science")

_SECONDS_TO_END = 5.0
_SECONDS_BETWEEN_ROUNDS = 0.1
"""Rounds that end sooner after the last one that was told are not told."""

_MAIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); " + (
    "from prism.science._batch_crew import main; main()"
)

Message = Mapping[str, Any]
Told = tuple["_Worker | None", Message | None]
"""Who says what: nobody interrupts, and no message is the end of a process."""


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One run of a batch.

    Args:
        name: What it is called: its configuration and seed, which is its folder, too.
        configuration: Its configuration.
        seed: Seed of every random number.
        status: How far it is: ``complete``, ``failed``, ``stopped`` if it can be resumed, or
            ``not begun``.
        error: Why it failed, if it did.
    """

    name: str
    configuration: Configuration
    seed: int
    status: BatchStatus = "not begun"
    error: str | None = None


class BatchObserver:
    """What a batch says while it goes on. This one logs it to ``prism.science``."""

    def started(self, runs: Sequence[BatchRun]) -> None:
        """Receive all runs, with how far each is, before the first one begins or is resumed."""

    def round_ended(self, run: BatchRun, rounds: int) -> None:
        """Receive a run and how many rounds it has made."""

    def run_ended(self, run: BatchRun) -> None:
        """Receive a run that has ended, or was stopped."""
        level = logging.WARNING if run.status == FAILED else logging.INFO
        _logger.log(level, "%s: %s", run.name, run.error or run.status)

    def note(self, message: str) -> None:
        """Receive what is good to know."""
        _logger.info(message)

    def warn(self, run: BatchRun, message: str) -> None:
        """Receive what went wrong in a run and was dealt with."""
        _logger.warning("%s: %s", run.name, message)


@dataclass(slots=True)
class Crew(AbstractContextManager["Crew"]):
    """Carries out runs in several processes, which are kept until the block ends.

    Args:
        folder: The folder of the batch.
        how: What every process is told at first.
        workers: How many processes.
        observer: Whom to tell.
        ledger: The budget that they share, if any.
        lock: The file that is locked meanwhile: the processes hold it, too.
    """

    folder: BatchFolder
    how: Message
    workers: int
    observer: BatchObserver
    ledger: Ledger | None
    lock: int
    _configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _queue: SimpleQueue[Told] = field(default_factory=SimpleQueue)
    _waiting: deque[BatchRun] = field(default_factory=deque)
    _failures: dict[str, str] = field(default_factory=dict)
    _crew: list[_Worker] = field(default_factory=list)
    _deaths: Counter[str] = field(default_factory=Counter)
    _interruptions: int = 0

    def __enter__(self) -> Self:
        """Start nobody before there are runs."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End all processes: at once if something went wrong."""
        if kind is not None:
            for worker in self._crew:
                worker.process.kill()
        for worker in self._crew:
            worker.end()

    def carry_out(self, runs: Sequence[BatchRun], configs: Mapping[str, Mapping[str, Any]]) -> None:
        """Carry out runs to their end.

        Args:
            runs: The runs.
            configs: What each of them is, by its name.

        Raises:
            KeyboardInterrupt: After an interruption, when the runs under way have a checkpoint;
                after a second one at once.
        """
        self._waiting, self._configs = deque(runs), configs
        with self._interruptible():
            for worker in self._crew:
                self._employ(worker)
            # `_start` takes the first run that waits
            while len(self._crew) < self.workers and self._waiting:
                self._start(self._free_sharer())
            while any(each.run for each in self._crew):
                self._hear(*self._queue.get())

        if self._interruptions:
            raise KeyboardInterrupt

    def _free_sharer(self) -> int:
        taken = {each.sharer for each in self._crew}
        return next(number for number in range(self.workers) if number not in taken)

    def _start(self, sharer: int) -> None:
        worker = _Worker({**self.how, "sharer": sharer}, self._queue, self.lock)
        self._crew.append(worker)
        self._employ(worker)

    def _employ(self, worker: _Worker) -> None:
        worker.run = None
        if self._waiting and not self._interruptions:
            worker.run = run = self._waiting.popleft()
            folder = str(self.folder.path / run.name)
            worker.say(
                {"run": {"folder": folder, "name": run.name, "config": self._configs[run.name]}}
            )

    def _hear(self, worker: _Worker | None, message: Message | None) -> None:
        if worker is None:
            self._interrupt()
        elif message is None:
            self._bury(worker)
        elif worker.run is None:
            return
        elif "round" in message:
            self.observer.round_ended(worker.run, message["round"])
        elif "warning" in message:
            self.observer.warn(worker.run, message["warning"])
        elif "ended" in message:
            if message["row"] is not None:
                self.folder.add_row(message["row"])
            self._ended(worker.run, message["ended"], message["error"])
            self._employ(worker)

    def _ended(self, run: BatchRun, status: BatchStatus, error: str | None) -> None:
        if status == FAILED:
            self._failures[run.name] = error or ""
            self.folder.note_failures(self._failures)
        self.observer.run_ended(replace(run, status=status, error=error))

    def _interrupt(self) -> None:
        self._interruptions += 1
        if self._interruptions > 1:
            raise KeyboardInterrupt

        self.observer.note("stopping when the rounds under way have ended; Ctrl-C stops at once")
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
            self._deaths[run.name] += 1
            if self._interruptions:
                self._ended(run, STOPPED, None)
            elif self._deaths[run.name] > MOST_DEATHS:
                problem = f"its process {how}, as the {MOST_DEATHS} before it that resumed the run"
                self._ended(run, FAILED, problem)
            else:
                self.observer.warn(run, f"its process {how}: the run is resumed")
                # before those that have not begun, so that a batch does not end on it
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


class _Worker:
    """One process, and the thread that listens to it."""

    def __init__(self, how: Message, queue: SimpleQueue[Told], lock: int) -> None:
        self.sharer: int = how["sharer"]
        self.run: BatchRun | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, json.dumps(_search_path())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **_apart(lock),
        )
        self._queue = queue
        self._thread = threading.Thread(target=self._listen, name="prism-batch", daemon=True)
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
        # it ends by itself where the output does
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
    Thread(target=_listen, args=(messages, stop), name="prism-batch", daemon=True).start()

    how = messages.get()
    teller = _Teller(out, stop)
    with _budget(how), telling_warnings(teller):
        while True:
            message = messages.get()
            # a stop before the run ends the one before it, which has ended
            status, error, row = _carry_out(message["run"], how, teller)
            teller.tell(ended=status, error=error, row=row)


def _take_output() -> IO[str]:
    """Keep standard output for messages; what a world prints goes to standard error."""
    # what a world prints must not be taken for a message
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
        self._told = -_SECONDS_BETWEEN_ROUNDS

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
        if (now := time.monotonic()) - self._told >= _SECONDS_BETWEEN_ROUNDS:
            self._told = now
            self.tell(round=summary.number)


def _carry_out(
    run: Message, how: Message, teller: _Teller
) -> tuple[str, str | None, dict[str, Any] | None]:
    """Begin or resume one run.

    Returns:
        How it has ended, what went wrong, and its row where no folder is to hold it.
    """
    folder = Path(run["folder"])
    trace = folder / TRACEBACK_NAME
    try:
        if how["keep"] == LOGS:
            row = None
            _in_its_folder(run, how, teller)
        else:
            row = _as_a_row(run, how, teller)
    except KeyboardInterrupt:
        return STOPPED, None, None
    except Exception as error:  # of the world's own code, too
        with suppress(OSError):
            make_folder(folder)
            trace.write_text(traceback.format_exc())
        return FAILED, _one_line(_said(error, folder)), None

    trace.unlink(missing_ok=True)
    return COMPLETE, None, row


def _said(error: Exception, folder: Path) -> str:
    if isinstance(error, PrismError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or folder}: {error.strerror or error}"

    return f"{type(error).__name__}: {error}"


def _in_its_folder(run: Message, how: Message, teller: _Teller) -> None:
    folder = Path(run["folder"])
    if is_begun(folder):
        outcome = resume(folder, hosts=how["hosts"], **_settings(how, teller))
    else:
        outcome = _made(run, how).keep(folder, **_settings(how, teller))
    if outcome is not None and is_of_feed(outcome.summary["results"]):
        # while it is at hand, and by as many processes as there are
        measure_run(Path(how["plan"]).parent, run["name"])


def _as_a_row(run: Message, how: Message, teller: _Teller) -> dict[str, Any]:
    """Carry out a run that leaves no folder; return what the batch keeps of it."""
    made, settings = _made(run, how), _settings(how, teller)
    if not issubclass(made.world_class, Feed):
        summary = carry_out(made, None, **settings).summary
        results = summary["results"]
    else:
        # what the feed's measures are made from is its log
        with TemporaryDirectory() as place:
            log = Path(place) / "run"
            summary = made.keep(log, **settings).summary
            results = with_measures(summary["results"], measure_log(log))

    return {"run": run["name"], "config": summary["config"], "results": results}


def _made(run: Message, how: Message) -> Run[Any]:
    plan = Path(how["plan"])
    config = with_credentials(run["config"], how["hosts"], plan)
    return Run.from_config(config, plan)


def _settings(how: Message, teller: _Teller) -> dict[str, Any]:
    return {
        "on_round": teller.round_ended,
        "checkpoint_every": how["checkpoint_every"],
        "observer": teller,
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _budget(how: Message) -> AbstractContextManager[None]:
    if how["ledger"] is None:
        return nullcontext()

    return lending(Ledger(Path(how["ledger"]), how["sharer"], **how["budget"]))
