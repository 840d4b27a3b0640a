"""A process that has imported prism and forks into the processes that tests start.

`tests.kit.processes` runs this file and sends it one request for each process, over a socket
made for it: first the socket and the three standard streams, then a line of JSON. It answers with
the process number and, when the process has ended, with its status. A fork has no past as a server:
it unwinds to the bottom of this file, and from there it is an ordinary Python process that
begins and ends as the interpreter does; only that it does not take apart what it was forked with,
which would take ten times as long as all else.
"""

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import types
import warnings
from contextlib import suppress
from os import _exit
from typing import Any

IMPORTED = (
    "anyio._backends._asyncio",
    "colorama",
    "httpx",
    # before anything is frozen: its plugin for trio looks at who refers to a generator
    "hypothesis",
    "jsonschema",
    "prism.agents",
    "prism.cli",
    "prism.cli._doctor",
    "prism.cli._memory",
    "prism.cli._results",
    "prism.cli._running",
    "prism.cli._simulate",
    "prism.cli._think",
    "prism.cli._think_view",
    "prism.cli._workflow",
    "prism.programs.thinking",
    "prism.drawing",
    "prism.llm",
    "prism.llm._doctor",
    "prism.runs",
    "prism.social",
    "prism.statechart",
    "prism.statechart._extending",
    "prism.reasoner",
    "prism.testing",
    "prism.programs.yaml",
    "prism.worlds",
    "prism.examples",
    "rich._emoji_codes",
    "rich.console",
    "rich.live",
    "rich.table",
    "structlog",
    "typer._adapters",
    "typer._click.decorators",
    "typer.rich_utils",
    "yaml",
)
"""What processes of the tests import; nothing of it starts a thread, which would not be forked."""

Request = dict[str, Any]

_statuses: list[int] = []
"""With what status this process ends, if its program has come to its end or has called `exit`."""


def leave() -> None:
    """End the process once nothing but its modules is left, if it is known with what status."""
    if _statuses:
        # a stream that fails here is for the interpreter to tell of
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            _exit(_statuses[0])


class Server:
    """Forks processes until the tests that asked for them are gone.

    Args:
        tests: Where the tests hand over a socket and streams for each process.
    """

    def __init__(self, tests: socket.socket) -> None:
        self._tests = tests
        self._living: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)

    def serve(self) -> Request | None:
        """Serve the tests; return None, and in each forked process its request."""
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in (self._tests, self._woken):
            self._selector.register(each, selectors.EVENT_READ)

        while True:
            ready = [key.fileobj for key, _ in self._selector.select()]
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._tests in ready:
                asked, handles, _, _ = socket.recv_fds(self._tests, 1, 4)
                if not asked:
                    return self._kill_all()
                if (request := self._fork(handles)) is not None:
                    return request

    def _fork(self, handles: list[int]) -> Request | None:
        connection, streams = socket.socket(fileno=handles[0]), handles[1:]
        with connection.makefile("rb") as lines:
            message = lines.readline()

        number = os.fork()
        if number == 0:
            connection.close()
            self._forget()
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
        for stream in streams:
            os.close(stream)
        if number == 0:
            request: Request = json.loads(message)
            return request

        self._living[number] = connection
        connection.sendall(f"{number}\n".encode())
        return None

    def _reap(self) -> None:
        for number, connection in list(self._living.items()):
            ended, status = os.waitpid(number, os.WNOHANG)
            if ended:
                del self._living[number]
                # a test that does not wait for its process has gone
                with suppress(OSError):
                    connection.sendall(f"{status}\n".encode())
                connection.close()

    def _forget(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # whoever started pytest in the background has made it deaf to interruptions
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for connection in (self._tests, *self._living.values()):
            connection.close()
        for each in (self._woken, self._wakes):
            os.close(each)

    def _kill_all(self) -> None:
        for number in self._living:
            os.kill(number, signal.SIGKILL)


def become(request: Request) -> None:
    """Take over folder, environment, arguments and streams of a requested process."""
    if request["new_session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])

    sys.warnoptions[:] = request["warnings"]
    for action in request["warnings"]:
        warnings.simplefilter(action)
    path = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:0] = [each for each in path if each not in sys.path]
    sys.stdin = _stream(0, "r", "surrogateescape")
    sys.stdout = _stream(1, "w", "surrogateescape", line_buffering=os.isatty(1))
    sys.stderr = _stream(2, "w", "backslashreplace", line_buffering=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.modules["__main__"] = types.ModuleType("__main__")


def _stream(number: int, mode: str, errors: str, line_buffering: bool = False) -> Any:
    stream: Any = open(number, mode + "b", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(stream, encoding="utf-8", errors=errors, line_buffering=line_buffering)


def carry_out(kind: str, program: str, arguments: list[str]) -> None:
    """Run what stands behind ``python``: code after ``-c``, a module after ``-m``, or a file."""
    sys.argv = [kind or program, *arguments]
    if kind == "-c":
        sys.path.insert(0, "")
        exec(compile(program, "<string>", "exec"), sys.modules["__main__"].__dict__)
    elif kind == "-m":
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
        sys.argv[0] = program
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))  # noqa: PTH100, PTH120
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    # what is registered first is called last
    atexit.register(leave)
    # prism is where the tests found it; this file's folder is of no use to a process
    sys.path[0] = sys.argv[2]
    for name in IMPORTED:
        # prism alone comes without the packages of its extras
        with suppress(ImportError):
            importlib.import_module(name)
    # as in the tests themselves: only with the power is lost what is not synchronized
    os.fsync = lambda file: None
    gc.collect()
    gc.freeze()

    job = Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    if job is not None:
        become(job)
        try:
            carry_out(job["kind"], job["program"], job["arguments"])
        except SystemExit as ended:
            if isinstance(ended.code, int):
                _statuses.append(ended.code & 0xFF)
            raise
        _statuses.append(0)
