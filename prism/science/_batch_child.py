"""One run of a batch, carried out in a process of prism's own.

`carry` is the task that an executor receives, on this machine or another. It never carries out a
run in the worker itself, whose own threads may draw random numbers or print. Instead it starts a
process, and keeps it for the next run of its thread.

That process reads messages from its input, one line of JSON each. The first holds the settings of
the batch, ``run`` names a run to begin or resume, and ``stop`` ends the current run after
its round. The end of the input means that the writing process is gone. The child process then ends
at once, since every run can be resumed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from socket import gethostname
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import IO, Any, Final

import orjson

from prism._version import __version__
from prism.errors import PrismError
from prism.files import make_folder
from prism.llm._addresses import with_credentials
from prism.runs import Observer
from prism.runs._folder import TRACEBACK_NAME, is_begun
from prism.runs._running import carry_out, telling_warnings
from prism.science._batch_folder import (
    LOCK_NAME,
    LOGS,
    PLAN_NAME,
    STOP_NOW,
    BatchFolder,
)
from prism.science._batch_tables import is_of_feed, measure_log, measure_run, with_measures
from prism.worlds import Run, resume

COMPLETE: Final = "complete"
FAILED: Final = "failed"
STOPPED: Final = "stopped"

Message = Mapping[str, Any]
"""A message between driver, task and process: plain data."""

listeners: dict[str, Callable[[str, Message], object]] = {}
"""Receivers of rounds and warnings as they happen: drivers in this process, by session."""

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_END = 5.0
_SECONDS_BETWEEN_ROUNDS = 0.1
"""Fewest seconds between two reports of a round; rounds in between are not reported."""

_MAIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); " + (
    "from prism.science._batch_child import main; main()"
)


_STOPPED: Message = {"status": STOPPED, "error": None, "row": None}


def carry(how: Message, run: Message) -> Message:
    """Carry out one run in the process that this thread keeps, to its end.

    Args:
        how: How the batch is carried out, the same for all its runs.
        run: ``name`` and ``config``.

    Returns:
        ``status``, ``error``, ``row`` and ``warnings`` of a run that has ended; or ``died``, how
        its process ended; or ``refused``, why nothing can be run here.
    """
    problem = _problem_here(how)
    if problem is not None:
        return {"refused": problem}
    if BatchFolder(Path(how["folder"])).order(how["session"]) is not None:
        return _STOPPED

    while True:
        child = _kept_child(how)
        child.say({"run": run})
        ended = _outcome(child, how, run["name"])
        if ended is not None:
            return ended


def dismiss(session: str) -> None:
    """End the child processes that threads of this process keep for a batch."""
    for child in _children.pop(session, ()):
        child.end()


def search_path() -> list[str]:
    """Return the module search path; the current folder, unnamed in a session, is named."""
    return [each or os.getcwd() for each in sys.path]  # noqa: PTH109


# The task's side


def _problem_here(how: Message) -> str | None:
    """Return why a batch cannot be carried out on this machine; None if it can."""
    host, folder = gethostname(), BatchFolder(Path(how["folder"]))
    if how["prism"] != __version__:
        return f"{host} has prism {__version__}, not {how['prism']}: install the same version there"

    session = folder.session()
    if session is None:
        return f"{host} cannot see the batch's folder: all machines must share it under this path"
    if session != how["session"] or not folder.is_held:
        return (
            f"{host} finds {LOCK_NAME} held by nobody: the batch has ended, or locks of files do "
            "not reach that machine, which the folder's file system must let them"
        )

    return None


def _outcome(child: _Child, how: Message, name: str) -> Message | None:
    """Listen until a run has ended; return None if its process ended before the run began."""
    folder, warnings = BatchFolder(Path(how["folder"])), list[str]()
    begun = False
    while True:
        try:
            message = child.said.get(timeout=_SECONDS_BETWEEN_LOOKS)
        except Empty:
            child.obey(folder.order(how["session"]))
            continue

        if message is None:
            _let_go(child, how)
            status = child.end()
            if not begun and status == 0:
                return None
            if child.was_killed:
                return {**_STOPPED, "warnings": warnings}
            return {"died": _cause(status), "warnings": warnings}

        begun = True
        if "status" in message:
            return {**message, "warnings": warnings}
        listener = listeners.get(how["session"])
        if listener is not None:
            listener(name, message)
        elif "warning" in message:
            warnings.append(message["warning"])


class _Child:
    """A process that carries out runs, and the thread that listens to it."""

    def __init__(self, how: Message) -> None:
        self.session: str = how["session"]
        here = search_path()
        path = [*here, *(each for each in how["search_path"] if each not in here)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=how["cwd"] if Path(how["cwd"]).is_dir() else None,
            # only the driver handles a Ctrl-C at the terminal
            process_group=0 if os.name == "posix" else None,
        )
        self.was_killed = False
        self._is_stopping = False
        self.said: SimpleQueue[Message | None] = SimpleQueue()
        self._thread = Thread(target=self._listen, name="prism-batch", daemon=True)
        self._thread.start()
        self.say(how)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def say(self, message: Message) -> None:
        assert self._process.stdin is not None
        # if the process died, the end of its output tells
        with suppress(OSError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def obey(self, order: str | None) -> None:
        """Pass on an order to stop, if there is one."""
        if order == STOP_NOW:
            self.was_killed = True
            self._process.kill()
        elif order is not None and not self._is_stopping:
            self._is_stopping = True
            self.say({"stop": True})

    def end(self) -> int:
        """Make the process end, and return how it ended."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            status = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        # the loop ends when the output does
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

        return status

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # a killed process may leave an incomplete line
            if line.endswith(b"\n"):
                self.said.put(json.loads(line))
        self.said.put(None)


