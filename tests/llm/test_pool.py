"""Many servers as one."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tenacity import RetryCallState

from prism.errors import (
    DecisionsUnsupportedError,
    FieldValueError,
    LeftAloneError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    UnreachableError,
)
from prism.llm import OllamaChatClient, OllamaPool
from prism.llm._breaker import FAILURES_TO_OPEN, CircuitBreaker
from prism.llm._host import LOOK_SECONDS
from prism.llm._pool import _pause
from prism.llm._throttle import Throttle
from prism.testing import FakeOllama, Fault

Connect = Callable[..., OllamaPool]
Serve = Callable[..., FakeOllama]
HELLO = [{"role": "user", "content": "hello"}]
QUESTION = {"q0": {"type": "choice", "instructions": "?", "criteria": {"a": None, "b": None}}}


async def ask(pool: OllamaPool, times: int = 1) -> list[str]:
    """Ask many questions at once and give the hosts that answered."""
    return [reply.host for reply in await asyncio.gather(*(pool.chat(HELLO) for _ in range(times)))]


def impatient(
    pool: OllamaPool, *, pause: float = 0.05, probe_wait: float = 10, patience: float = 0
) -> OllamaPool:
    """Let failing hosts rest for a moment only, and others wait for a probe for so long."""
    for host in pool._hosts:
        host.breaker = CircuitBreaker(first_pause=pause, probe_wait=probe_wait, patience=patience)
    return pool


def open_at_once(pool: OllamaPool, number: int = 0) -> None:
    """Let a pool leave one of its servers alone."""
    for _ in range(FAILURES_TO_OPEN):
        pool._hosts[number].breaker.failed()


async def open_breaker(server: FakeOllama, pool: OllamaPool) -> None:
    """Let a pool of one server, and one attempt, leave that server alone."""
    server.fail(*[Fault.drop()] * FAILURES_TO_OPEN)
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(UnreachableError, match="broke"):
            await pool.chat(HELLO)


def at_rest(pool: OllamaPool) -> bool:
    """Return whether nobody asks or waits."""
    return not pool._slots.waiting and not any(host.in_flight for host in pool._hosts)


# How it is made


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": ""}, "model must be the name of a model on the server, such as 'llama3.2'"),
        ({"timeout": 0}, "timeout must be above 0, got 0"),
        ({"timeout": float("nan")}, "timeout must be above 0, got nan"),
        ({"temperature": float("nan")}, "temperature must be a finite number, got nan"),
        ({"temperature": float("inf")}, "temperature must be a finite number, got inf"),
        ({"concurrency": 0}, "concurrency must be above 0, got 0"),
        ({"attempts": 0}, "attempts must be above 0, got 0"),
        ({"patience": -1}, "patience must be a finite number, 0 or above, got -1"),
        ({"patience": float("inf")}, "patience must be a finite number, 0 or above, got inf"),
        ({"patience": float("nan")}, "patience must be a finite number, 0 or above, got nan"),
        ({"host": ""}, "host must be an address such as http://127.0.0.1:11434, got ''"),
        ({"host": "http://[::1"}, "host must be an address such as"),
        ({"host": "localhost:99999"}, "host must be an address such as"),
        ({"host": "ftp://localhost"}, "host must be an address such as"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], message: str) -> None:
    """A setting that could never work is an error when the client is made, not when it is asked."""
    with pytest.raises(FieldValueError, match=message):
        OllamaChatClient(**{"host": "localhost", "model": "tiny", **settings})


@pytest.mark.parametrize("hosts", [[], "localhost"])
def test_a_pool_needs_a_list_of_hosts(hosts: Any) -> None:
    """No host, or a text in place of a list, is refused."""
    with pytest.raises(FieldValueError, match="hosts must be a list of at least one address"):
        OllamaPool(hosts, "tiny")


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:80", "http://[::1]:11434", "https://models.example/ollama"]
)
def test_an_address_may_be_short(host: str) -> None:
    """A host may be given with or without scheme, port and path."""
    assert OllamaChatClient(host, "tiny").host == host


def test_a_host_named_twice_is_one() -> None:
    """The limit of a host holds even if it is listed twice."""
    pool = OllamaPool(["a", "b", "a", "http://a:11434/", "u:p@b"], "tiny", concurrency=3)
    assert (pool.hosts, pool.concurrency) == (["a", "b"], 6)


# Slots


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_questions_than_allowed_are_under_way(
    serve: Serve, connect: Connect, limit: int
) -> None:
    """Of many questions exactly as many as the limit reach each server at the same time, and all are answered."""
    servers = [serve(latency=0.1) for _ in range(2)]
    pool = connect(*servers, concurrency=limit)
    assert len(await ask(pool, 8 * limit)) == 8 * limit
    assert [server.most_at_once for server in servers] == [limit, limit]
    assert at_rest(pool)


async def test_questions_go_where_the_fewest_are_under_way(
    serve: Serve, connect: Connect, until: Any
) -> None:
    """Of three equal servers each gets its third, and one that does not answer gets no more than its limit."""
    servers = [serve(latency=0.02) for _ in range(3)]
    pool = connect(*servers, concurrency=4)
    assert Counter(await ask(pool, 12)) == {server.host: 4 for server in servers}
    servers[0].fail_always(Fault.hang())
    stuck = [asyncio.create_task(pool.chat(HELLO)) for _ in range(3 * 4 + 40)]
    await until(lambda: sum(task.done() for task in stuck) >= len(stuck) - 4)
    done, pending = await asyncio.wait(stuck, timeout=0.1)
    assert len(pending) == 4
    assert {task.result().host for task in done} == {servers[1].host, servers[2].host}
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    assert at_rest(pool)


async def test_who_waits_is_served_in_order(serve: Serve, connect: Connect) -> None:
    """Those who wait for a slot get it in the order in which they came, and no newcomer comes in between."""
    server, served = serve(latency=0.01), []
    pool = connect(server, concurrency=1)

    async def one(number: int) -> None:
        await pool.chat([{"role": "user", "content": str(number)}])
        if number < 5:
            tasks.append(asyncio.create_task(one(number + 10)))

    tasks = [asyncio.create_task(one(number)) for number in range(6)]
    while any(not task.done() for task in tasks):
        await asyncio.gather(*tasks)
    served = [int(asked.prompt) for asked in server.questions]
    assert served == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14]


@pytest.mark.parametrize("where", ["under way", "waiting"])
async def test_a_cancelled_question_leaves_nothing_behind(
    server: FakeOllama, connect: Connect, until: Any, where: str
) -> None:
    """Cancelling a question, asked or still waiting, frees its place; after closing no connection is open."""
    server.fail_always(Fault.hang())
    pool = connect(concurrency=1)
    under_way, waiting = (asyncio.create_task(pool.chat(HELLO)) for _ in range(2))
    await until(lambda: len(server.questions) == 1)
    assert pool._slots.waiting == 1
    cancelled, other = (under_way, waiting) if where == "under way" else (waiting, under_way)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert pool._slots.waiting == 0
    server.recover()
    if where == "under way":
        assert (await other).text == "Hello."
    else:
        other.cancel()
        await asyncio.wait({other})
    assert at_rest(pool)
    await pool.close()
    await until(lambda: server.open_connections == 0)


async def test_a_slot_given_to_one_who_is_cancelled_goes_to_the_next(
    serve: Serve, connect: Connect
) -> None:
    """A waiter that is cancelled in the very step in which it got its slot hands the slot on."""
    pool = connect(serve(), concurrency=1)
    slots, hosts = pool._slots, pool._hosts
    lease = await slots.take(hosts)
    first, second = (asyncio.create_task(slots.take(hosts)) for _ in range(2))
    await asyncio.sleep(0)
    slots.give_back(lease)
    first.cancel()
    slots.give_back(await asyncio.wait_for(second, 5))
    assert first.cancelled()
    assert at_rest(pool)


@pytest.mark.parametrize("seed", range(3))
async def test_no_wake_up_is_lost(serve: Serve, connect: Connect, until: Any, seed: int) -> None:
    """Of hundreds of questions of both kinds, cancelled at random, all that are left are answered."""
    chance = random.Random(seed)
    both = serve(latency=0.002, models=[])
    chats = serve(latency=0.002, models=["nimble"], decision_models=[], decides=False)
    pool = connect(chats, both, model="nimble", concurrency=2)
    assert await pool.offers_decisions()

    async def one() -> Any:
        await asyncio.sleep(chance.random() * 0.05)
        return await (pool.chat(HELLO) if chance.random() < 0.5 else pool.systemone("s", QUESTION))

    tasks = [asyncio.create_task(one()) for _ in range(300)]
    for task in chance.sample(tasks, 150):
        asyncio.get_running_loop().call_later(chance.random() * 0.2, task.cancel)
    async with asyncio.timeout(20):
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end).__name__ for end in ended} == {"ChatReply", "DecisionReply", "CancelledError"}
    assert at_rest(pool)
    await pool.close()
    await until(lambda: both.open_connections == chats.open_connections == 0)


async def test_who_can_go_nowhere_does_not_use_up_a_wake_up(serve: Serve, connect: Connect) -> None:
    """A slot that the first in the queue cannot use, as its only host is left alone, goes to the one behind."""
    pool = connect(serve(), serve(), concurrency=1)
    slots, (one, other) = pool._slots, pool._hosts
    leases = [await slots.take((one,)), await slots.take((other,))]
    picky, anywhere = (asyncio.create_task(slots.take(hosts)) for hosts in ((one,), (one, other)))
    await asyncio.sleep(0)
    for _ in range(FAILURES_TO_OPEN):
        one.breaker.failed()
    slots.give_back(leases[1])
    assert (await asyncio.wait_for(anywhere, 5)).host is other
    slots.give_back(leases[0])
    with pytest.raises(LeftAloneError):
        await asyncio.wait_for(picky, 5)


# Retries


@pytest.mark.parametrize(
    "fault",
    [
        Fault.drop(),
        Fault.drop_midway(),
        Fault.hang(),
        *(Fault.status(code) for code in (429, 502, 503, 504)),
    ],
    ids=lambda fault: fault.name,
)
async def test_what_can_heal_is_tried_again(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """Trouble that passes costs attempts, which are counted, but not the answer."""
    server.fail(fault, fault)
    reply = await connect(attempts=3, timeout=1).chat(HELLO)
    assert (reply.text, reply.attempts, len(server.questions)) == ("Hello.", 3, 3)


@pytest.mark.parametrize("fault", [Fault.drop(), Fault.status(503)], ids=lambda fault: fault.name)
async def test_trouble_that_does_not_pass_ends_the_tries(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """After the last attempt the error itself is raised, with the number of attempts."""
    server.fail_always(fault)
    with pytest.raises((UnreachableError, OverloadedError), match=r"broke|answered 503") as caught:
        await connect(attempts=2).chat(HELLO)
    assert (caught.value.attempts, len(server.questions)) == (2, 2)


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault.status(code) for code in (400, 404, 500)),
        Fault.status(404, "model 'tiny' not found"),
        Fault.body(b"<html>"),
        Fault.says(""),
    ],
    ids=["400", "404", "500", "no model", "html", "empty"],
)
async def test_what_cannot_heal_is_asked_once(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """A refusal or a useless reply is not tried again, and does not keep later questions from being asked."""
    server.fail(*[fault] * (FAILURES_TO_OPEN + 1))
    pool = connect(attempts=3)
    for number in range(1, FAILURES_TO_OPEN + 2):
        with pytest.raises(LLMError) as caught:
            await pool.chat(HELLO)
        assert (caught.value.attempts, len(server.questions)) == (1, number)
    assert (await pool.chat(HELLO)).text == "Hello."


async def test_the_second_try_goes_to_another_server(serve: Serve, connect: Connect) -> None:
    """A question that failed on one server is put to the other at once, whatever pause the first has asked for."""
    broken, good = serve(), serve()
    broken.fail_always(Fault.status(503, retry_after="60"))
    reply = await connect(broken, good, attempts=2).chat(HELLO)
    assert (reply.host, reply.attempts) == (good.host, 2)


async def test_a_pause_that_the_server_asks_for_is_kept(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """With Retry-After the second request comes no earlier than the longest jitter would have let it."""
    server.fail(Fault.status(503, retry_after="20"))
    task = asyncio.create_task(connect(attempts=2).chat(HELLO))
    await until(lambda: len(server.questions) == 1)
    _, pending = await asyncio.wait({task}, timeout=0.4)
    assert pending
    assert len(server.questions) == 1
    task.cancel()


async def test_a_pause_is_kept_if_all_others_are_left_alone(
    serve: Serve, connect: Connect, until: Any
) -> None:
    """A second server that cannot be asked now is no reason to pass over the wish of the first."""
    busy, dead = serve(), serve()
    busy.fail(Fault.status(503, retry_after="20"))
    pool = connect(busy, dead, attempts=2)
    open_at_once(impatient(pool, pause=60), 1)
    task = asyncio.create_task(pool.chat(HELLO))
    await until(lambda: len(busy.questions) == 1)
    _, pending = await asyncio.wait({task}, timeout=0.4)
    assert pending
    assert (len(busy.questions), dead.questions) == (1, [])
    task.cancel()


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.2), (2, 0.4), (3, 0.8), (20, 5.0)])
def test_pauses_grow_and_differ(attempt: int, longest: float) -> None:
    """The pause after a failure is random, up to a bound that doubles with every attempt until it is 5 s."""
    state, error = RetryCallState(None, None, (), {}), UnreachableError("gone")
    state.attempt_number = attempt
    state.set_exception((UnreachableError, error, None))
    pauses = {_pause(state) for _ in range(200)}
    assert len(pauses) > 100
    assert longest / 2 < max(pauses) <= longest


# Servers that are busy


@pytest.mark.parametrize(("slots", "queue_limit"), [(2, 1), (1, 0)])
async def test_a_busy_server_is_not_a_dead_one(
    serve: Serve, connect: Connect, slots: int, queue_limit: int
) -> None:
    """A server that takes fewer questions at once than it is asked answers all, and is not asked much more often."""
    server = serve(slots=slots, queue_limit=queue_limit, latency=0.005)
    pool = connect(server, concurrency=8, attempts=3)
    replies = await asyncio.gather(*(pool.chat(HELLO) for _ in range(150)))
    assert len(replies) == 150
    assert len(server.questions) == sum(reply.attempts for reply in replies) < 3 * 150
    assert not pool._hosts[0].breaker.is_open()
    assert at_rest(pool)


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("retry_after", [None, "0.1"])
async def test_refusals_in_a_burst_cost_no_answer(
    server: FakeOllama, connect: Connect, code: int, retry_after: str | None
) -> None:
    """Questions that were refused together, and with them those that wait, are answered when the server can."""
    server.fail(*[Fault.status(code, retry_after=retry_after)] * 8)
    pool = connect(concurrency=8, attempts=3)
    async with asyncio.timeout(20):
        assert len(await ask(pool, 50)) == 50
    assert len(server.questions) == 58


async def test_nobody_asks_a_server_that_wants_a_pause(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """After Retry-After the other questions wait, too, instead of being refused one after the other."""
    server.fail(Fault.status(429, retry_after="20"))
    pool = connect(concurrency=1, attempts=3)
    tasks = [asyncio.create_task(pool.chat(HELLO)) for _ in range(10)]
    await until(lambda: pool._slots.waiting == 10)
    assert (len(server.questions), pool._hosts[0].breaker.is_open()) == (1, False)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert at_rest(pool)


async def test_a_server_that_is_always_busy_is_left_alone(
    server: FakeOllama, connect: Connect
) -> None:
    """One that has refused everything for long counts as one that fails, so that every question comes to an end."""
    server.fail_always(Fault.status(503))
    pool = connect(concurrency=8, attempts=3)
    pool._hosts[0].throttle = Throttle(first_hold=0.01, longest_busy=0)
    async with asyncio.timeout(20):
        ended = await asyncio.gather(
            *(pool.chat(HELLO) for _ in range(200)), return_exceptions=True
        )
    assert {type(end) for end in ended} == {OverloadedError, LeftAloneError}
    assert len(server.questions) < 50
    assert at_rest(pool)


# Servers that fail


async def test_a_server_that_fails_is_left_alone_and_probed_by_one(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """After five failures nothing is asked at once, then one question probes, and its success lets all through."""
    pool = impatient(connect(concurrency=8), pause=0.5)
    await open_breaker(server, pool)
    with pytest.raises(
        LeftAloneError, match=r"left alone for 0\.\d s after failing again and again: .* broke"
    ) as caught:
        await pool.chat(HELLO)
    assert (caught.value.attempts, caught.value.host, len(server.questions)) == (
        0,
        server.host,
        FAILURES_TO_OPEN,
    )
    await until(pool._hosts[0].breaker.allows)
    server.latency = 0.05
    asking = asyncio.create_task(ask(pool, 40))
    await until(lambda: len(server.questions) == FAILURES_TO_OPEN + 1)
    assert pool._slots.waiting == 39
    assert len(await asking) == 40


async def test_a_probe_that_fails_ends_the_waiting(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """Those who waited for a probe fail at once when it does, and have asked nothing."""
    pool = impatient(connect(concurrency=8), pause=0.3)
    await open_breaker(server, pool)
    await until(pool._hosts[0].breaker.allows)
    server.fail_always(Fault.drop())
    first, *others = await asyncio.gather(
        *(pool.chat(HELLO) for _ in range(5)), return_exceptions=True
    )
    assert isinstance(first, UnreachableError)
    assert [(type(other), other.attempts) for other in others] == [(LeftAloneError, 0)] * 4
    assert at_rest(pool)


async def test_nobody_waits_long_for_a_probe(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """A probe that is not answered holds the others for a moment only, and later ones not at all."""
    pool = impatient(connect(concurrency=8, timeout=60), probe_wait=0.1)
    await open_breaker(server, pool)
    await until(pool._hosts[0].breaker.allows)
    server.fail_always(Fault.hang())
    probe, *others = [asyncio.create_task(pool.chat(HELLO)) for _ in range(5)]
    async with asyncio.timeout(5):
        ended = await asyncio.gather(*others, return_exceptions=True)
        ended += await asyncio.gather(pool.chat(HELLO), return_exceptions=True)
    assert {type(end) for end in ended} == {LeftAloneError}
    assert (probe.done(), len(server.questions)) == (False, FAILURES_TO_OPEN + 1)
    probe.cancel()
    await asyncio.wait({probe})


async def test_a_probe_that_is_cancelled_makes_room_for_the_next(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """When the question that probes is given up one of those who wait for it takes its place."""
    pool = impatient(connect())
    await open_breaker(server, pool)
    await until(pool._hosts[0].breaker.allows)
    server.fail(Fault.hang())
    probe, other = (asyncio.create_task(pool.chat(HELLO)) for _ in range(2))
    await until(lambda: len(server.questions) == FAILURES_TO_OPEN + 1)
    probe.cancel()
    assert (await other).text == "Hello."


async def test_who_waits_elsewhere_probes_a_server_whose_pause_is_over(
    serve: Serve, connect: Connect
) -> None:
    """While the other server answers nothing, a question that waits for it goes to the one that works again."""
    slow, back = serve(), serve()
    slow.fail_always(Fault.hang())
    pool = impatient(connect(slow, back, concurrency=1, timeout=60), pause=0.5)
    open_at_once(pool, 1)
    stuck = asyncio.create_task(pool.chat(HELLO))
    async with asyncio.timeout(5):
        assert await ask(pool, 4) == [back.host] * 4
    stuck.cancel()
    await asyncio.wait({stuck})


@pytest.mark.parametrize("state", ["closed", "open"])
async def test_what_was_not_sent_tells_nothing_of_a_server(
    server: FakeOllama, connect: Connect, until: Any, state: str
) -> None:
    """Questions that cannot be sent neither open a breaker nor close one, and leave the probe to others."""
    pool = impatient(connect(), pause=0.05 if state == "open" else 60)
    breaker = pool._hosts[0].breaker
    if state == "open":
        await open_breaker(server, pool)
    for _ in range(FAILURES_TO_OPEN + 1):
        await until(breaker.allows)
        with pytest.raises(LLMError, match="cannot be sent") as caught:
            await pool.chat([{"role": "user", "content": "\ud83d"}])
        assert caught.value.attempts == 0
        assert breaker.is_open() == (state == "open")
    assert (await pool.chat(HELLO)).text == "Hello."


async def test_a_failed_probe_makes_the_pause_longer(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """A probe that fails is an error like any other, and the server is left alone for twice as long."""
    pool = impatient(connect(), pause=0.3)
    await open_breaker(server, pool)
    breaker = pool._hosts[0].breaker
    await until(breaker.allows)
    server.fail(Fault.status(502))
    with pytest.raises(OverloadedError):
        await pool.chat(HELLO)
    assert breaker._pause == 0.6
    assert not breaker.allows()


async def test_when_all_servers_fail_nobody_waits(server: FakeOllama, connect: Connect) -> None:
    """When the last server opens, those who wait for it fail at once instead of being asked or waiting on."""
    server.fail_always(Fault.status(504))
    pool = connect(concurrency=1)
    async with asyncio.timeout(5):
        ended = await asyncio.gather(*(pool.chat(HELLO) for _ in range(50)), return_exceptions=True)
    assert Counter(type(end).__name__ for end in ended) == {
        "OverloadedError": FAILURES_TO_OPEN,
        "LeftAloneError": 50 - FAILURES_TO_OPEN,
    }
    assert len(server.questions) == FAILURES_TO_OPEN
    assert at_rest(pool)


async def test_retries_end_when_nobody_is_left_to_ask(server: FakeOllama, connect: Connect) -> None:
    """A question that opened the only breaker ends with the error it met, not with that of being left alone."""
    server.fail_always(Fault.status(502))
    with pytest.raises(OverloadedError) as caught:
        await connect(attempts=10).chat(HELLO)
    assert caught.value.attempts == FAILURES_TO_OPEN


async def test_with_patience_an_outage_is_waited_out(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """While a server is down for less than the patience no question fails that does not probe, and all are answered."""
    pool = impatient(connect(concurrency=2), patience=60)
    server.stop()
    open_at_once(pool)
    tasks = [asyncio.create_task(pool.chat(HELLO)) for _ in range(30)]
    await until(lambda: any(task.done() for task in tasks))
    server.start()
    async with asyncio.timeout(20):
        ended = Counter(
            type(end).__name__ for end in await asyncio.gather(*tasks, return_exceptions=True)
        )
    assert set(ended) == {"ChatReply", "UnreachableError"}
    assert ended["UnreachableError"] < 15
    assert at_rest(pool)


async def test_patience_has_an_end(server: FakeOllama, connect: Connect) -> None:
    """Who waits for a server fails when the patience is over, though no question comes to its end, and so do others."""
    pool = impatient(connect(), pause=60, patience=0.2)
    open_at_once(pool)
    tasks = [asyncio.create_task(pool.chat(HELLO)) for _ in range(5)]
    await asyncio.sleep(0)
    assert pool._slots.waiting == 5
    async with asyncio.timeout(5):
        ended = await asyncio.gather(*tasks, pool.chat(HELLO), return_exceptions=True)
    assert [type(end) for end in ended] == [LeftAloneError] * 6
    assert server.questions == []


def test_the_patience_of_a_pool_is_that_of_its_servers() -> None:
    """What a pool is told is what its servers are waited for; by default that is not at all."""
    for settings, hopeless in (({"patience": 60.0}, False), ({}, True)):
        pool = OllamaPool(["localhost"], "tiny", **settings)
        open_at_once(pool)
        assert pool._hosts[0].breaker.is_hopeless() is hopeless


@pytest.mark.parametrize(
    "fault",
    [Fault.status(500), Fault.body(b"<html>"), Fault.drop()],
    ids=["500", "html", "dropped"],
)
async def test_a_useless_server_does_not_draw_the_questions(
    serve: Serve, connect: Connect, fault: Fault
) -> None:
    """A server that fails faster than the others answer is left alone, and costs five questions at most."""
    useless, good = serve(), serve()
    useless.fail_always(fault)
    pool = connect(useless, good)
    ended = [(await asyncio.gather(pool.chat(HELLO), return_exceptions=True))[0] for _ in range(20)]
    assert [type(end).__name__ for end in ended].count("ChatReply") == 20 - FAILURES_TO_OPEN
    assert len(useless.questions) == FAILURES_TO_OPEN


async def test_a_server_without_the_model_costs_no_answer(serve: Serve, connect: Connect) -> None:
    """What one server lacks the model for is asked of the next, which counts; soon the first is not asked any more."""
    lacking, good = serve(models=[]), serve()
    pool = connect(lacking, good)
    replies = [await pool.chat(HELLO) for _ in range(20)]
    assert {reply.host for reply in replies} == {good.host}
    assert (
        sum(reply.attempts for reply in replies)
        == 20 + FAILURES_TO_OPEN
        == 20 + len(lacking.questions)
    )


async def test_where_nobody_has_the_model_that_is_the_error(serve: Serve, connect: Connect) -> None:
    """A model that no server has is an error after each was asked once."""
    with pytest.raises(ModelMissingError) as caught:
        await connect(serve(models=[]), serve(models=[]), attempts=3).chat(HELLO)
    assert caught.value.attempts == 2


async def test_a_server_that_dies_and_comes_back_is_used_again(
    serve: Serve, connect: Connect, until: Any
) -> None:
    """While one of two servers is down the other answers everything; once it is back it takes its share again."""
    mortal, other = serve(latency=0.01), serve(latency=0.01)
    pool = impatient(connect(mortal, other, attempts=6, concurrency=2))
    assert set(await ask(pool, 4)) == {mortal.host, other.host}
    mortal.stop()
    assert set(await ask(pool, 20)) == {other.host}
    mortal.start()
    await until(pool._hosts[0].breaker.allows)
    await ask(pool, 4)
    assert set(await ask(pool, 4)) == {mortal.host, other.host}


async def test_questions_under_way_survive_the_death_of_their_server(
    serve: Serve, connect: Connect, until: Any
) -> None:
    """Questions that a dying server had taken are answered by another."""
    mortal, other = serve(), serve()
    for server in (mortal, other):
        server.fail(Fault.hang())
    pool = connect(mortal, other, attempts=3, concurrency=2, timeout=60)
    tasks = [asyncio.create_task(pool.chat(HELLO)) for _ in range(2)]
    await until(lambda: len(mortal.questions) == len(other.questions) == 1)
    mortal.stop()
    async with asyncio.timeout(5):
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [(task.result().host, task.result().attempts) for task in done] == [(other.host, 2)]
    for task in pending:
        task.cancel()


# What a question has cost that was given up


async def given_up(question: Any, seconds: float) -> BaseException:
    """Return what a question raised that was not answered within a time, as a time-out hands it on."""
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(seconds):
            await question
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


async def test_a_question_given_up_tells_its_cost(server: FakeOllama, connect: Connect) -> None:
    """What is raised when a question is cancelled knows the requests that were made, and the last host."""
    server.fail(Fault.status(503), Fault.status(503), Fault.hang())
    cost = vars(await given_up(connect(attempts=4).chat(HELLO), 2))
    assert cost == {"attempts": len(server.questions), "host": server.host}
    assert cost["attempts"] == 3


async def test_a_question_that_waited_in_vain_has_cost_nothing(
    server: FakeOllama, connect: Connect, until: Any
) -> None:
    """A question that never got a slot is known to have asked nobody."""
    server.fail_always(Fault.hang())
    pool = connect(concurrency=1)
    stuck = asyncio.create_task(pool.chat(HELLO))
    await until(lambda: len(server.questions) == 1)
    assert vars(await given_up(pool.chat(HELLO), 0.1)) == {"attempts": 0, "host": None}
    stuck.cancel()
    await asyncio.wait({stuck})


@pytest.mark.parametrize(
    "fault", [Fault.status(503), Fault.status(500), Fault.status(400)], ids=lambda fault: fault.name
)
async def test_refusals_count_when_the_next_server_fails(
    serve: Serve, connect: Connect, fault: Fault
) -> None:
    """The request that told that a server does not decide is part of the cost, whatever the next one says."""
    chats, decides = serve(models=["nimble"], decision_models=[]), serve()
    decides.fail_always(fault)
    with pytest.raises(LLMError) as caught:
        await connect(chats, decides, model="nimble").systemone("s", QUESTION)
    assert (caught.value.attempts, caught.value.host) == (2, decides.host)


# All servers together


async def test_in_a_mixed_pool_those_that_decide_are_asked(serve: Serve, connect: Connect) -> None:
    """If only one server decides, the pool does, and asks that one alone; all chat."""
    old, new = serve(models=["nimble"], decision_models=[]), serve()
    pool = connect(old, new, model="nimble", concurrency=2)
    assert await pool.offers_decisions()
    hosts = {(await pool.systemone("s", QUESTION)).host for _ in range(3)}
    assert hosts == {new.host}
    assert set(await ask(pool, 4)) == {old.host, new.host}


async def test_who_does_not_decide_is_found_out_by_asking(serve: Serve, connect: Connect) -> None:
    """Without having asked before, a refusal sends the question on to one that decides, and is remembered."""
    old, new = serve(models=["nimble"], decision_models=[], decides=False), serve()
    pool = connect(old, new, model="nimble")
    assert [(await pool.systemone("s", QUESTION)).attempts for _ in range(2)] == [2, 1]
    new.stop()
    old.decides = True
    with pytest.raises(UnreachableError):
        await pool.systemone("s", QUESTION)


async def test_where_nobody_decides_the_pool_says_so(serve: Serve, connect: Connect) -> None:
    """When every server has refused, the error names model and servers; they may have learned it by the next time."""
    servers = [serve(decides=False) for _ in range(2)]
    pool = connect(*servers, model="nimble")
    for _ in range(2):
        with pytest.raises(
            DecisionsUnsupportedError, match=f"nimble .* {servers[0].host}, {servers[1].host}"
        ) as caught:
            await pool.systemone("s", QUESTION)
        assert caught.value.attempts == 2
    servers[1].decides = True
    assert [(await pool.systemone("s", QUESTION)).attempts for _ in range(2)] == [2, 1]


async def test_only_unreachable_servers_are_asked_again_what_they_can(
    serve: Serve, connect: Connect
) -> None:
    """If none decides and some cannot say, that is an error, and only those are asked the next time."""
    chats, gone = serve(models=["nimble"], decision_models=[]), serve()
    gone.stop()
    pool = connect(chats, gone, model="nimble")
    with pytest.raises(UnreachableError):
        await pool.offers_decisions()
    gone.start()
    chats.stop()
    assert await pool.offers_decisions() is True


async def test_the_first_server_that_decides_settles_it(
    serve: Serve, connect: Connect, until: Any
) -> None:
    """A silent server keeps nobody from knowing that another decides: it is not waited for, nor blamed."""
    good, silent = serve(), serve()
    silent.fail_always(Fault.hang(), path="/api/show")
    pool = connect(good, silent, model="nimble", timeout=60)
    async with asyncio.timeout(LOOK_SECONDS - 1):
        for _ in range(FAILURES_TO_OPEN + 1):
            assert await pool.offers_decisions() is True
    assert pool._hosts[1].trouble == ""
    await until(lambda: silent.open_connections == 0)


async def test_a_server_that_fails_to_say_is_left_alone(serve: Serve, connect: Connect) -> None:
    """Failed looks count as failures: after five in a row nobody looks, until a question has shown that it works."""
    server = serve()
    pool = connect(server, model="nimble")
    server.fail(*[Fault.status(502)] * FAILURES_TO_OPEN, path="/api/show")
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(OverloadedError):
            await pool.offers_decisions()
    with pytest.raises(LeftAloneError, match="answered 502"):
        await pool.offers_decisions()
    pool._hosts[0].breaker.succeeded()
    assert await pool.offers_decisions() is True


async def test_a_server_that_is_too_busy_to_say_is_not_blamed(
    serve: Serve, connect: Connect
) -> None:
    """Looks that are refused because the server is busy do not keep anybody from asking it."""
    server = serve()
    pool = connect(server, model="nimble")
    server.fail(*[Fault.status(429)] * (FAILURES_TO_OPEN + 1), path="/api/show")
    for _ in range(FAILURES_TO_OPEN + 1):
        with pytest.raises(OverloadedError):
            await pool.offers_decisions()
    assert await ask(pool) == [server.host]


async def test_a_server_that_only_a_question_can_tell_of_may_decide(
    serve: Serve, connect: Connect
) -> None:
    """Servers that know decisions, but not Ollama's own paths, are taken to decide until they refuse."""
    other, chats = serve(), serve(models=["nimble"], decision_models=[])
    other.fail_always(Fault.status(404, body=b"Not Found"), path="/api/show")
    pool = connect(chats, other, model="nimble")
    assert await pool.offers_decisions() is True
    assert (await pool.systemone("s", QUESTION)).host == other.host


