"""Stragglers of a pool, and the second requests for them."""

import asyncio
from math import log
from random import Random
from statistics import quantiles
from time import perf_counter
from typing import Any

import pytest

from prism.errors import BadReplyError, LLMError, ModelMissingError, TimedOutError, UnreachableError
from prism.statechart import Reasoner
from prism.statechart.reasoner import Cost
from prism.statechart.reasoner._pool import FEWEST_SEEN, Pace
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.pools import FAILURES_TO_OPEN, ask, ask_in_turn, at_rest, paced
from tests.kit.reasoners import crowd
from tests.kit.servers import BOTH, HELLO, QUESTION, Connect, Gate, Serve, watched
from tests.kit.waiting import until


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


@BOTH
async def test_a_straggler_is_asked_elsewhere(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """An answer that takes far too long comes from another server, and both requests count."""
    servers = [serve() for _ in range(2)]
    pool, cost = paced(connect(*servers, hedge=True), 0.5), Cost()
    servers[0].fail(Fault.hang())
    asking = asyncio.create_task(pool.chat(HELLO, cost=cost))
    await loop_clock.passes(0.4, when=lambda: servers[0].questions)
    assert servers[1].questions == []
    loop_clock.time += 0.2
    reply = await asking
    assert (reply.host, cost.host, cost.attempts) == (servers[1].host, servers[1].host, 2)
    assert len(servers[1].questions) == 1
    await until(lambda: servers[0].open_connections == 0)
    assert at_rest(pool)
    assert not any(host.breaker.is_open() for host in pool.servers)


async def test_a_pool_learns_its_pace_from_answers(server: FakeOllama, connect: Connect) -> None:
    """By the real clock, too: after twenty answers one that hangs is asked for once more."""
    pool, cost = connect(concurrency=2, hedge=True, timeout=60), Cost()
    await ask_in_turn(pool, FEWEST_SEEN)
    server.fail(Fault.hang())
    assert (await pool.chat(HELLO, cost=cost)).text == "Hello."
    assert cost.attempts == 2


async def test_the_cost_is_that_of_the_request_that_answered(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A straggler that answers before its hedge took all its time, and waited for nothing."""
    servers = [serve() for _ in range(2)]
    pool = paced(connect(*servers, hedge=True, concurrency=10), 0.5)
    gate = servers[0].latency = Gate()
    servers[1].fail(Fault.hang())
    cost = Cost()
    began = perf_counter()
    asking = asyncio.create_task(pool.chat(HELLO, cost=cost))
    await loop_clock.passes(0.5, when=lambda: servers[0].questions)
    straggled = perf_counter()
    await until(lambda: servers[1].questions)
    hedged = perf_counter()
    gate.is_open = True
    reply = await asking
    cost.settle(perf_counter() - began)
    assert (reply.host, cost.host, cost.attempts) == (servers[0].host, servers[0].host, 2)
    # longer than the hedge can have taken, whose request was sent when the other straggled
    assert cost.request_seconds is not None
    assert cost.request_seconds >= hedged - straggled
    assert cost.eval_duration is not None
    # all that the server did was done in that time
    assert cost.total_duration is not None
    assert cost.total_duration / 1e9 <= cost.request_seconds


@BOTH
async def test_a_straggler_of_a_lone_server_is_asked_again_there(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """One server with a second slot is asked twice; its capabilities are kept to."""
    pool, cost = paced(connect(concurrency=2, hedge=True), 0.5), Cost()
    server.fail(Fault.hang())
    asking = asyncio.create_task(pool.chat(HELLO, cost=cost))
    await loop_clock.passes(0.5, when=lambda: server.questions)
    await asking
    assert cost.attempts == 2
    assert at_rest(pool)


async def test_decision_questions_are_hedged(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A decision that straggles is asked twice as well, by the pace of decisions."""
    servers = [serve() for _ in range(2)]
    pool = connect(*servers, model="nimble", hedge=True)
    servers[0].latency = servers[1].latency = loop_clock.takes(0.5)
    for _ in range(FEWEST_SEEN):
        await pool.systemone("about Ada", QUESTION)
    servers[0].fail(Fault.hang())
    before, cost = len(servers[0].questions), Cost()
    asking = asyncio.create_task(pool.systemone("about Ada", QUESTION, cost=cost))
    await loop_clock.passes(0.5, when=lambda: len(servers[0].questions) > before)
    reply = await asking
    assert (reply.host, cost.attempts) == (servers[1].host, 2)


@BOTH
@pytest.mark.parametrize("settings", [{}, {"hedge": True}], ids=["unasked", "unseen"])
async def test_nothing_is_hedged_unasked_or_unseen(
    settings: dict[str, Any], serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """Without the option, or before twenty answers, a straggler is waited for."""
    servers = [serve() for _ in range(2)]
    pool, cost = connect(*servers, timeout=5, **settings), Cost()
    if settings:
        paced(pool, 0.5, FEWEST_SEEN - 1)
    servers[0].fail(Fault.hang())
    asking = asyncio.create_task(pool.chat(HELLO, cost=cost))
    await loop_clock.passes(4, when=lambda: servers[0].questions)
    assert not asking.done()
    loop_clock.time += 1
    with pytest.raises(LLMError, match="no complete reply"):
        await asking
    assert (cost.attempts, servers[1].questions) == (1, [])


@BOTH
@pytest.mark.sampled(2)
async def test_a_hedge_takes_only_a_slot_that_nobody_wants(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """While others wait for slots they are served first; the straggler is hedged after them."""
    pool = paced(connect(concurrency=2, hedge=True), 0.5)
    server.fail(Fault.hang())
    served: list[str] = []

    async def one(name: str) -> None:
        await pool.chat([{"role": "user", "content": name}])
        served.append(name)

    slow = asyncio.create_task(one("slow"))
    await until(lambda: server.questions)
    others = [asyncio.create_task(one(str(number))) for number in range(30)]
    await until(lambda: pool.waiting == 29 or served)
    loop_clock.time += 0.5
    await asyncio.gather(slow, *others)
    prompts = [asked.prompt for asked in server.questions]
    assert sorted(map(int, served[:30])) == list(range(30))
    assert (prompts.count("slow"), prompts[-1], served[-1]) == (2, "slow", "slow")
    assert at_rest(pool)


@BOTH
@pytest.mark.sampled(2)
async def test_a_hedge_that_fails_leaves_the_question_to_the_first(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A refusal of the second server is charged to it once the first has answered after all."""
    first, second = (serve() for _ in range(2))
    pool = paced(connect(first, second, hedge=True), 0.5)
    second.fail_always(Fault.status(400))
    for number in range(1, FAILURES_TO_OPEN + 1):
        gate = first.latency = Gate()
        asking = asyncio.create_task(pool.chat(HELLO))
        await loop_clock.passes(0.5, when=lambda asked=number: len(first.questions) == asked)
        await until(lambda: pool.servers[1].traffic.doubts)
        gate.is_open = True
        assert (await asking).host == first.host
    assert [host.breaker.is_open() for host in pool.servers] == [False, True]
    assert at_rest(pool)


@BOTH
async def test_a_server_that_hangs_costs_no_time_out(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """Where a server hangs, the other one answers before the time-out of the request."""
    first, second = (serve() for _ in range(2))
    pool = paced(connect(first, second, hedge=True, timeout=5), 0.5)
    first.fail_always(Fault.hang())
    second.latency = loop_clock.takes(4)
    asking = asyncio.create_task(pool.chat(HELLO))
    await loop_clock.passes(0.5, when=lambda: first.questions)
    assert (await asking).host == second.host
    assert at_rest(pool)


@BOTH
@pytest.mark.parametrize("steps", range(6))
@pytest.mark.sampled(12)
async def test_a_cancelled_question_takes_its_hedge_along(
    steps: int, serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A hedged question that is cancelled, however early, leaves no slot in use."""
    servers = [serve() for _ in range(2)]
    # so that a hedge follows at once
    pool = paced(connect(*servers, hedge=True), 0)
    for server in servers:
        server.fail_always(Fault.hang())
    task = asyncio.create_task(pool.chat(HELLO))
    if steps == 5:
        await until(
            lambda: all(
                server.questions and host.traffic.in_flight
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
@pytest.mark.slow
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
        decisions = await Reasoner(pool, mode="chat").decide_many(crowd(70))
        assert {decision.source for decision in decisions} == {"model"}
        chosen.append([decision.chosen for decision in decisions])
        assert at_rest(pool)
    assert chosen[0] == chosen[1]
    requests = sum(len(server.questions) for server in servers)
    # 70 questions, and 70 of which some were put twice
    assert 140 <= requests <= 210


LOAD, VERSION = "/api/generate", "/api/version"


def loading() -> int:
    """Return on how many servers the model is being loaded."""
    return sum(getattr(task.get_coro(), "__name__", "") == "_load" for task in asyncio.all_tasks())


async def test_warming_up_reports_for_each_server(serve: Serve, connect: Connect) -> None:
    """The model is loaded everywhere, and where that fails the error stands beside the address."""
    good, bare, gone = serve(), serve(models=[]), serve()
    gone.stop()
    report = await connect(good, bare, gone).warm_up()
    assert report.pop(good.host) is None
    assert isinstance(report.pop(bare.host), ModelMissingError)
    assert isinstance(report.pop(gone.host), UnreachableError)
    assert report == {}


async def test_one_warm_server_is_enough(serve: Serve, connect: Connect, loop_clock: Clock) -> None:
    """A load that takes much longer than another is cancelled, and no connection stays open."""
    good, silent = serve(), serve()
    silent.fail_always(Fault.hang(), path=LOAD)
    warming = asyncio.create_task(connect(good, silent, load_timeout=600).warm_up())
    await loop_clock.passes(1, when=lambda: loading() == 1)
    report = await warming
    assert report[good.host] is None
    assert isinstance(report[silent.host], TimedOutError)
    assert str(report[silent.host]) == f"tiny is not loaded at {silent.host} yet"
    await until(lambda: silent.open_connections == 0)


async def test_those_who_are_almost_ready_are_waited_for(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A server that takes a little longer than the first is waited for."""
    gate = Gate()
    warming = asyncio.create_task(connect(serve(), serve(latency=gate)).warm_up())
    await loop_clock.passes(0.9, when=lambda: loading() == 1)
    gate.is_open = True
    assert list((await warming).values()) == [None, None]


async def test_patience_has_an_end(serve: Serve, connect: Connect, loop_clock: Clock) -> None:
    """If no server is warm in time, all are told to be late."""
    servers = [serve() for _ in range(2)]
    for server in servers:
        server.fail_always(Fault.hang(), path=LOAD)
    warming = asyncio.create_task(connect(*servers, load_timeout=600).warm_up(4))
    await loop_clock.passes(4, when=lambda: loading() == 2)
    report = await warming
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
    server: FakeOllama, connect: Connect, fault: Fault, found: str | None, loop_clock: Clock
) -> None:
    """A server that does not tell its version is not asked to load; one with an odd version is."""
    server.fail_always(fault, path=VERSION)
    if found:
        server.fail_always(Fault.body(b"<html>"), path=LOAD)  # which would be another error
    warming = asyncio.create_task(connect(timeout=4, load_timeout=600).warm_up())
    if found:
        await loop_clock.passes(4, when=lambda: server.open_connections)
    (error,) = (await warming).values()
    assert (None if error is None else type(error).__name__) == found
    assert not isinstance(error, BadReplyError)


CONNECTING = {
    "httpx": "httpcore._backends.auto.AutoBackend.connect_tcp",
    "aiohttp": "aiohttp.TCPConnector._create_connection",
}


@BOTH
async def test_a_request_that_was_cancelled_before_it_was_sent_is_not_counted(
    server: FakeOllama, carrier: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is given up while its connection is being made has cost no request."""
    connecting = asyncio.Event()

    async def never(*_of: Any, **_more: Any) -> None:
        connecting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(CONNECTING[carrier], never)
    cost = Cost(trail=[])
    asking = asyncio.create_task(connect().chat(HELLO, cost=cost))
    await asyncio.wait_for(connecting.wait(), 30)
    asking.cancel()
    await asyncio.wait({asking})
    assert (cost.attempts, cost.trail, server.asked) == (0, [], 0)


@BOTH
async def test_a_request_that_was_cancelled_after_it_was_sent_is_counted(
    server: FakeOllama, connect: Connect
) -> None:
    """What is given up while the server works at it has cost one request."""
    server.fail(Fault.hang())
    cost = Cost(trail=[])
    asking = asyncio.create_task(connect().chat(HELLO, cost=cost))
    await until(lambda: server.asked)
    asking.cancel()
    await asyncio.wait({asking})
    assert (cost.attempts, len(cost.trail or ())) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "patience", "waits", "loaded"),
    [
        (Fault.status(503, "no slot"), 0, [], False),
        (Fault.status(503, "no slot"), 60, [50], True),
        (Fault.status(429, "later", retry_after="30"), 60, [31, 29], False),
        (Fault.status(503, "Loading model"), 60, [400], True),
    ],
    ids=["no patience", "busy", "for ever", "loading"],
)
@pytest.mark.sampled(4)
async def test_with_patience_a_busy_server_is_waited_for_before_a_run(
    fault: Fault,
    patience: float,
    waits: list[float],
    loaded: bool,
    server: FakeOllama,
    connect: Connect,
    loop_clock: Clock,
) -> None:
    """A server that is busy is asked again for a while, and for minutes while it is loading."""
    reached: list[str] = []
    server.fail_always(watched(fault, reached), path="/api/version")
    pool = connect(patience=patience)
    loading = asyncio.create_task(pool.warm_up())

    def has_read(count: int) -> bool:
        """Return whether the client waits, or has given up, after so many answers."""
        return len(reached) == count and (loading.done() or is_pausing())

    for count, seconds in enumerate(waits, start=1):
        await loop_clock.passes(seconds, when=lambda count=count: has_read(count))
    if loaded:
        await until(lambda: has_read(2))
        server.recover()
        await loop_clock.passes(1)
    ((_, error),) = (await loading).items()
    assert (error is None) is loaded
    # what was waited for in vain is not waited for a second time
    assert pool.servers[0].breaker.fails_fast() is (bool(patience) and not loaded)


def is_pausing() -> bool:
    """Return whether the model is to be loaded once more after a pause."""
    awaited = (getattr(task.get_coro(), "cr_await", None) for task in asyncio.all_tasks())
    return any(getattr(each, "__name__", "") == "sleep" for each in awaited)
