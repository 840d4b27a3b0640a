"""Stragglers of a pool, and the second requests for them."""

import asyncio
from collections.abc import Callable, Iterator
from math import log
from random import Random
from statistics import quantiles
from time import perf_counter
from typing import Any

import pytest

from prism.errors import BadReplyError, LLMError, ModelMissingError, TimedOutError, UnreachableError
from prism.llm import OllamaPool
from prism.llm._hedging import FEWEST_SEEN, Pace
from prism.statechart import Reasoner
from prism.statechart.reasoner import Cost
from prism.testing import FakeOllama, Fault
from tests.kit.pools import ask, ask_in_turn, at_rest
from tests.kit.reasoners import crowd
from tests.kit.servers import BOTH, HELLO, QUESTION, Connect, Serve
from tests.kit.waiting import until

FOREVER = 60.0


def test_a_pace_needs_some_answers() -> None:
    """Before twenty answers nothing counts as a straggler."""
    pace = Pace()
    for _ in range(FEWEST_SEEN - 1):
        pace.note(0.1)
    assert pace.straggles_after() is None
    pace.note(0.1)
    assert pace.straggles_after() == 0.1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [FEWEST_SEEN, 100, 256, 1000])
def test_a_pace_is_the_95th_percentile_of_the_latest(seed: int, size: int) -> None:
    """Of the latest 256 answers, 5 % took longer than what counts as straggling."""
    dice, pace = Random(seed), Pace()
    seconds = [dice.lognormvariate(log(0.1), 1) for _ in range(size)]
    for took in seconds:
        pace.note(took)
    limit = pace.straggles_after()
    assert limit is not None
    latest = seconds[-256:]
    assert sum(took > limit for took in latest) <= 0.05 * len(latest)
    assert sum(took >= limit for took in latest) >= 0.05 * len(latest)
    assert limit >= quantiles(latest, n=20)[17]


def test_a_request_that_was_given_up_late_counts() -> None:
    """Stragglers that lose to their hedges are not forgotten; what ends early tells nothing."""
    pace = Pace()
    for _ in range(100):
        pace.note(0.1)
    for _ in range(50):
        pace.note_given_up(0.05)
    assert pace.straggles_after() == 0.1
    for _ in range(10):
        pace.note_given_up(0.7)
    assert pace.straggles_after() == 0.7


async def warmed(pool: OllamaPool, times: int = FEWEST_SEEN) -> OllamaPool:
    """Have a pool learn how long answers take."""
    await ask_in_turn(pool, times)
    return pool


@pytest.fixture
def straggle() -> Iterator[Callable[[FakeOllama, int], None]]:
    """Return what makes the next answers of a server take forever."""

    def make(server: FakeOllama, times: int) -> None:
        left = [FOREVER] * times
        server.latency = lambda: left.pop() if left else 0.001

    return make


Straggle = Callable[[FakeOllama, int], None]


@BOTH
async def test_a_straggler_is_asked_elsewhere(
    serve: Serve, connect: Connect, straggle: Straggle
) -> None:
    """An answer that takes far too long comes from another server, and both requests count."""
    servers = [serve(latency=0.001) for _ in range(2)]
    pool = await warmed(connect(*servers, hedge=True, timeout=FOREVER))
    straggle(servers[0], 1)
    before, cost = len(servers[1].questions), Cost()
    async with asyncio.timeout(10):
        reply = await pool.chat(HELLO, cost=cost)
    assert (reply.host, cost.host, cost.attempts) == (servers[1].host, servers[1].host, 2)
    assert len(servers[1].questions) == before + 1
    await until(lambda: servers[0].open_connections == 0)
    assert at_rest(pool)
    assert not any(host.breaker.is_open() for host in pool.servers)


async def test_the_cost_is_that_of_the_request_that_answered(
    serve: Serve, connect: Connect
) -> None:
    """A straggler that answers before its hedge took all its time, and waited for nothing."""
    servers = [serve(latency=0.2) for _ in range(2)]
    pool = connect(*servers, hedge=True, concurrency=10, timeout=FOREVER)
    await ask(pool, FEWEST_SEEN)
    servers[0].latency, servers[1].latency = 0.6, FOREVER
    cost = Cost()
    began = perf_counter()
    reply = await pool.chat(HELLO, cost=cost)
    cost.settle(perf_counter() - began)
    assert (reply.host, cost.host, cost.attempts) == (servers[0].host, servers[0].host, 2)
    assert cost.request_seconds is not None
    assert cost.request_seconds >= 0.6
    assert cost.eval_duration is not None
    # all that the server did was done in that time
    assert cost.total_duration is not None
    assert cost.total_duration / 1e9 <= cost.request_seconds


