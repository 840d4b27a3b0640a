"""A world to play with: the process that it runs in, and the folders of what was played."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shutil import copyfile, copytree, ignore_patterns, rmtree
from subprocess import PIPE, Popen
from tempfile import mkdtemp
from threading import RLock, Thread
from time import monotonic, sleep
from typing import Any

import orjson

from prism.drawing import Diagram
from prism.errors import InputError
from prism.report.charts import DIAGRAMS
from prism.runlog.reader import LOG_NAMES, read_line
from prism.runs.folder import is_begun

_SECONDS_TO_PAUSE = 3.0
_OVER = ("complete", "failed", "stopped")
_ORDERS: Mapping[str, Mapping[str, Any]] = {
    **{name: {} for name in ("play", "pause", "tick", "round")},
    "speed": {"seconds": int | float},
    "treat": {"name": str},
    "set": {"parameters": dict},
}
"""The orders that the world's process takes, with the types of their values."""


class Playing:
    """A world that is played, again and again.

    Args:
        given: What is played to begin with: ``world``, and as far as they are given ``agents``,
            ``seed``, ``rounds``, ``parameters`` and ``model``.

    Attributes:
        world: The name of the world.
        folder: The folder with the folder of the run that is played.
        charts: The charts of the world.
        version: Goes up with every change.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.world: str = options["world"]
        self.folder: Path = Path(mkdtemp(prefix="prism-play-"))
        self.charts: tuple[Diagram, ...] = ()
        self.version: int = 0
        self._options = dict(options)
        self._lock = RLock()
        self._number = 0
        self._process: Popen[bytes] | None = None
        self._thread: Thread | None = None
        self._status: dict[str, Any] = {}
        self.start({})

    @property
    def begun(self) -> Path | None:
        """The folder of the run that is played now; None before it has begun."""
        folder = self._played
        return folder if is_begun(folder) else None

    @property
    def _played(self) -> Path:
        return self.folder / f"play {self._number}"

    def status(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        with self._lock:
            return {**self._status, "number": self._number}

    def do(self, order: Any) -> dict[str, Any]:
        """Carry out what the page asks for; return what there is to say.

        Raises:
            InputError: If it cannot be done.
        """
        does = order.get("do") if isinstance(order, dict) else None
        if does == "start":
            self.start(order)
        elif does == "stop":
            self.stop("was stopped")
        elif does == "keep":
            return {"kept": str(self.keep(order.get("folder")))}
        elif does in _ORDERS:
            self._send(_checked(order))
        else:
            raise InputError(f"there is no action {does!r}")

        return {}

    def start(self, changes: Mapping[str, Any]) -> None:
        """Begin another run, and wait with it.

        Args:
            changes: What is to differ from what was given: ``agents``, ``seed``, ``rounds`` and
                ``parameters``.

        Raises:
            InputError: If that is no run.
        """
        options = {**self._options, **_start_of(changes)}
        self.stop("")
        rmtree(self._played, ignore_errors=True)
        with self._lock:
            self._number += 1
            self._status = {"state": "preparing"}
            command = [sys.executable, "-m", "prism.watch._player"]
            process = Popen(command, stdin=PIPE, stdout=PIPE)
            self._process = process
            self._send({**options, "folder": str(self._played)})
            self._thread = Thread(target=self._listen, args=(process,), daemon=True)
            self._thread.start()

    def stop(self, why: str) -> None:
        """End the process, also if it does not answer."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
        if self._thread is not None:
            self._thread.join()
        self._end("stopped", f"The world {why}.")

    def keep(self, folder: Any) -> Path:
        """Copy the run that is played to a folder, as far as it has come.

        Args:
            folder: Where, below the current folder.

        Raises:
            InputError: If there is something, or it is elsewhere.
        """
        kept, played = _folder_for(folder), self._played
        if not is_begun(played):
            raise InputError("nothing has been played yet")
        if self._is_playing():
            self._send({"do": "pause"})
            due = monotonic() + _SECONDS_TO_PAUSE
            while self._is_playing() and monotonic() < due:
                sleep(0.02)
        try:
            _copy(played, kept)
        except FileExistsError:  # somebody made it meanwhile
            raise InputError("already exists: name another folder", path=kept) from None
        except OSError as error:
            rmtree(kept, ignore_errors=True)
            raise InputError(f"cannot be written: {error.strerror or error}", path=kept) from None

        return kept

    def close(self) -> None:
        """End the process and delete what was not kept."""
        self.stop("was closed")
        rmtree(self.folder, ignore_errors=True)

    def _is_playing(self) -> bool:
        return bool(self._status.get("state") == "playing")

    def _send(self, order: Mapping[str, Any]) -> None:
        with self._lock:
            process = self._process
            if process is not None and self._status.get("state") not in _OVER:
                assert process.stdin is not None
                with suppress(OSError):
                    process.stdin.write(orjson.dumps(order) + b"\n")
                    process.stdin.flush()
                    return

        raise InputError("the world has ended: reset it")

    def _listen(self, process: Popen[bytes]) -> None:
        """Take note of what a process tells, until it ends."""
        assert process.stdout is not None
        assert process.stdin is not None
        with process.stdout:
            for line in process.stdout:
                if self._process is process:
                    self._tell(read_line(line) or {})

        status = process.wait()
        with self._lock:
            with suppress(OSError):  # what it did not read any more
                process.stdin.close()
            if self._process is process:
                self._process = None
                self._end("failed", f"The world's process ended by itself, with status {status}.")

    def _end(self, state: str, text: str) -> None:
        with self._lock:
            if self._status.get("state") not in _OVER:
                self._tell({"state": state, "fault": {"text": text, "notes": []}})

    def _tell(self, status: Mapping[str, Any]) -> None:
        with self._lock:
            self._status.update(status)
            if "about" in status:
                self.charts = DIAGRAMS.validate_python(status["about"]["charts"])
            self.version += 1


def _checked(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return an order with the keys that it may have, of the right types."""
    does = order["do"]
    for name, kind in _ORDERS[does].items():
        if not isinstance(order.get(name), kind):
            raise InputError(f"{does} needs {name}")

    return {name: order[name] for name in ("do", *_ORDERS[does])}


def _start_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a new run is to be, without what was left empty."""
    names, parameters = ("agents", "seed", "rounds"), changes.get("parameters")
    options = {name: changes[name] for name in names if changes.get(name) is not None}
    for name, value in options.items():
        if type(value) is not int:
            raise InputError(f"must be a whole number, got {value!r}", field=name)

    return {**options, "parameters": parameters} if isinstance(parameters, dict) else options


def _folder_for(folder: Any) -> Path:
    """Return where to keep a run: a new folder below the current one."""
    if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
        raise InputError("name a folder to keep the run in, such as runs/first")

    here, path = Path.cwd(), Path(folder.strip())
    if path.is_absolute() or not (here / path).resolve().is_relative_to(here.resolve()):
        raise InputError(f"must be below {here}", path=path)
    if path.exists():
        raise InputError("already exists: name another folder", path=path)

    return path


def _copy(played: Path, kept: Path) -> None:
    """Copy a run, its log last."""
    copytree(played, kept, ignore=ignore_patterns(".*", *LOG_NAMES))
    for name in LOG_NAMES:
        if (played / name).is_file():
            copyfile(played / name, kept / name)
