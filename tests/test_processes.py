"""Tests of the processes that tests start: forks that are like any other process."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import processes


def test_a_process_has_arguments_streams_folder_and_environment(tmp_path: Path) -> None:
    """It finds what it was given, and nothing of the process that asked for it."""
    code = "import os, sys; print(sys.argv, os.getcwd(), dict(os.environ), input())"
    line = [sys.executable, "-c", code, "one", "two"]
    environment = {"LANGUAGE": "en"}
    done = processes.run(
        line, cwd=tmp_path, env=environment, input="typed\n", capture_output=True, text=True
    )
    assert done.stdout == f"{['-c', 'one', 'two']} {tmp_path} {environment} typed\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1), ("import os; os.abort()", -6)],
)
def test_a_process_has_a_status(code: str, status: int) -> None:
    """A good end, a chosen status, an error and a signal are told apart."""
    done = processes.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == status


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.sampled(3)
def test_a_process_gets_signals(sent: signal.Signals) -> None:
    """A signal ends the process alone, even if an interruption does nothing to the tests."""
    line = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    with processes.start(line, stdout=-1, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "up\n"
        assert process.poll() is None
        process.send_signal(sent)
        assert process.wait() == -sent


def test_a_process_has_imported_prism_and_has_one_thread() -> None:
    """Nothing that the server imports starts a thread, which would be lost in a fork."""
    code = "import sys, os; print('prism.cli' in sys.modules, len(os.listdir('/proc/self/task')))"
    if not Path("/proc/self/task").exists():
        pytest.skip("needs a list of threads")
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True 1\n"
