"""Keeping a client in one event loop at a time."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from prism.errors import LLMError
from prism.llm import Model
from prism.testing import FakeOllama
from tests.kit.servers import HELLO
from tests.kit.waiting import MOST_SECONDS

USES: list[Callable[[Any], Coroutine[Any, Any, Any]]] = [
    lambda pool: pool.chat(HELLO),
    lambda pool: pool.warm_up(),
]


@pytest.mark.parametrize("use", USES, ids=["chat", "warm_up"])
def test_two_loops_at_once_are_refused(
    server: FakeOllama, use: Callable[[Any], Coroutine[Any, Any, Any]]
) -> None:
    """While one event loop asks, another gets an error with advice, and the first its answer."""
    pool = Model("tiny", [server.host], concurrency=1, timeout=5).as_client()
    asking, refused = threading.Event(), threading.Event()
    answers = []

    async def ask() -> None:
        task = asyncio.create_task(pool.chat(HELLO))
        await asyncio.sleep(0)
        asking.set()
        # and the whole loop with it, so that the answer cannot come first
        refused.wait(MOST_SECONDS)
        answers.append((await task).text)

    thread = threading.Thread(target=lambda: asyncio.run(ask()))
    thread.start()
    assert asking.wait(MOST_SECONDS)
    with pytest.raises(LLMError, match="make one client for each event loop"):
        asyncio.run(use(pool))
    refused.set()
    thread.join()
    assert answers == ["Hello."]
