"""Running a population through rounds and ticks."""

import asyncio
import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import structlog

import prism
from prism import Run
from prism.agents import SeedPost, SocialAgent, synthetic_population
from prism.errors import FieldValueError
from prism.social import Feed, RoundSummary
from prism.statechart import (
    AgentState,
    Reasoner,
)
from prism.telemetry.events import (
    DECISION,
    POST_WEIGHED,
    ROUND_ENDED,
    RUN_ENDED,
    RUN_STARTED,
    TRANSITION,
)
from prism.testing import FailingReasoner, RecordingReasoner
from tests.kit.social import run_of_feed

S = AgentState

WRITE_LOG = """
import sys
from pathlib import Path
from prism.agents import synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism import Run
from prism.social import Feed
population = synthetic_population(60, seed=3)
clock = SimulatedClock()
with RunLog(Path(sys.argv[1]), clock) as log:
    Run(
        Feed(first_posts=population.posts), population.agents, seed=3, rounds=4,
        logger=log.logger, clock=clock,
    ).run()
"""


# The same run


@pytest.mark.slow
def test_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    """The log does not depend on the process, nor on the order in which it happens to hold sets."""
    logs = []
    for hash_seed in ("1", "2"):
        path = tmp_path / hash_seed
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(prism.__file__).parents[1]),
            "PYTHONHASHSEED": hash_seed,
        }
        subprocess.run([sys.executable, "-c", WRITE_LOG, str(path)], env=environment, check=True)
        logs.append(path.read_bytes())
    assert logs[0] == logs[1]
    assert logs[0].count(b"\n") > 1000


# Asking


def tick_of(event: dict[str, Any]) -> tuple[int, int]:
    """Return round and tick of an event."""
    return event["round"], event["tick"]


@pytest.mark.slow
def test_decisions_of_a_tick_are_asked_together_and_applied_in_order(
    run_logged: Callable[..., Any],
) -> None:
    """There is one call a tick at most, in the order of turns, and so are the moves."""
    reasoner = RecordingReasoner()
    run = run_logged(reasoner=reasoner, rounds=3)
    weighed = {
        key: [event["agent_id"] for event in events]
        for key, events in groupby(run.events(POST_WEIGHED), key=tick_of)
    }
    ticks = [
        (weighed[key], [event["agent_id"] for event in events])
        for key, events in groupby(run.events(DECISION), key=tick_of)
    ]
    asked = [[question.agent.agent_id for question in questions] for questions in reasoner.batches]
    assert asked == [agents for _, agents in ticks]
    assert all(agents == [each for each in turns if each in agents] for turns, agents in ticks)
    assert max(map(len, asked)) > 5
    decided = [(event["agent_id"], event["chosen"]) for event in run.events(DECISION)]
    moved = [
        (event["agent_id"], event["to_state"])
        for event in run.events(TRANSITION)
        if event["trigger"] == "decides"
    ]
    assert moved == decided


def test_decision_is_asked_only_where_several_moves_are_open(
    run_logged: Callable[..., Any],
) -> None:
    """Every question comes from EVALUATING, with at least two distinct options and a post."""
    reasoner = RecordingReasoner()
    run_logged(reasoner=reasoner, rounds=3)
    questions = reasoner.questions
    assert {question.state for question in questions} == {S.EVALUATING}
    assert all(len(question.options) == len(set(question.options)) > 1 for question in questions)
    assert all(question.agent.should_engage(question.context) for question in questions)


class DownClient:
    """A chat client whose server is down every other time."""

    def __init__(self) -> None:
        self.asked = 0

    async def chat(self, messages: Any, format: Any) -> str:  # noqa: A002
        self.asked += 1
        if self.asked % 2:
            raise ConnectionError(f"down {self.asked % 4}")
        return '{"next_state": "engaging_like"}'


