"""Decision questions in a pool where not all servers take them."""

from typing import Any

import pytest

from prism.errors import UnreachableError
from prism.reasoner import Cost
from tests.kit.pools import ask
from tests.kit.servers import QUESTION, Connect, Serve


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
