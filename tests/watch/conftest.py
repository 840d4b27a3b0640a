"""Fixtures of the viewer's tests: a server on loopback, and a browser's cookies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from prism.watch import Watching, watch

Show = Callable[[Path], Watching]


@pytest.fixture
def shown() -> Iterator[Show]:
    """Return a function that shows runs, until the test ends."""
    with ExitStack() as stack:

        def show(path: Path) -> Watching:
            watching = watch(path)
            stack.callback(watching.stop)
            return watching

        yield show


@pytest.fixture
def visit() -> Iterator[Callable[[Watching], httpx.Client]]:
    """Return a function that opens the printed address, as a browser does."""
    with ExitStack() as stack:

        def visited(watching: Watching) -> httpx.Client:
            base = watching.url.partition("/?")[0]
            client = stack.enter_context(httpx.Client(base_url=base, timeout=30))
            assert client.get(watching.url).status_code == 200
            return client

        yield visited
