"""Ending a run whose model fails too often."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

from prism import Run, replay, resume
from prism.errors import TooManyFallbacksError
from prism.llm import Model
from prism.runs import run_status
from prism.social import Feed
from prism.testing import Asked, FakeOllama, FakeOpenAI, Fault
from tests.kit.commands import Prism


def ended_run(folder: Path, **options: Any) -> tuple[int, str]:
    """Carry out a run whose server answers nothing; return its decisions, and why it ended."""
    with FakeOllama() as server:
        server.fail_always(Fault.status(400, "no"))
        model = Model("llama3.2", server.host, mode="chat", **options)
        try:
            totals = Run(Feed, 30, rounds=6, model=model).keep(folder).results.totals()
        except TooManyFallbacksError as error:
            log = (folder / "events.jsonl").read_text()
            return log.count('"reasoner.decision"'), str(error)
    return int(totals["decisions_asked"]), ""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "stopped, as 20 decisions in a row fell back, with stop_at_fallbacks = 0.5"),
        (
            {"stop_at_fallbacks": 1.0},
            "stopped, as 20 decisions in a row fell back, with stop_at_fallbacks = 1;",
        ),
        ({"stop_at_fallbacks": "never"}, ""),
        ({"max_calls": 1}, ""),
        ({"max_calls": 1, "stop_at_fallbacks": 0.5}, "of the last 200 decisions fell back, with"),
    ],
)
@pytest.mark.sampled(3)
def test_a_run_whose_model_fails_ends_early_unless_it_was_told_not_to(
    options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """Half of the decisions are the limit by default, without those after a spent budget."""
    decisions, why = ended_run(tmp_path / "run", **options)
    assert reason in why
    assert bool(why) == bool(reason)
    assert decisions > 100 or reason


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Return a running server."""
    with FakeOllama() as running:
        yield running


def options(server: FakeOllama) -> Run[Any]:
    """Return a run that asks the server often, and ends when half of that fails."""
    model = Model(
        "llama3.2", hosts=(server.host,), mode="chat", concurrency=16, stop_at_fallbacks=0.5
    )
    return Run(Feed, 15, rounds=3, reasoner=model)


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.slow
def test_a_run_that_was_stopped_is_resumed(
    rounds: int, server: FakeOllama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends early does its last round again when its model is back: no fallback is left.

    Nothing that was paid for is deleted, and it counts as spent.
    """
    monkeypatch.setattr("prism.reasoner.router.WINDOW", 20)

    def fail(summary: Any) -> None:
        if summary.number == rounds:
            server.fail_always(Fault.status(400, "no"))

    if not rounds:
        server.fail_always(Fault.status(400, "no"))
    folder = tmp_path / "run"
    with pytest.raises(TooManyFallbacksError, match="answered 400: no"):
        options(server).keep(folder, on_round=fail)
    paid = (folder / "answers.jsonl").read_bytes()
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert (events[0], events.count("round.started")) == ("run.started", rounds)
    assert "of the last 20 decisions fell back" in str(run_status(folder).problem)

    server.recover()
    outcome = resume(folder)
    assert outcome is not None
    assert len(outcome.results.rounds) == 3
    assert "fallbacks" not in outcome.results.totals()
    journal = (folder / "answers.jsonl").read_bytes()
    assert journal.startswith(paid)
    calls = [json.loads(line).get("cost", {}).get("attempts", 0) for line in journal.splitlines()]
    assert outcome.summary["spent"]["calls"] == sum(calls)
    again = replay(folder, tmp_path / "again")
    log = (folder / "events.jsonl").read_bytes()
    assert again.folder is not None
    assert (again.folder / "events.jsonl").read_bytes() == log
    assert outcome.summary["config"]["stop_at_fallbacks"] == 0.5


def test_the_command_ends_with_status_one(
    prism: Prism, server: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says why it ended and how to go on, which then works; its status is 1."""
    monkeypatch.setattr("prism.reasoner.router.WINDOW", 10)
    server.fail_always(Fault.status(400, "no"))
    (prism.folder / "model.toml").write_text("stop_at_fallbacks = 0.5")
    asking = ("--model", f"ollama:llama3.2@{server.url}", "--model-file", "model.toml")
    ran = prism("simulate", "--agents", 8, "--rounds", 2, *asking, "--out", "run")
    *_, hint, last = ran.err.splitlines()
    assert ran.status == 1
    assert last.startswith("prism: stopped, as ")
    assert hint == "prism: continue with: prism resume run"

    server.recover()
    ran = prism("resume", "run")
    assert ran.status == 0
    assert "results" in json.loads((prism.folder / "run" / "run.json").read_bytes())


def totals_beside_a_restart(kind: Any, folder: Path) -> Any:
    """Run on one server, which is away for four seconds behind its 200th question."""

    numbers = count(1)

    def restart() -> None:
        server.stop()
        sleep(4)
        server.start()

    def choose(asked: Asked) -> str:
        if next(numbers) == 200:
            Thread(target=restart).start()
        return asked.options[0]

    with kind(choose=choose) as server:
        dialect: Any = "openai" if kind is FakeOpenAI else "ollama"
        model = Model("llama3.2", hosts=(server.host,), mode="chat", server=dialect)
        run = Run(Feed, 170, rounds=3, seed=3, reasoner=model)
        return run.keep(folder / dialect).results.totals()


@pytest.mark.slow
def test_a_server_that_restarts_costs_a_run_hardly_a_decision(tmp_path: Path) -> None:
    """A server that is away for four seconds costs at most 1 % of 800 decisions on one host.

    Servers of both dialects are waited for at the same time.
    """
    with ThreadPoolExecutor() as at_once:
        kinds = (FakeOllama, FakeOpenAI)
        found = list(at_once.map(partial(totals_beside_a_restart, folder=tmp_path), kinds))
    for totals in found:
        asked, fallbacks = totals["decisions_asked"], totals.get("fallbacks", {})
        assert asked >= 800
        assert sum(fallbacks.values()) <= 0.01 * asked
