"""Runs of cycles that are killed at any instant: nothing is lost, nothing is done twice.

``PRISM_KILLS`` sets how often runs are killed at random: 12 times by default, 200
for the full proof.
"""

import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from prism import replay
from tests.kit.killed_runs import CYCLES, Home

logger = logging.getLogger(__name__)
KILLS = int(os.environ.get("PRISM_KILLS", "12"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a run that nothing has disturbed."""
    with Home(tmp_path_factory.mktemp("kills") / "whole") as home:
        assert home.complete()
        yield home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Return a folder for a run that is to be disturbed."""
    with Home(tmp_path / "home") as other:
        yield other


def assert_undisturbed(home: Home, whole: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that a run, and its replay, left what one leaves that was never killed."""
    assert home.memory.read_bytes() == whole.memory.read_bytes()
    assert home.events() == whole.events()

    monkeypatch.chdir(home.path)
    replay("run", "again")
    assert Path("again/events.jsonl").read_bytes() == Path("run/events.jsonl").read_bytes()
    assert Path("again/memories/agent.json").read_bytes() == home.memory.read_bytes()


@pytest.mark.slow
def test_the_undisturbed_run_does_all_there_is_to_do(whole: Home) -> None:
    """Actions, pagings and overflows happen in the run that is killed below."""
    names = {event["event"] for event in whole.events()}
    assert {"cognition.action", "cognition.paged", "cognition.cycle"} <= names


@pytest.mark.slow
def test_a_run_killed_at_known_instants_is_as_if_it_never_was(
    home: Home, whole: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while its model writes, and between checkpoint and memory, it loses nothing."""
    home.kill_at_request(1)
    assert not home.complete(doomed=1)
    home.kill_at_request(3)
    for cycle in (9, CYCLES):
        assert not home.complete(doomed=cycle)
    assert home.complete()
    assert_undisturbed(home, whole, monkeypatch)


@pytest.mark.long
def test_a_run_killed_at_any_instant_is_as_if_it_never_was(
    whole: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed again and again at random instants, every run comes to the same log and memory."""
    draw, kills, runs = random.Random("json"), 0, 0
    while kills < KILLS:
        # a run that has come to its end leaves the kills that remain to another
        runs += 1
        with Home(tmp_path / f"home_{runs}") as home:
            while kills < KILLS and not home.has_ended():
                # opening, a few cycles, and what is between them
                kills += home.kill_after(draw.random() * 0.04)
            assert home.complete()
            assert_undisturbed(home, whole, monkeypatch)

    logger.info("killed %d times, in %d runs", kills, runs)