@pytest.mark.slow
def test_fallbacks_are_counted_by_kind(
    run_logged: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Answered decisions and kinds of fallbacks are counted; a fallback scrolls on."""
    client = DownClient()
    run = run_logged(reasoner=Reasoner(client, fallback=S.SCROLLING, attempts=1), rounds=2)
    totals, decisions = run.results.totals, run.events(DECISION)
    reasons = Counter(event["reason"] for event in decisions if event["source"] == "fallback")
    assert totals.fallbacks == {"UnreachableError": reasons.total()}
    told = "UnreachableError: cannot reach the model at DownClient"
    first, last = (f"{told} (down {number})" for number in (1, 3))
    assert totals.fallback_examples == {"UnreachableError": first}
    assert set(reasons) == {first, last}
    assert totals.decisions_asked == client.asked == len(decisions)
    assert totals.decisions_answered == client.asked - reasons.total() > 0
    assert {(event["source"], event["chosen"]) for event in decisions} == {
        ("fallback", "scrolling"),
        ("model", "engaging_like"),
    }


# Running


@pytest.mark.slow
async def test_runs_inside_an_event_loop() -> None:
    """`arun` gives the results of `run` in an event loop that exists, and others go on there."""

    def simulation() -> Run[Any]:
        population = synthetic_population(40)
        return Run(Feed(first_posts=population.posts), population.agents, rounds=3)

    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    summaries: list[RoundSummary] = []
    results = await simulation().arun(summaries.append)
    task.cancel()
    assert turns >= 3 * 12
    assert results.rounds == tuple(summaries)
    assert results == await asyncio.to_thread(simulation().run)


async def test_run_can_be_cancelled() -> None:
    """A run without a model stops when it is cancelled, though it never waits for anything."""
    population = synthetic_population(40)
    simulation = Run(Feed(first_posts=population.posts), population.agents, rounds=1000)
    seen: list[int] = []
    task = asyncio.create_task(simulation.arun(lambda summary: seen.append(summary.number)))
    while not seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(seen) < 10


@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("is_failing", [False, True])
@pytest.mark.sampled(4)
def test_garbage_collector_is_left_as_it_was(collecting: bool, is_failing: bool) -> None:
    """After a run, ended or broken off, the garbage collector is set as it was before."""
    population = synthetic_population(20)
    reasoner = FailingReasoner(LookupError("no more answers"), at=3) if is_failing else None
    simulation = Run(
        Feed(first_posts=population.posts), population.agents, rounds=2, reasoner=reasoner
    )
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    try:
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(LookupError) if is_failing else nullcontext():
            simulation.run()
        assert gc.isenabled() == collecting
        assert gc.get_threshold() == thresholds
    finally:
        (gc.enable if enabled else gc.disable)()


def test_events_go_to_configured_structlog(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a logger a run writes to structlog once that is configured, else nowhere."""
    population = synthetic_population(5)
    Run(Feed(first_posts=population.posts), population.agents, rounds=1).run()
    assert capsys.readouterr() == ("", "")
    with structlog.testing.capture_logs() as events:
        Run(Feed(first_posts=population.posts), synthetic_population(5).agents, rounds=1).run()
    assert {RUN_STARTED, TRANSITION, ROUND_ENDED, RUN_ENDED} <= {event["event"] for event in events}


@pytest.mark.parametrize(
    ("agents", "options", "message"),
    [
        ([], {}, "at least one agent"),
        (["ann"], {"rounds": 0}, "rounds must be a whole number, 1 or more, got 0"),
        (
            ["ann"],
            {"ticks": -1},
            "ticks must be a whole number, 1 or more, got -1",
        ),
        (["cem", "ann", "ben", "ann", "cem"], {}, "more than once: ann, cem"),
    ],
)
def test_impossible_simulation_is_refused(
    agents: list[str], options: dict[str, int], message: str
) -> None:
    """No agents, shared ids, and rounds or ticks below 1 are refused with the reason."""
    with pytest.raises(FieldValueError, match=message):
        _ = run_of_feed([SocialAgent(name) for name in agents], **options).agents


def test_posts_of_strangers_are_refused() -> None:
    """Seed posts by nobody of the population are refused by name."""
    with pytest.raises(FieldValueError, match="which has no stranger"):
        _ = Run(
            Feed(first_posts=[SeedPost("stranger", "hello")]), synthetic_population(5).agents
        ).agents
