"""Ending a run whose model fails too often."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism import runs
from prism.errors import InputError, TooManyFallbacksError
from prism.runs import ModelAssignment, ModelOptions
from prism.runs._makers import WINDOW, StoppingReasoner, make_reasoner
from prism.social import SocialRun
from prism.statechart import AgentState
from prism.statechart.reasoner import Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.commands import Prism
from tests.kit.reasoners import answer, ask, crowd


class Failing:
    """A model that fails where it is told to."""

    def __init__(self, fails: list[bool]) -> None:
        self.fails = iter(fails)

    async def run(self, prompt: str) -> str:
        if next(self.fails):
            raise ConnectionError("gone")
        return answer("scrolling")


async def decisions_before_the_end(fails: list[bool], stop_at: float) -> int | None:
    """Ask one question after the other; return how many were decided when the run was stopped."""
    reasoner = StoppingReasoner(Failing(fails), stop_at=stop_at, attempts=1)
    for count in range(1, len(fails) + 1):
        try:
            await reasoner.decide_many([ask()])
        except TooManyFallbacksError:
            return count
    return None


@settings(max_examples=25)
@given(
    fails=st.lists(st.booleans(), min_size=WINDOW - 5, max_size=2 * WINDOW),
    share=st.sampled_from([0.3, 0.5, 0.55, 1.0]),
    outage=st.integers(0, WINDOW),
)
@pytest.mark.slow
def test_a_run_ends_with_the_share_of_the_last_decisions(
    fails: list[bool], share: float, outage: int
) -> None:
    """The run ends at the first decision with which so many of the last 200 have fallen back."""
    fails = [*fails, *([True] * outage)]
    expected = next(
        (
            end
            for end in range(WINDOW, len(fails) + 1)
            if sum(fails[end - WINDOW : end]) >= share * WINDOW
        ),
        None,
    )
    assert asyncio.run(decisions_before_the_end(fails, share)) == expected


async def test_the_error_says_how_many_and_why() -> None:
    """What ends the run says how many decisions fell back, the limit, and the last reason."""
    reasoner = StoppingReasoner(Failing([True] * WINDOW), stop_at=0.5, attempts=1)
    with pytest.raises(TooManyFallbacksError) as caught:
        await reasoner.decide_many([ask() for _ in range(WINDOW)] + [ask("Bo")] * WINDOW)
    assert str(caught.value) == (
        "stopped, as 200 of the last 200 decisions fell back, and 0.5 of them is the limit; "
        "the last one: ConnectionError: gone"
    )


@pytest.mark.parametrize("share", [0, -0.1, 1.01, float("nan")])
def test_a_share_is_one(share: float) -> None:
    """A share that is not above 0 and at most 1 is refused."""
    with pytest.raises(InputError, match="stop_at_fallbacks"):
        ModelOptions("tiny", stop_at_fallbacks=share)


@pytest.mark.parametrize(("share", "kind"), [(None, Reasoner), (1, StoppingReasoner)])
def test_only_who_asks_for_it_is_stopped(share: float | None, kind: type) -> None:
    """A run ends early only if it was told to."""
    options = ModelOptions("tiny", stop_at_fallbacks=share)
    assert type(make_reasoner(options, 0, AgentState.SCROLLING)) is kind


async def test_all_models_of_a_run_are_counted_together() -> None:
    """Where agents have models of their own, the share is that of all their decisions."""
    assigned = (ModelAssignment("agent", "n1*", model="large"),)
    hosts = ("http://127.0.0.1:1",)
    reasoner = make_reasoner(
        ModelOptions("tiny", host=hosts, stop_at_fallbacks=1, max_calls=1, assigned=assigned),
        0,
        AgentState.SCROLLING,
    )
    assert len(await reasoner.decide_many(crowd(WINDOW - 1))) == WINDOW - 1
    with pytest.raises(TooManyFallbacksError, match="stopped, as 200 of the last 200"):
        await reasoner.decide_many([ask("n1")])


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    """Return a running server."""
    with FakeOllama() as running:
        yield running


def options(server: FakeOllama) -> SocialRun:
    """Return a run that asks the server often, and ends when half of that fails."""
    model = ModelOptions(
        "llama3.2", host=(server.host,), mode="chat", concurrency=16, stop_at_fallbacks=0.5
    )
    return SocialRun(agents=240, rounds=3, reasoner=model)


class Quiet(runs.Observer):
    """Says nothing."""

    def note(self, message: str) -> None:
        """Say nothing."""

    warn = note


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.slow
def test_a_run_that_was_stopped_is_resumed(rounds: int, server: FakeOllama, tmp_path: Path) -> None:
    """A run that ends early, in its first round or later, goes on when its model is back."""

    def fail(summary: Any) -> None:
        if summary.number == rounds:
            server.fail_always(Fault.status(400, "no"))

    if not rounds:
        server.fail_always(Fault.status(400, "no"))
    folder = tmp_path / "run"
    with pytest.raises(TooManyFallbacksError, match="answered 400: no"):
        runs.begin(options(server), folder, on_round=fail, checkpoint_every=0, observer=Quiet())

    server.recover()
    outcome = runs.resume(folder, SocialRun, observer=Quiet())
    assert outcome is not None
    assert len(outcome.results.rounds) == 3
    assert outcome.results.totals.fallbacks.total() == 0
    assert outcome.summary["config"]["stop_at_fallbacks"] == 0.5


def test_the_command_ends_with_status_one(prism: Prism, server: FakeOllama) -> None:
    """The command says why it ended and how to go on, which then works; its status is 1."""
    server.fail_always(Fault.status(400, "no"))
    run = ("simulate", "--agents", 60, "--rounds", 3, "--reasoner", "ollama", "--model", "llama3.2")
    ran = prism(*run, "--host", server.host, "--stop-at-fallbacks", 0.5, "--out", "run")
    *_, last = ran.err.splitlines()
    assert ran.status == 1
    assert last.startswith("prism: stopped, as ")
    assert last.endswith("when that is mended, go on with: prism simulate --resume run")

    server.recover()
    ran = prism("simulate", "--resume", "run")
    assert ran.status == 0
    assert "results" in json.loads((prism.folder / "run" / "run.json").read_bytes())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("--reasoner", "ollama", "--model", "m"), "--stop-at-fallbacks must be above 0"),
        ((), "--stop-at-fallbacks needs --reasoner ollama"),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(
    given: tuple[str, ...], problem: str, prism: Prism
) -> None:
    """A share out of its range, or without a model, is one line with status 2."""
    ran = prism("simulate", "--stop-at-fallbacks", 0, *given)
    assert (ran.status, ran.err.startswith(f"prism: {problem}")) == (2, True)
