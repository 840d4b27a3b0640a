"""Decision questions in a pool where not all servers take them."""

from typing import Any

import pytest

from prism.errors import (
    CircuitOpenError,
    DecisionsUnsupportedError,
    UnreachableError,
)
from prism.reasoner import Cost
from prism.testing import Fault
from tests.kit.pools import FAILURES_TO_OPEN, ask, impatient, open_at_once
from tests.kit.servers import HELLO, QUESTION, SHOW, Connect, Serve


async def attempts(pool: Any) -> int:
    """Put a decision question, and return the number of requests that it took."""
    cost = Cost()
    await pool.systemone("s", QUESTION, cost=cost)
    return cost.attempts


async def test_decision_questions_go_to_servers_that_decide(serve: Serve, connect: Connect) -> None:
    """If only one server decides, the pool does, and asks that one alone; all chat."""
    old, new = serve(models=["nimble"], decision_models=[]), serve()
    pool = connect(old, new, model="nimble", concurrency=2)
    assert await pool.offers_decisions()
    hosts = {(await pool.systemone("s", QUESTION)).host for _ in range(3)}
    assert hosts == {new.host}
    assert set(await ask(pool, 4)) == {old.host, new.host}


async def test_a_refused_decision_question_goes_to_the_next_server(
    serve: Serve, connect: Connect
) -> None:
    """A refusal sends the question on to the next server, and is remembered."""
    old, new = serve(models=["nimble"], decision_models=[], decides=False), serve()
    pool = connect(old, new, model="nimble")
    assert [await attempts(pool) for _ in range(2)] == [2, 1]
    new.stop()
    old.decides = True
    with pytest.raises(UnreachableError):
        await pool.systemone("s", QUESTION)


async def test_a_pool_in_which_no_server_decides_says_so(serve: Serve, connect: Connect) -> None:
    """If every server refuses, the error names model and servers; the next time all are asked."""
    servers = [serve(decides=False) for _ in range(2)]
    pool, cost = connect(*servers, model="nimble"), Cost()
    for _ in range(2):
        with pytest.raises(
            DecisionsUnsupportedError, match=f"nimble .* {servers[0].host}, {servers[1].host}"
        ):
            await pool.systemone("s", QUESTION, cost=cost)
    assert cost.attempts == 4
    servers[1].decides = True
    assert [await attempts(pool) for _ in range(2)] == [2, 1]


async def test_a_server_without_api_show_is_taken_to_decide(serve: Serve, connect: Connect) -> None:
    """Servers that decide but lack Ollama's own paths are taken to decide until they refuse."""
    other, chats = serve(), serve(models=["nimble"], decision_models=[])
    other.fail_always(Fault.status(404, body=b"Not Found"), path=SHOW)
    pool = connect(chats, other, model="nimble")
    assert await pool.offers_decisions() is True
    assert (await pool.systemone("s", QUESTION)).host == other.host


@pytest.mark.parametrize("is_open_before", [True, False])
async def test_that_all_deciding_servers_are_down_is_said(
    serve: Serve, connect: Connect, is_open_before: bool
) -> None:
    """When the circuits of all servers that decide are open the error says so: others can chat."""
    chats, decides = serve(models=["nimble"], decision_models=[]), serve()
    pool = impatient(connect(chats, decides, model="nimble", attempts=FAILURES_TO_OPEN), pause=60)
    assert [await host.decides() for host in pool.servers] == [False, True]
    decides.stop()
    if is_open_before:
        open_at_once(pool, 1)
    pool.backoff = lambda state: 0.0
    cost = Cost()
    with pytest.raises(CircuitOpenError) as caught:
        await pool.systemone("s", QUESTION, cost=cost)
    assert cost.attempts == (0 if is_open_before else FAILURES_TO_OPEN)
    assert caught.value.host == decides.host
    assert (await pool.chat(HELLO)).host == chats.host
