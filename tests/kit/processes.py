"""Python processes that start at once: forks of a server that has imported prism already.

`start` and `run` are `subprocess.Popen` and `subprocess.run` for a line that begins with
`sys.executable`. Their processes have a folder, an environment, streams, a number, signals and
an exit status of their own, as any other, and the seed of hashes that their environment names. Use
`subprocess` itself where the start is the point: what a process imports, options of the
interpreter.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import prism

FORKED = ("-c", "-m", "-W")
"""Options of the interpreter that a fork can have, too."""

SERVER = Path(__file__).with_name("process_server.py")
ROOT = Path(prism.__file__).parents[1]

Word = str | os.PathLike[str]


@cache
def server(hash_seed: str | None = None) -> socket.socket:
    """Start a server of this test process, and return where it is asked; it ends with us."""
    seed = {} if hash_seed is None else {"PYTHONHASHSEED": hash_seed}
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, SERVER, str(theirs.fileno()), str(ROOT)],
            env={**os.environ, **seed},
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    @atexit.register
    def stop() -> None:
        ours.close()
        process.wait()

    return ours


class Process(subprocess.Popen[Any]):
    """A fork of the server, with the interface of `subprocess.Popen`."""

    _connection: socket.socket

    def _execute_child(  # type: ignore[override]
        self,
        args: list[str],
        executable: Any,
        preexec_fn: Any,
        close_fds: Any,
        pass_fds: Any,
        cwd: Any,
        env: Any,
        startupinfo: Any,
        creationflags: Any,
        shell: Any,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        restore_signals: Any,
        gid: Any,
        gids: Any,
        uid: Any,
        umask: Any,
        start_new_session: bool,
        process_group: Any = -1,
    ) -> None:
        words = args[1:]
        warned = []
        while words[0] == "-W":
            _, option, *words = words
            warned.append(option)
        kind = words.pop(0) if words[0] in ("-c", "-m") else ""
        program, *arguments = words
        request: dict[str, Any] = {
            "kind": kind,
            "program": program,
            "warnings": warned,
            "arguments": arguments,
            "folder": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "new_session": start_new_session,
        }
        streams = [
            own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))
        ]
        self._connection, theirs = socket.socketpair()
        with theirs:
            asked = server(request["environment"].get("PYTHONHASHSEED"))
            socket.send_fds(asked, [b"!"], [theirs.fileno(), *streams])
        self._connection.sendall(json.dumps(request).encode() + b"\n")

        self._said = self._connection.makefile("rb")
        self.pid = int(self._said.readline())
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _internal_poll(self, *_unused: Any, **_more: Any) -> int | None:
        if self.returncode is None:
            ended, status = self._try_wait(os.WNOHANG)
            if ended:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._connection.fileno() == -1:
            return self.pid, 0
        if wait_flags & os.WNOHANG:
            try:
                self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0, 0
        status = int(self._said.readline())
        self._said.close()
        self._connection.close()
        return self.pid, status


def start(line: Sequence[Word], **options: Any) -> Process:
    """Start a Python process, as `subprocess.Popen` does, from a server with prism imported.

    Args:
        line: `sys.executable`, and then ``-W`` and what to do with all warnings, ``-c`` and code,
            ``-m`` and a module, or a file, and the arguments.
        options: Options of `subprocess.Popen` about streams, folder, environment and session.
    """
    words = [os.fspath(word) for word in line]
    if words[0] != sys.executable or (words[1][0] == "-" and words[1] not in FORKED):
        raise ValueError(f"not a line that a fork can carry out: {words[:2]}")
    return Process(words, **options)


def run(
    line: Sequence[Word],
    *,
    input: str | bytes | None = None,  # noqa: A002
    check: bool = False,
    timeout: float | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a Python process to its end, as `subprocess.run` does; see `start`."""
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with start(line, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(line, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