@BOTH
async def test_a_straggler_of_a_lone_server_is_asked_again_there(
    server: FakeOllama, connect: Connect, straggle: Straggle
) -> None:
    """One server with a second slot is asked twice; its capabilities are kept to."""
    pool = await warmed(connect(concurrency=2, hedge=True, timeout=FOREVER))
    straggle(server, 1)
    cost = Cost()
    async with asyncio.timeout(10):
        await pool.chat(HELLO, cost=cost)
    assert cost.attempts == 2
    assert at_rest(pool)


async def test_decision_questions_are_hedged(
    serve: Serve, connect: Connect, straggle: Straggle
) -> None:
    """A decision that straggles is asked twice as well, by the pace of decisions."""
    servers = [serve(latency=0.001) for _ in range(2)]
    pool = connect(*servers, model="nimble", hedge=True, timeout=FOREVER)
    for _ in range(FEWEST_SEEN):
        await pool.systemone("about Ada", QUESTION)
    straggle(servers[0], 1)
    cost = Cost()
    async with asyncio.timeout(10):
        reply = await pool.systemone("about Ada", QUESTION, cost=cost)
    assert (reply.host, cost.attempts) == (servers[1].host, 2)


@BOTH
@pytest.mark.parametrize(
    ("settings", "seen"), [({}, FEWEST_SEEN), ({"hedge": True}, FEWEST_SEEN - 1)]
)
@pytest.mark.sampled(3)
async def test_nothing_is_hedged_unasked_or_unseen(
    settings: dict[str, Any], seen: int, serve: Serve, connect: Connect, straggle: Straggle
) -> None:
    """Without the option, or before twenty answers, a straggler is waited for."""
    servers = [serve(latency=0.001) for _ in range(2)]
    pool = await warmed(connect(*servers, timeout=0.3, **settings), seen)
    straggle(servers[0], 1)
    cost = Cost()
    with pytest.raises(LLMError, match="no complete reply"):
        await pool.chat(HELLO, cost=cost)
    assert cost.attempts == 1


@BOTH
async def test_a_hedge_takes_only_a_slot_that_nobody_wants(
    server: FakeOllama, connect: Connect, straggle: Straggle
) -> None:
    """While others wait for slots they are served first; the straggler is hedged after them."""
    pool = await warmed(connect(concurrency=2, hedge=True, timeout=FOREVER))
    straggle(server, 1)
    served: list[str] = []

    async def one(name: str) -> None:
        await pool.chat([{"role": "user", "content": name}])
        served.append(name)

    async with asyncio.timeout(20):
        slow = asyncio.create_task(one("slow"))
        await until(lambda: server.questions[-1].prompt == "slow")
        await asyncio.gather(slow, *(one(str(number)) for number in range(30)))
    prompts = [asked.prompt for asked in server.questions[FEWEST_SEEN:]]
    assert sorted(map(int, served[:30])) == list(range(30))
    assert (prompts.count("slow"), prompts[-1], served[-1]) == (2, "slow", "slow")
    assert at_rest(pool)


@BOTH
@pytest.mark.slow
async def test_a_hedge_that_fails_leaves_the_question_to_the_first(
    serve: Serve, connect: Connect
) -> None:
    """A refusal of the second server is charged to it once the first has answered after all."""
    first, second = (serve(latency=0.001) for _ in range(2))
    pool = await warmed(connect(first, second, hedge=True, timeout=FOREVER), 10 * FEWEST_SEEN)
    for _ in range(5):
        first.latency = 0.3
        second.fail_always(Fault.status(400))
        assert (await pool.chat(HELLO)).host == first.host
    assert [host.breaker.is_open() for host in pool.servers] == [False, True]
    assert at_rest(pool)


@BOTH
async def test_a_server_that_hangs_costs_no_time_out(serve: Serve, connect: Connect) -> None:
    """Where a server hangs, the other one answers before the time-out of the request."""
    first, second = (serve(latency=0.001) for _ in range(2))
    pool = await warmed(connect(first, second, hedge=True, timeout=0.2))
    first.fail_always(Fault.hang())
    second.latency = 0.15
    assert (await pool.chat(HELLO)).host == second.host
    assert at_rest(pool)


