"""Submit the runs of a batch to an executor, and receive their results."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Self

from prism._version import __version__
from prism.errors import InputError
from prism.runs._status import read_heartbeat
from prism.science._batch_child import (
    FAILED,
    STOPPED,
    Message,
    carry,
    dismiss,
    listeners,
    search_path,
)
from prism.science._batch_folder import STOP, STOP_NOW, BatchFolder

if TYPE_CHECKING:
    from prism.science._plan import Configuration

BatchStatus = Literal["complete", "failed", "stopped", "not begun"]

MOST_DEATHS = 2
"""How often a run is resumed after its process has died, before it counts as failed."""

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_END = 10.0
_SECONDS_IDLE = 60.0
"""Seconds without a run after which a child process ends, on any machine."""

_logger = logging.getLogger("prism.science")


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One run of a batch.

    Args:
        name: Its name and folder: the configuration and the seed.
        configuration: Its configuration.
        seed: The seed of all its random numbers.
        status: ``complete``, ``failed``, ``stopped`` if it can be resumed, or ``not begun``.
        error: Why it failed, if it did.
    """

    name: str
    configuration: Configuration
    seed: int
    status: BatchStatus = "not begun"
    error: str | None = None


class BatchObserver:
    """What a batch reports while it runs. This one logs it to ``prism.science``."""

    def started(self, runs: Sequence[BatchRun]) -> None:
        """Receive all runs with their status, before the first one begins or resumes."""

    def round_ended(self, run: BatchRun, rounds: int) -> None:
        """Receive a run and the number of rounds it has completed."""

    def run_ended(self, run: BatchRun) -> None:
        """Receive a run that has ended or was stopped."""
        level = logging.WARNING if run.status == FAILED else logging.INFO
        _logger.log(level, "%s: %s", run.name, run.error or run.status)

    def note(self, message: str) -> None:
        """Receive a remark."""
        _logger.info(message)

    def warn(self, run: BatchRun, message: str) -> None:
        """Receive a problem that was dealt with."""
        _logger.warning("%s: %s", run.name, message)