_kept = threading.local()
_children: dict[str, set[_Child]] = {}


def _kept_child(how: Message) -> _Child:
    """Return the process that this thread keeps for a batch, or a new one."""
    child: _Child | None = getattr(_kept, "child", None)
    if child is not None and (child.session != how["session"] or child.has_ended):
        _children.get(child.session, set()).discard(child)
        child.end()
        child = None
    if child is None:
        child = _kept.child = _Child(how)
        _children.setdefault(how["session"], set()).add(child)

    return child


def _let_go(child: _Child, how: Message) -> None:
    _children.get(how["session"], set()).discard(child)
    _kept.child = None


def _cause(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


# The process's side


def main() -> None:
    """Carry out runs until the input ends."""
    # freeze what is loaded, which every full collection during the runs would scan again
    gc.freeze()
    out = _take_output()
    messages: SimpleQueue[Message] = SimpleQueue()
    stop = Event()
    Thread(target=_listen, args=(messages, stop), name="prism-batch", daemon=True).start()

    how = messages.get()
    folder, teller = BatchFolder(Path(how["folder"])), _Teller(out, stop)
    with telling_warnings(teller):
        while True:
            try:
                run = messages.get(timeout=how["seconds_idle"])["run"]
            except Empty:
                return
            teller.tell(begun=run["name"])
            # a later driver waits until no run is active
            with folder.working():
                if folder.session() != how["session"]:
                    os._exit(1)
                status, error, row = _carried_out(run, how, teller)
            # a stop that arrives before the run belongs to the previous one, which has ended
            teller.tell(status=status, error=error, row=row)


def _take_output() -> IO[str]:
    """Keep standard output for messages; what a world prints goes to standard error."""
    # a world's output must not be mistaken for a message
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
    """Reports progress to the process that carries out the batch.

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
        """Ignore remarks; a single run reports only problems."""

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


def _carried_out(run: Message, how: Message, teller: _Teller) -> tuple[str, str | None, str | None]:
    """Begin or resume one run.

    Returns: Its status, its error, and its row as JSON if the batch keeps no folders.
    """
    folder = Path(how["folder"], run["name"])
    trace = folder / TRACEBACK_NAME
    try:
        if how["keep"] == LOGS:
            row = None
            _in_its_folder(folder, run, how, teller)
        else:
            row = _as_a_row(run, how, teller)
    except KeyboardInterrupt:
        return STOPPED, None, None
    except Exception as error:  # of the world's own code, too
        with suppress(OSError):
            make_folder(folder)
            trace.write_text(traceback.format_exc())
        return FAILED, " ".join(_said(error, folder).split()), None

    trace.unlink(missing_ok=True)
    return COMPLETE, None, row


def _said(error: Exception, folder: Path) -> str:
    if isinstance(error, PrismError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or folder}: {error.strerror or error}"

    return f"{type(error).__name__}: {error}"


def _in_its_folder(folder: Path, run: Message, how: Message, teller: _Teller) -> None:
    if is_begun(folder):
        outcome = resume(folder, hosts=how["hosts"], **_settings(teller))
    else:
        outcome = _made(run, how).keep(folder, **_settings(teller))
    if outcome is not None and is_of_feed(outcome.summary["results"]):
        # measured here, while the log is at hand, so that all processes share the work
        measure_run(Path(how["folder"]), run["name"])


def _as_a_row(run: Message, how: Message, teller: _Teller) -> str:
    """Carry out a run that leaves no folder, and return the row that the batch keeps."""
    made, settings = _made(run, how), _settings(teller)
    if not _is_feed(made.world_class):
        summary = carry_out(made, None, **settings).summary
        results = summary["results"]
    else:
        # the feed's measures are computed from its log
        with TemporaryDirectory() as place:
            log = Path(place) / "run"
            summary = made.keep(log, **settings).summary
            results = with_measures(summary["results"], measure_log(log))

    row = {"run": run["name"], "config": summary["config"], "results": results}
    row |= {"spent": summary["spent"]} if "spent" in summary else {}
    return orjson.dumps(row).decode()


def _is_feed(world: type) -> bool:
    # other worlds do not load the feed
    social = sys.modules.get("prism.social")
    return social is not None and issubclass(world, social.Feed)


def _made(run: Message, how: Message) -> Run[Any]:
    plan = Path(how["folder"]) / PLAN_NAME
    config = with_credentials(run["config"], how["hosts"], plan)
    return Run.from_config(config, plan)


def _settings(teller: _Teller) -> dict[str, Any]:
    return {"on_round": teller.round_ended, "observer": teller}