@BOTH
@pytest.mark.parametrize("steps", range(6))
@pytest.mark.sampled(6)
async def test_a_cancelled_question_takes_its_hedge_along(
    steps: int, serve: Serve, connect: Connect
) -> None:
    """A hedged question that is cancelled, however early, leaves no slot in use."""
    servers = [serve(latency=0.001) for _ in range(2)]
    pool = await warmed(connect(*servers, hedge=True, timeout=FOREVER))
    for server in servers:
        server.fail_always(Fault.hang())
    task = asyncio.create_task(pool.chat(HELLO))
    if steps == 5:
        await until(
            lambda: all(
                server.questions[-1:] and host.traffic.in_flight
                for server, host in zip(servers, pool.servers, strict=True)
            )
        )
    else:
        for _ in range(steps):
            await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert at_rest(pool)
    for server in servers:
        server.recover()
    assert len(await ask(pool, 8)) == 8


@BOTH
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(6)
async def test_hedging_changes_no_decision(seed: int, serve: Serve, connect: Connect) -> None:
    """With a deterministic model the decisions are the same, whichever server was first."""
    dice = Random(seed)
    servers = [
        serve(
            choose=lambda asked: asked.options[len(asked.prompt) % len(asked.options)],
            latency=lambda: dice.lognormvariate(log(0.003), 1.2),
        )
        for _ in range(2)
    ]
    chosen = []
    for hedge in (False, True):
        pool = connect(*servers, hedge=hedge, concurrency=3)
        decisions = await Reasoner(pool, mode="chat").decide_many(crowd(150))
        assert {decision.source for decision in decisions} == {"model"}
        chosen.append([decision.chosen for decision in decisions])
        assert at_rest(pool)
    assert chosen[0] == chosen[1]
    requests = sum(len(server.questions) for server in servers)
    assert 300 <= requests <= 345


LOAD, VERSION = "/api/generate", "/api/version"


async def test_warming_up_reports_for_each_server(serve: Serve, connect: Connect) -> None:
    """The model is loaded everywhere, and where that fails the error stands beside the address."""
    good, bare, gone = serve(), serve(models=[]), serve()
    gone.stop()
    report = await connect(good, bare, gone).warm_up()
    assert report.pop(good.host) is None
    assert isinstance(report.pop(bare.host), ModelMissingError)
    assert isinstance(report.pop(gone.host), UnreachableError)
    assert report == {}


async def test_one_warm_server_is_enough(serve: Serve, connect: Connect) -> None:
    """A load that takes much longer than another is cancelled, and no connection stays open."""
    good, silent = serve(), serve()
    silent.fail_always(Fault.hang(), path=LOAD)
    report = await connect(good, silent, load_timeout=600).warm_up()
    assert report[good.host] is None
    assert isinstance(report[silent.host], TimedOutError)
    assert str(report[silent.host]) == f"tiny is not loaded at {silent.host} yet"
    await until(lambda: silent.open_connections == 0)


async def test_those_who_are_almost_ready_are_waited_for(serve: Serve, connect: Connect) -> None:
    """A server that takes a little longer than the first is waited for."""
    report = await connect(serve(), serve(latency=0.3)).warm_up()
    assert list(report.values()) == [None, None]


async def test_patience_has_an_end(serve: Serve, connect: Connect) -> None:
    """If no server is warm in time, all are told to be late."""
    servers = [serve() for _ in range(2)]
    for server in servers:
        server.fail_always(Fault.hang(), path=LOAD)
    async with asyncio.timeout(5):
        report = await connect(*servers, load_timeout=600).warm_up(0.2)
    assert [type(error) for error in report.values()] == [TimedOutError] * 2


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Fault.hang(), "TimedOutError"),
        (Fault.status(404, body=b"no page"), None),
        (Fault.body(b"{}"), None),
    ],
    ids=["silent", "no such page", "no version"],
)
async def test_a_silent_server_is_found_out_before_the_long_wait(
    server: FakeOllama, connect: Connect, fault: Fault, found: str | None
) -> None:
    """A server that does not tell its version is not asked to load; one with an odd version is."""
    server.fail_always(fault, path=VERSION)
    if found:
        server.fail_always(Fault.body(b"<html>"), path=LOAD)  # which would be another error
    (error,) = (await connect(timeout=0.5, load_timeout=5).warm_up()).values()
    assert (None if error is None else type(error).__name__) == found
    assert not isinstance(error, BadReplyError)
