"""Many servers as one: how a pool is made, its slots, and all servers together."""

import asyncio
from collections import Counter

import pytest

from prism.errors import ModelMissingError
from prism.reasoner import Cost
from prism.reasoner.servers import FAILURES_TO_REST
from prism.testing import FakeOllama, Fault
from tests.kit.servers import BOTH, HELLO, Connect, Gate, Serve, ask, at_rest, impatient
from tests.kit.waiting import until


@BOTH
@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.sampled(4)
async def test_concurrency_is_limited_on_each_host(
    serve: Serve, connect: Connect, limit: int
) -> None:
    """Exactly as many questions as the limit reach each server at once, and all are answered."""
    gate = Gate()
    servers = [serve(latency=gate) for _ in range(2)]
    pool = connect(*servers, concurrency=limit)
    asking = asyncio.create_task(ask(pool, 8 * limit))
    await until(lambda: [server.asked for server in servers] == [limit, limit])
    assert pool.waiting == 6 * limit
    gate.is_open = True
    assert len(await asking) == 8 * limit
    assert [server.most_at_once for server in servers] == [limit, limit]
    assert at_rest(pool)


@BOTH
@pytest.mark.sampled(2)
async def test_questions_go_to_the_host_with_the_fewest_under_way(
    serve: Serve, connect: Connect
) -> None:
    """Three equal servers get a third each; one that hangs gets no more than its limit."""
    gate = Gate()
    servers = [serve(latency=gate) for _ in range(3)]
    pool = connect(*servers, concurrency=4, timeout=60)
    asking = asyncio.create_task(ask(pool, 12))
    await until(lambda: sum(server.asked for server in servers) == 12)
    gate.is_open = True
    assert Counter(await asking) == {server.host: 4 for server in servers}
    servers[0].fail_always(Fault.hang())
    stuck = [asyncio.create_task(pool.chat(HELLO)) for _ in range(3 * 4 + 10)]
    await until(lambda: sum(task.done() for task in stuck) >= len(stuck) - 4)
    done, pending = await asyncio.wait(stuck, timeout=0)
    assert len(pending) == 4
    assert {task.result().host for task in done} == {servers[1].host, servers[2].host}
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    assert at_rest(pool)


@BOTH
@pytest.mark.sampled(2)
async def test_waiting_questions_are_served_in_order(serve: Serve, connect: Connect) -> None:
    """Those who wait get slots in the order in which they came; no newcomer comes in between."""
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


@BOTH
@pytest.mark.parametrize("where", ["under way", "waiting"])
@pytest.mark.sampled(4)
async def test_a_cancelled_question_leaves_nothing_behind(
    server: FakeOllama, connect: Connect, where: str
) -> None:
    """Cancelling a question, under way or waiting, frees its place and leaves no connection."""
    server.fail_always(Fault.hang())
    pool = connect(concurrency=1)
    under_way, waiting = (asyncio.create_task(pool.chat(HELLO)) for _ in range(2))
    await until(lambda: len(server.questions) == 1)
    assert pool.waiting == 1
    cancelled, other = (under_way, waiting) if where == "under way" else (waiting, under_way)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert pool.waiting == 0
    server.recover()
    if where == "under way":
        assert (await other).text == "Hello."
    else:
        other.cancel()
        await asyncio.wait({other})
    assert at_rest(pool)
    await pool.close()
    await until(lambda: server.open_connections == 0)


@BOTH
@pytest.mark.slow
async def test_a_server_without_the_model_loses_no_answer(serve: Serve, connect: Connect) -> None:
    """A question goes on from a server without the model, which counts; soon it is not asked."""
    lacking, good = serve(models=[]), serve()
    pool = connect(lacking, good)
    cost = Cost()
    replies = [await pool.chat(HELLO, cost=cost) for _ in range(20)]
    assert {reply.host for reply in replies} == {good.host}
    assert cost.attempts == 20 + len(lacking.questions) <= 20 + FAILURES_TO_REST


@BOTH
@pytest.mark.sampled(2)
async def test_a_model_that_no_server_has_is_an_error(serve: Serve, connect: Connect) -> None:
    """A model that no server has is an error after each was asked once."""
    cost = Cost()
    with pytest.raises(ModelMissingError):
        await connect(serve(models=[]), serve(models=[]), attempts=3).chat(HELLO, cost=cost)
    assert cost.attempts == 2


@BOTH
@pytest.mark.sampled(2)
async def test_a_server_that_dies_and_comes_back_is_used_again(
    serve: Serve, connect: Connect
) -> None:
    """While one of two servers is down the other answers all; afterwards both do again."""
    mortal, other = serve(latency=0.01), serve(latency=0.01)
    pool = impatient(connect(mortal, other, attempts=6, concurrency=2), pause=0.05)
    assert set(await ask(pool, 4)) == {mortal.host, other.host}
    mortal.stop()
    assert set(await ask(pool, 20)) == {other.host}
    mortal.start()
    await until(lambda: pool.servers[0].has_room)
    await ask(pool, 4)
    assert set(await ask(pool, 4)) == {mortal.host, other.host}
