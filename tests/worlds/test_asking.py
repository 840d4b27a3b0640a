"""Questions of a run: asked while agents go on, settled in their order."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest
import structlog

from prism import Run
from prism.agents import synthetic_population
from prism.errors import ReasonerError
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed, Results
from prism.statechart import Decision, PolicyReasoner, Question, Reasoner
from prism.telemetry.events import DECISION, POST_PUBLISHED, TRANSITION
from prism.testing import FailingReasoner, LateReasoner
from prism.worlds._overlap import TICKS_AHEAD
from tests.kit.clients import cancel_itself
from tests.kit.social import run_of_feed

MOST_TURNS = 59
"""Turns that take an answer well into the next tick."""


def slow_reasoner(seed: int = 0) -> LateReasoner:
    """Return the policy with answers so late that agents go on meanwhile."""
    return LateReasoner(most_turns=MOST_TURNS, seed=seed)


class DatedReasoner(LateReasoner):
    """A late reasoner that notes in which ticks the questions under way were asked."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(most_turns=MOST_TURNS)
        self.moments: set[frozenset[int]] = set()
        self._clock = clock
        self._asked_at: dict[int, int] = {}

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        (question,) = questions
        self._asked_at[id(question)] = self._clock.tick
        together = [question, *self.under_way]
        self.moments.add(frozenset(self._asked_at[id(one)] for one in together))
        return await super().answer(questions)


def lines(log: bytes) -> list[bytes]:
    """Return a log's lines."""
    return log.splitlines()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(3)
def test_a_run_writes_the_same_bytes_however_long_answers_take(
    seed: int, run_logged: Callable[..., Any]
) -> None:
    """Answers that come late and out of order change no byte of the log and no result."""
    slow = slow_reasoner(seed)
    late, at_once = (
        run_logged(seed=seed, reasoner=slow, rounds=3),
        run_logged(seed=seed, reasoner=PolicyReasoner(), rounds=3),
    )
    assert slow.overtaken > 0
    assert lines(late.log) == lines(at_once.log)
    assert late.results == at_once.results


class ApplicationLogger:
    """A logger of an application, with what structlog's ``merge_contextvars`` adds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def info(self, event: str, **keys: Any) -> None:
        merged = structlog.contextvars.merge_contextvars(None, "info", keys)
        self.events.append(orjson.loads(orjson.dumps({"event": event, **merged})))

    warning = error = info


@pytest.mark.parametrize("make", [PolicyReasoner, slow_reasoner])
@pytest.mark.slow
def test_every_logger_learns_round_and_tick(
    make: Callable[[], Any], run_logged: Callable[..., Any]
) -> None:
    """A logger that does not know the run's clock gets every event with its round and tick."""
    expected = [
        orjson.loads(line) for line in run_logged(reasoner=make(), rounds=2).log.splitlines()
    ]
    for event in expected:
        del event["timestamp"]
    told, population = ApplicationLogger(), synthetic_population(60, seed=0)
    given: Any = {"rounds": 2, "logger": told, "reasoner": make()}
    run_of_feed(
        population.agents, population.posts, parameters={"preset": "classic"}, **given
    ).run()
    assert told.events == expected
    assert structlog.contextvars.get_contextvars() == {}


def engages(agent: Any, post: Any) -> bool:
    """Return what the agent says, in code of one's own."""
    return bool(agent.should_engage(post))


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [({"engages": engages}, 1, 1), ({}, 2, 1 + TICKS_AHEAD)],
    ids=["own code", "known code"],
)
@pytest.mark.slow
def test_agents_go_on_while_others_decide(options: dict[str, Any], least: int, most: int) -> None:
    """Of questions under way, some are of the next tick, and where no turn is unknown, of later."""
    population = synthetic_population(60)
    clock = SimulatedClock()
    slow = DatedReasoner(clock)
    feed = Feed(first_posts=population.posts, **options)
    Run(feed, population.agents, rounds=2, reasoner=slow, clock=clock).run()
    apart = {max(ticks) - min(ticks) for ticks in slow.moments}
    assert least <= max(apart) <= most