@pytest.mark.parametrize("left_alone_before", [True, False])
async def test_when_those_that_decide_fail_others_may_chat(
    serve: Serve, connect: Connect, left_alone_before: bool
) -> None:
    """That all who decide are left alone is told from other failures, so that the others can be asked to chat."""
    chats, decides = serve(models=["nimble"], decision_models=[]), serve()
    pool = impatient(connect(chats, decides, model="nimble", attempts=FAILURES_TO_OPEN), pause=60)
    assert [await host.decides() for host in pool._hosts] == [False, True]
    decides.stop()
    if left_alone_before:
        open_at_once(pool, 1)
    with pytest.raises(LeftAloneError) as caught:
        await pool.systemone("s", QUESTION)
    assert caught.value.attempts == (0 if left_alone_before else FAILURES_TO_OPEN)
    assert caught.value.host == decides.host
    assert (await pool.chat(HELLO)).host == chats.host


async def test_if_no_server_can_say_nothing_is_known(serve: Serve, connect: Connect) -> None:
    """With all servers down the question whether they decide is an error, and is asked again when one is back."""
    servers = [serve() for _ in range(2)]
    pool = connect(*servers, model="nimble")
    for server in servers:
        server.stop()
    with pytest.raises(UnreachableError):
        await pool.offers_decisions()
    servers[1].start()
    assert await pool.offers_decisions() is True


@pytest.mark.parametrize(
    "fault", [Fault.drop(), Fault.status(503), Fault.status(404, "model 'tiny' not found")]
)
async def test_one_failed_question_leaves_the_next_alone(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """With the usual attempts a question that fails for good does not keep the next one from being answered."""
    pool = connect(attempts=3)
    server.fail_always(fault)
    with pytest.raises(LLMError):
        await pool.chat(HELLO)
    server.recover()
    assert (await pool.chat(HELLO)).attempts == 1
