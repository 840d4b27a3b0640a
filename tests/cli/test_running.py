"""Carrying out a run: what happens before its first round."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from prism.testing import FakeOllama, Fault

LOAD = "/api/generate"


@pytest.fixture
def servers() -> Iterator[list[FakeOllama]]:
    """Return two servers; the second never loads its model."""
    with ExitStack() as stack:
        running = [stack.enter_context(FakeOllama()) for _ in range(2)]
        running[1].fail_always(Fault.hang(), path=LOAD)
        yield running


def asking(*servers: FakeOllama) -> list[str]:
    """Return the arguments of a small run that asks these servers."""
    hosts = [argument for server in servers for argument in ("--host", server.host)]
    model = ["--reasoner", "ollama", "--model", "llama3.2", "--mode", "chat"]
    return ["simulate", "--agents", "5", "--rounds", "1", "--ticks", "4", *model, *hosts]


def test_one_server_is_enough_to_begin(command: Any, servers: list[FakeOllama]) -> None:
    """A server that does not load its model is told of, and keeps a run with another one from nothing."""
    good, silent = servers
    ran = command(*asking(good, silent))
    assert ran.status == 0
    assert (
        f"prism: llama3.2 is not loaded at {silent.host} yet; its decisions will fall back"
        in ran.err
    )
    assert good.questions


def test_the_wait_for_a_model_is_told_and_has_an_end(
    command: Any, servers: list[FakeOllama]
) -> None:
    """A run waits for its only server no longer than its deadline, and says so when that takes its time."""
    _, silent = servers
    ran = command(*asking(silent), "--deadline", "2.5")
    assert ran.status == 0
    assert ran.err.splitlines()[:2] == [
        f"prism: waiting for llama3.2 to be loaded at {silent.host}",
        f"prism: llama3.2 is not loaded at {silent.host} yet; its decisions will fall back (see: prism doctor)",
    ]