@pytest.mark.slow
def test_events_stand_in_the_order_of_ticks(run_logged: Callable[..., Any]) -> None:
    """Rounds and ticks never go back in the log, and decisions precede their transitions."""
    run = run_logged(reasoner=slow_reasoner(), rounds=3)
    moments = [(event["round"], event["tick"]) for event in run.events()]
    assert moments == sorted(moments)
    decided = {}
    for event in run.events(DECISION, TRANSITION):
        if event["event"] == DECISION:
            decided[event["agent_id"]] = (event["chosen"], event["tick"])
        elif event["trigger"] == "decides":
            assert decided.pop(event["agent_id"]) == (event["to_state"], event["tick"])
    assert not decided


def test_history_has_the_time_of_the_question(run_logged: Callable[..., Any]) -> None:
    """Records of agents carry the same times as the log, also where a decision came late."""
    run = run_logged(reasoner=slow_reasoner(), rounds=2)
    agent = max(run.simulation.agents, key=lambda agent: len(agent.state_history))
    told = [
        event["timestamp"]
        for event in run.events(TRANSITION)
        if event["agent_id"] == agent.agent_id
    ]
    assert [record.to_dict()["timestamp"] for record in agent.state_history] == told[
        -len(agent.state_history) :
    ]


def test_an_answer_outside_the_options_ends_the_run(run_logged: Callable[..., Any]) -> None:
    """A wrong answer raises, and no question is left under way."""
    slow = slow_reasoner()
    failing = FailingReasoner(Decision("flying", "policy"), slow, at=50)
    with pytest.raises(ReasonerError, match="flying"):
        run_logged(reasoner=failing)
    assert slow.under_way == []


def test_an_exception_of_the_reasoner_ends_the_run(tmp_path: Any) -> None:
    """What a reasoner raises reaches the caller; the log has what happened before."""
    population, clock = synthetic_population(60), SimulatedClock()
    slow = slow_reasoner()
    failing = FailingReasoner(RuntimeError("out of order"), slow, at=50)
    with RunLog(tmp_path / "log", clock) as log, pytest.raises(RuntimeError, match="out of order"):
        Run(
            Feed(first_posts=population.posts),
            population.agents,
            reasoner=failing,
            logger=log.logger,
            clock=clock,
            rounds=2,
        ).run()
    assert slow.under_way == []
    events = [orjson.loads(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    assert {TRANSITION, DECISION, POST_PUBLISHED} <= {event["event"] for event in events}


async def run_briefly(reasoner: Any) -> Results:
    """Run a simulation that would be over long before the limit, if it ends at all."""
    population = synthetic_population(60)
    async with asyncio.timeout(30):
        return await Run(
            Feed(first_posts=population.posts), population.agents, rounds=2, reasoner=reasoner
        ).arun()


async def test_a_reasoner_that_cancels_itself_ends_the_run() -> None:
    """A reasoner that cancels itself ends the run with an error that says so."""
    slow = slow_reasoner()
    with pytest.raises(
        ReasonerError, match="the reasoner raised CancelledError, though nobody had cancelled it"
    ):
        await run_briefly(FailingReasoner(asyncio.CancelledError(), slow, at=50))
    assert slow.under_way == []


@pytest.mark.slow
@pytest.mark.usefixtures("_faults_unheard")
async def test_a_client_that_cancels_itself_costs_only_its_decision() -> None:
    """A client that cancels every third call of its own costs those decisions, and no run."""

    class Client:
        asked = 0

        async def run(self, prompt: str) -> str:
            self.asked += 1
            if self.asked % 3 == 0:
                await cancel_itself()
            return '{"next_state": "scrolling"}'

    client = Client()
    totals = (await run_briefly(Reasoner(client))).totals
    assert totals.fallbacks == {"LLMError": client.asked // 3}
    assert totals.fallback_examples == {"LLMError": "LLMError: the client cancelled its own call"}
    assert totals.decisions_asked == client.asked > 30


async def test_a_cancelled_run_leaves_nothing_under_way() -> None:
    """Cancelling a run while questions are out cancels them, too."""
    population = synthetic_population(60)
    slow = slow_reasoner()
    run = asyncio.ensure_future(
        Run(Feed(first_posts=population.posts), population.agents, rounds=50, reasoner=slow).arun()
    )
    while len(slow.under_way) < slow.concurrency:
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert slow.under_way == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