@dataclass(slots=True)
class Door(AbstractContextManager["Door"]):
    """Submits runs to an executor; each is carried out in a process of prism's own.

    Args:
        folder: The folder of the batch.
        session: The session that holds it.
        how: How the batch is carried out: ``keep``, ``hosts``.
        executor: Carries out the runs.
        at_a_time: Number of runs to submit at a time.
        observer: Receives the progress.
    """

    folder: BatchFolder
    session: str
    how: Message
    executor: Executor
    at_a_time: int
    observer: BatchObserver
    _configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _queue: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    _waiting: deque[BatchRun] = field(default_factory=deque)
    _under_way: dict[Future[Message], BatchRun] = field(default_factory=dict)
    _failures: dict[str, str] = field(default_factory=dict)
    _deaths: Counter[str] = field(default_factory=Counter)
    _rounds: dict[str, int] = field(default_factory=dict)
    _interruptions: int = 0
    _problem: str | None = None

    def __enter__(self) -> Self:
        """Register for reports of runs in this process."""
        self.how = {
            **self.how,
            "session": self.session,
            "prism": __version__,
            "folder": str(self.folder.path.resolve()),
            "cwd": os.getcwd(),  # noqa: PTH109
            "search_path": search_path(),
            "seconds_idle": _SECONDS_IDLE,
        }
        listeners[self.session] = lambda name, message: self._queue.put((name, message))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Make all child processes end, at once if something went wrong."""
        if kind is not None:
            self.folder.give_order(STOP_NOW)
            for future in self._under_way:
                future.cancel()
            wait(self._under_way, _SECONDS_TO_END)
        del listeners[self.session]
        dismiss(self.session)

    def carry_out(self, runs: Sequence[BatchRun], configs: Mapping[str, Mapping[str, Any]]) -> None:
        """Carry out runs to their end.

        Args:
            runs: The runs.
            configs: Their configurations by name.

        Raises:
            InputError: If the executor broke, or one of its machines cannot carry it out.
            KeyboardInterrupt: After an interruption, once the current rounds have ended;
                after a second one, at once.
        """
        self._waiting, self._configs = deque(runs), configs
        with self._interruptible():
            self._submit()
            while self._under_way:
                try:
                    self._hear(self._queue.get(timeout=_SECONDS_BETWEEN_LOOKS))
                except Empty:
                    self._look()
                self._submit()

        if self._problem is not None:
            raise InputError(self._problem, path=self.folder.path)
        if self._interruptions:
            raise KeyboardInterrupt

    @property
    def _is_stopping(self) -> bool:
        return bool(self._interruptions or self._problem)

    def _submit(self) -> None:
        while self._waiting and len(self._under_way) < self.at_a_time and not self._is_stopping:
            run = self._waiting.popleft()
            job = {"name": run.name, "config": self._configs[run.name]}
            try:
                future = self.executor.submit(carry, self.how, job)
            except (BrokenExecutor, RuntimeError) as error:  # one that was shut down
                self._waiting.appendleft(run)
                self._stop_for(f"the executor rejects runs ({error}): resume the batch")
                return
            self._under_way[future] = run
            future.add_done_callback(self._queue.put)

    def _hear(self, said: Any) -> None:
        if said is None:
            self._interrupt()
        elif isinstance(said, tuple):
            self._tell(*said)
        else:
            self._take(said)

    def _tell(self, name: str, message: Message) -> None:
        """Report a message of an active run."""
        for run in self._under_way.values():
            if run.name == name and "round" in message:
                self._rounds[name] = message["round"]
                self.observer.round_ended(run, message["round"])
            elif run.name == name and "warning" in message:
                self.observer.warn(run, message["warning"])

    def _look(self) -> None:
        """Report the progress of runs that no thread of this process listens to."""
        for run in self._under_way.values():
            heartbeat = read_heartbeat(self.folder.path / run.name)
            done = heartbeat["round"] - 1 if heartbeat else 0
            if done > self._rounds.get(run.name, 0):
                self._tell(run.name, {"round": done})

    def _take(self, future: Future[Message]) -> None:
        """Handle the result of a run, or of the attempt to carry it out."""
        run = self._under_way.pop(future)
        try:
            said = future.result()
        except CancelledError as error:
            said = {"died": f"was cancelled {error}".strip()}
        except BrokenExecutor as error:
            self._stop_for(f"the executor broke ({error}): resume the batch")
            said = {"status": STOPPED, "error": None, "row": None}
        except Exception as error:  # whatever an executor raises if it has lost a worker
            said = {"died": f"was lost ({type(error).__name__}: {error})"}

        for warning in said.get("warnings", ()):
            self.observer.warn(run, warning)
        if "refused" in said:
            self._stop_for(said["refused"])
            self._ended(run, STOPPED, None)
        elif "died" in said:
            self._bury(run, said["died"])
        else:
            if said["row"] is not None:
                self.folder.add_row(said["row"])
            self._ended(run, said["status"], said["error"])

    def _ended(self, run: BatchRun, status: BatchStatus, error: str | None) -> None:
        if status == FAILED:
            self._failures[run.name] = error or ""
            self.folder.note_failures(self._failures)
        self.observer.run_ended(replace(run, status=status, error=error))

    def _bury(self, run: BatchRun, how: str) -> None:
        """Let another process resume a run whose process died."""
        if self._is_stopping:
            self._ended(run, STOPPED, None)
            return

        self._deaths[run.name] += 1
        if self._deaths[run.name] > MOST_DEATHS:
            problem = f"its process {how}, like the {MOST_DEATHS} before it that resumed the run"
            self._ended(run, FAILED, problem)
        else:
            self.observer.warn(run, f"its process {how}: the run is resumed")
            # put it before runs that have not begun, so it does not delay the end of the batch
            self._waiting.appendleft(run)

    def _stop_for(self, problem: str) -> None:
        """End all runs after their rounds, because the batch cannot continue."""
        if self._problem is None:
            self._problem = problem
            self.folder.give_order(STOP)

    def _interrupt(self) -> None:
        self._interruptions += 1
        if self._interruptions > 1:
            raise KeyboardInterrupt

        self.observer.note(
            "stopping at the end of the current rounds; press Ctrl-C to stop at once"
        )
        self.folder.give_order(STOP)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Handle Ctrl-C as a message, so that it interrupts no operation halfway."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        before = signal.signal(signal.SIGINT, lambda *_: self._queue.put(None))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
