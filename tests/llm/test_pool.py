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
from prism.llm.breaker import FAILURES_TO_OPEN
from prism.llm.pool import _pause
from prism.testing import FakeOllama, Fault

Connect = Callable[..., OllamaPool]
Serve = Callable[..., FakeOllama]
HELLO = [{"role": "user", "content": "hello"}]
QUESTION = {"q0": {"type": "choice", "instructions": "?", "criteria": {"a": None, "b": None}}}


async def ask(pool: OllamaPool, times: int = 1) -> list[str]:
    """Ask many questions at once and give the hosts that answered."""
    return [reply.host for reply in await asyncio.gather(*(pool.chat(HELLO) for _ in range(times)))]


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a failing host rest for a moment only."""
    monkeypatch.setattr("prism.llm.breaker.FIRST_PAUSE_SECONDS", 0.05)


async def open_breaker(server: FakeOllama, pool: OllamaPool) -> None:
    """Let a pool of one server, and one attempt, leave that server alone."""
    server.fail(*[Fault.drop()] * FAILURES_TO_OPEN)
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(UnreachableError, match="broke"):
            await pool.chat(HELLO)


def at_rest(pool: OllamaPool) -> bool:
    """Tell whether nobody asks or waits."""
    return not pool._slots.waiting and not any(host.in_flight for host in pool._hosts)


# How it is made


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": ""}, "model must be the name of a model on the server, such as 'llama3.2'"),
        ({"timeout": 0}, "timeout must be above 0, got 0"),
        ({"timeout": float("nan")}, "timeout must be above 0, got nan"),
        ({"concurrency": 0}, "concurrency must be above 0, got 0"),
        ({"attempts": 0}, "attempts must be above 0, got 0"),
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


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "http://[::1]:11434", "https://models.example/ollama"])
def test_an_address_may_be_short(host: str) -> None:
    """A host may be given with or without scheme, port and path."""
    assert OllamaChatClient(host, "tiny").host == host


def test_a_host_named_twice_is_one() -> None:
    """The limit of a host holds even if it is listed twice."""
    pool = OllamaPool(["a", "b", "a"], "tiny", concurrency=3)
    assert (pool.hosts, pool.concurrency) == (["a", "b"], 6)


# Slots


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_questions_than_allowed_are_under_way(serve: Serve, connect: Connect, limit: int) -> None:
    """Of many questions exactly as many as the limit reach each server at the same time, and all are answered."""
    servers = [serve(latency=0.02) for _ in range(2)]
    pool = connect(*servers, concurrency=limit)
    assert len(await ask(pool, 8 * limit)) == 8 * limit
    assert [server.most_at_once for server in servers] == [limit, limit]
    assert at_rest(pool)


async def test_questions_go_where_the_fewest_are_under_way(serve: Serve, connect: Connect) -> None:
    """Of three equal servers each gets its third, and one that does not answer gets no more than its limit."""
    servers = [serve(latency=0.02) for _ in range(3)]
    pool = connect(*servers, concurrency=4)
    assert Counter(await ask(pool, 12)) == {server.host: 4 for server in servers}
    servers[0].fail_always(Fault.hang())
    stuck = [asyncio.create_task(pool.chat(HELLO)) for _ in range(3 * 4 + 40)]
    done, pending = await asyncio.wait(stuck, timeout=0.5)
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


async def test_a_slot_given_to_one_who_is_cancelled_goes_to_the_next(serve: Serve, connect: Connect) -> None:
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
    [Fault.drop(), Fault.drop_midway(), Fault.hang(), *(Fault.status(code) for code in (429, 502, 503, 504))],
    ids=lambda fault: fault.name,
)
async def test_what_can_heal_is_tried_again(server: FakeOllama, connect: Connect, fault: Fault) -> None:
    """Trouble that passes costs attempts, which are counted, but not the answer."""
    server.fail(fault, fault)
    reply = await connect(attempts=3, timeout=0.3).chat(HELLO)
    assert (reply.text, reply.attempts, len(server.questions)) == ("Hello.", 3, 3)


@pytest.mark.parametrize("fault", [Fault.drop(), Fault.status(503)], ids=lambda fault: fault.name)
async def test_trouble_that_does_not_pass_ends_the_tries(server: FakeOllama, connect: Connect, fault: Fault) -> None:
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
async def test_what_cannot_heal_is_asked_once(server: FakeOllama, connect: Connect, fault: Fault) -> None:
    """A refusal or a useless reply is not tried again, and does not keep later questions from being asked."""
    server.fail(*[fault] * 4)
    pool = connect(attempts=3)
    for number in range(1, 5):
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


async def test_a_pause_that_the_server_asks_for_is_kept(server: FakeOllama, connect: Connect, until: Any) -> None:
    """With Retry-After the second request comes no earlier than the longest jitter would have let it."""
    server.fail(Fault.status(503, retry_after="20"))
    task = asyncio.create_task(connect(attempts=2).chat(HELLO))
    await until(lambda: len(server.questions) == 1)
    _, pending = await asyncio.wait({task}, timeout=0.4)
    assert pending
    assert len(server.questions) == 1
    task.cancel()


def after(error: Exception, *, elsewhere: bool = False, attempt: int = 1) -> float:
    """Give the pause after a failure."""
    state = RetryCallState(None, None, (), {})
    state.attempt_number = attempt
    state.set_exception((type(error), error, None))
    return _pause(state, elsewhere=elsewhere)


@pytest.mark.parametrize(("wish", "pause"), [(0.0, 0), (2.5, 2.5), (29, 29), (3600, 30), (float("inf"), 30)])
def test_a_wish_to_be_left_alone_has_a_limit(wish: float, pause: float) -> None:
    """The pause is what the server asks for, up to half a minute, and only if no other server can be asked."""
    error = OverloadedError("busy")
    error.retry_after = wish
    assert after(error) == pause
    assert after(error, elsewhere=True) <= 0.2


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.2), (2, 0.4), (3, 0.8), (20, 5.0)])
def test_pauses_grow_and_differ(attempt: int, longest: float) -> None:
    """Without a wish the pause is random, up to a bound that doubles with every attempt until it is 5 s."""
    pauses = {after(UnreachableError("gone"), attempt=attempt) for _ in range(200)}
    assert len(pauses) > 100
    assert longest / 2 < max(pauses) <= longest


# Servers that fail


async def test_a_server_that_fails_is_left_alone_and_probed_by_one(
    server: FakeOllama, connect: Connect, until: Any, short_pauses: None
) -> None:
    """After five failures nothing is asked at once, then one question probes, and its success lets all through."""
    pool = connect(concurrency=8)
    await open_breaker(server, pool)
    with pytest.raises(
        LeftAloneError, match=r"left alone for 0\.\d s after failing again and again: .* broke"
    ) as caught:
        await pool.chat(HELLO)
    assert (caught.value.attempts, caught.value.host, len(server.questions)) == (0, server.host, FAILURES_TO_OPEN)
    await until(pool._hosts[0].breaker.allows)
    server.latency = 0.05
    first, *others = await asyncio.gather(*(pool.chat(HELLO) for _ in range(5)), return_exceptions=True)
    assert first.text == "Hello."
    assert {type(other) for other in others} == {LeftAloneError}
    assert len(await ask(pool, 8)) == 8


async def test_a_failed_probe_makes_the_pause_longer(
    server: FakeOllama, connect: Connect, until: Any, short_pauses: None
) -> None:
    """A probe that fails is an error like any other, and the server is left alone for twice as long."""
    pool = connect()
    await open_breaker(server, pool)
    breaker = pool._hosts[0].breaker
    await until(breaker.allows)
    server.fail(Fault.status(503))
    with pytest.raises(OverloadedError):
        await pool.chat(HELLO)
    assert breaker._pause == 0.1
    assert not breaker.allows()


async def test_when_all_servers_fail_nobody_waits(server: FakeOllama, connect: Connect) -> None:
    """When the last server opens, those who wait for it fail at once instead of being asked or waiting on."""
    server.fail_always(Fault.hang())
    pool = connect(concurrency=1, timeout=0.1)
    async with asyncio.timeout(5):
        ended = await asyncio.gather(*(pool.chat(HELLO) for _ in range(50)), return_exceptions=True)
    assert Counter(type(end).__name__ for end in ended) == {
        "TimedOutError": FAILURES_TO_OPEN,
        "LeftAloneError": 50 - FAILURES_TO_OPEN,
    }
    assert len(server.questions) == FAILURES_TO_OPEN
    assert at_rest(pool)


async def test_retries_end_when_nobody_is_left_to_ask(server: FakeOllama, connect: Connect) -> None:
    """A question that opened the only breaker ends with the error it met, not with that of being left alone."""
    server.fail_always(Fault.status(503))
    with pytest.raises(OverloadedError) as caught:
        await connect(attempts=10).chat(HELLO)
    assert caught.value.attempts == FAILURES_TO_OPEN


@pytest.mark.parametrize(
    "fault",
    [Fault.status(500), Fault.body(b"<html>"), Fault.status(404, "model 'tiny' not found"), Fault.drop()],
    ids=["500", "html", "no model", "dropped"],
)
async def test_a_useless_server_does_not_draw_the_questions(serve: Serve, connect: Connect, fault: Fault) -> None:
    """A server that fails faster than the others answer is left alone, and costs five questions at most."""
    useless, good = serve(), serve()
    useless.fail_always(fault)
    pool = connect(useless, good)
    ended = [(await asyncio.gather(pool.chat(HELLO), return_exceptions=True))[0] for _ in range(20)]
    assert [type(end).__name__ for end in ended].count("ChatReply") == 20 - FAILURES_TO_OPEN
    assert len(useless.questions) == FAILURES_TO_OPEN


async def test_a_server_that_dies_and_comes_back_is_used_again(
    serve: Serve, connect: Connect, until: Any, short_pauses: None
) -> None:
    """While one of two servers is down the other answers everything; once it is back it takes its share again."""
    mortal, other = serve(latency=0.01), serve(latency=0.01)
    pool = connect(mortal, other, attempts=6, concurrency=2)
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
    mortal, other = serve(latency=10), serve()
    pool = connect(mortal, other, attempts=3, concurrency=2)
    other.latency = 10
    tasks = [asyncio.create_task(pool.chat(HELLO)) for _ in range(2)]
    await until(lambda: len(mortal.questions) == 1)
    other.latency = 0
    mortal.stop()
    async with asyncio.timeout(5):
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert [(task.result().host, task.result().attempts) for task in done] == [(other.host, 2)]
    for task in pending:
        task.cancel()


# All servers together


async def test_warming_up_reports_for_each_server(serve: Serve, connect: Connect) -> None:
    """The model is loaded everywhere, and where that fails the error stands beside the address."""
    good, bare, gone = serve(), serve(models=[]), serve()
    gone.stop()
    report = await connect(good, bare, gone).warm_up()
    assert report.pop(good.host) is None
    assert isinstance(report.pop(bare.host), ModelMissingError)
    assert isinstance(report.pop(gone.host), UnreachableError)
    assert report == {}


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


async def test_only_unreachable_servers_are_asked_again_what_they_can(serve: Serve, connect: Connect) -> None:
    """If some cannot say whether they decide, the others' word counts, and only those are asked the next time."""
    chats, gone = serve(models=["nimble"], decision_models=[]), serve()
    gone.stop()
    pool = connect(chats, gone, model="nimble")
    assert await pool.offers_decisions() is False
    gone.start()
    chats.stop()
    assert await pool.offers_decisions() is True


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


@pytest.mark.parametrize("fault", [Fault.drop(), Fault.status(503), Fault.status(404, "model 'tiny' not found")])
async def test_one_failed_question_leaves_the_next_alone(server: FakeOllama, connect: Connect, fault: Fault) -> None:
    """With the usual attempts a question that fails for good does not keep the next one from being answered."""
    pool = connect(attempts=3)
    server.fail_always(fault)
    with pytest.raises(LLMError):
        await pool.chat(HELLO)
    server.recover()
    assert (await pool.chat(HELLO)).attempts == 1
