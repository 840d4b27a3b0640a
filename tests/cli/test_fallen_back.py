"""A run of which no decision is its model's has failed, and a batch of such runs, too."""

import json
from collections.abc import Iterator

import pytest

from prism.testing import FakeOllama
from tests.kit.commands import Prism
from tests.kit.raw_servers import FAULTS, RawServer, raw_server

RUN = ("--agents", 20, "--rounds", 1, "--ticks", 4, "--seed", 1)
FEED = ("simulate", *RUN)
WORLD = ("run", "prism.examples.rumour:Rumour", *RUN)
PLAN = """
world = "feed"
agents = 20
rounds = 1
ticks = 4
seeds = 2
reasoner = { model = "tiny", host = ["HOST"], mode = "chat", stop_at_fallbacks = "never" }
"""
SAID = "No decision is the model's: all"


@pytest.fixture
def junk() -> Iterator[RawServer]:
    """Answer every question with prose that names no option."""
    with raw_server(FAULTS["prose"]) as server:
        yield server


def by_model(host: str) -> tuple[str, ...]:
    model = ("--reasoner", "ollama", "--model", "tiny", "--mode", "chat", "--host", host)
    return (*model, "--stop-at-fallbacks", "never")


@pytest.mark.parametrize("command", [FEED, WORLD], ids=["feed", "world"])
def test_a_run_whose_decisions_all_fell_back_has_failed(
    command: tuple[object, ...], junk: RawServer, prism: Prism
) -> None:
    """Its status is 1 and one line says why; it is complete, and kept."""
    ran = prism(*command, *by_model(junk.host), "--out", "run")
    totals = json.loads((prism.folder / "run" / "run.json").read_bytes())["results"]["totals"]
    assert (totals["decisions_answered"], totals["decisions_asked"] > 0) == (0, True)
    assert ran.status == 1
    assert ran.out.count(SAID) == 1


def test_a_run_with_one_answer_or_without_a_model_is_none_of_these(prism: Prism) -> None:
    """One decision of the model is enough, and the policy needs none."""
    with FakeOllama(models=["tiny"]) as server:
        assert prism(*FEED, *by_model(server.host)).status == 0
    for command in (FEED, WORLD):
        ran = prism(*command)
        assert ran.status == 0
        assert SAID not in ran.out


def test_a_batch_of_runs_whose_decisions_all_fell_back_has_failed(
    junk: RawServer, prism: Prism
) -> None:
    """Its status is 1 although every run is complete, and one line says why."""
    (prism.folder / "plan.toml").write_text(PLAN.replace("HOST", junk.host))
    ran = prism("batch", "plan.toml", "--workers", 1, "--out", "batch")
    assert "2 of 2 runs are complete" in ran.out
    assert ran.status == 1
    assert "prism: no decision is the model's in 2 runs, such as all/seed-0" in ran.err
