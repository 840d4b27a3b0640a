"""``prism doctor`` as a user runs it."""

import signal
from threading import Timer

from prism.testing import FakeOllama, Fault
from tests.kit.commands import Prism


def test_a_good_server_is_well(prism: Prism, server: FakeOllama) -> None:
    """Every check is a line, and the exit status is 0 if a simulation can use the server."""
    server.choose = lambda asked: "idle"
    ran = prism("doctor", "--model", f"ollama:llama3.2@{server.url}")
    assert (ran.status, ran.err) == (0, "")
    told = [" ".join(line.split(":")[0].split()) for line in ran.out.splitlines()]
    assert told == ["ok server", "... load", "ok load", "ok letter", "ok name"]


def test_an_unreachable_server_fails(prism: Prism, server: FakeOllama) -> None:
    """What is wrong is the last line, and the exit status is 1."""
    server.stop()
    ran = prism("doctor", "--model", f"ollama:llama3.2@{server.url}")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.startswith(f"fails server: cannot reach llama3.2 at {server.host}")


def test_checks_are_printed_before_the_model_is_loaded(prism: Prism, server: FakeOllama) -> None:
    """While a model loads, earlier checks are printed already; Ctrl-C loses none of them."""
    server.fail_always(Fault.hang(), path="/api/generate")
    with prism.start("doctor", "--model", f"ollama:llama3.2@{server.url}") as process:
        watchdog = Timer(60, process.kill)
        watchdog.start()
        told = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
        watchdog.cancel()
    assert told[0].startswith("ok    server: ")
    assert told[1] == "...   load: can take up to 600 s\n"
    assert rest == ""
    assert process.returncode != 0


def test_a_place_that_decides_is_a_doubt(prism: Prism, server: FakeOllama) -> None:
    """A model that takes the first place can be used; with --strict the status is 1."""
    arguments = ("doctor", "--model", f"ollama:llama3.2@{server.url}")
    server.models = ("llama3.2",)
    ran = prism(*arguments)
    assert (ran.status, ran.out.count("doubt letter: ")) == (0, 1)
    assert prism(*arguments, "--strict").status == 1
