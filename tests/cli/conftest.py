"""Fixtures of the command line's tests: the command as a real process, and a real server for it to ask."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import prism

KEPT = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT", "TEMP")


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    """The command line as a process of its own, in a folder and an environment of its own."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start a command; its output is 80 columns wide."""
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {
            "PYTHONPATH": str(Path(prism.__file__).parents[1]),
            "COLUMNS": "80",
            **self.environment,
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        line = [sys.executable, "-c", "from prism.cli import main; main()", *map(str, arguments)]
        return subprocess.Popen(line, cwd=self.folder, env=environment, encoding="utf-8", **pipes)

    def __call__(self, *arguments: str | Path, **options: Any) -> Ran:
        """Run a command to its end."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate()
        return Ran(process.returncode, out or "", err or "")


class OllamaServer(ThreadingHTTPServer):
    """Answers every chat with the first state that the request's JSON schema allows, and nothing else."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.chats: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: OllamaServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/api/chat":
            self._reply(404, {"error": "not found"})
            return
        self.server.chats.append(request)
        chosen = request["format"]["properties"]["next_state"]["enum"][0]
        message = {"role": "assistant", "content": json.dumps({"next_state": chosen})}
        self._reply(200, {"model": request["model"], "message": message, "done": True})

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *message: Any) -> None:
        """Say nothing."""


@pytest.fixture
def make_command(tmp_path: Path) -> Callable[..., Command]:
    """Return a function that makes the command with some environment variables set."""
    return lambda **environment: Command(tmp_path, environment)


@pytest.fixture
def command(make_command: Callable[..., Command]) -> Command:
    """Return the command line, in an empty folder."""
    return make_command()


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    """Return a server on loopback that answers as Ollama does."""
    with OllamaServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
