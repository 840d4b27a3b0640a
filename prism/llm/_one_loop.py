"""Keeping a client in one event loop at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from prism.errors import LLMError


class OneLoop:
    """Refuses an event loop while another one is using the same client.

    Connections and waiting lists belong to their loop: two that share them wait for each other
    without end.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inside: set[object] = set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the running loop while something is under way in it.

        Raises:
            LLMError: If something is under way in another loop; ``attempts`` is 0, for nothing was
                asked.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._inside and self._loop is not None and not self._loop.is_closed():
                error = LLMError(
                    "the client is in use by another event loop: make one client for each event loop"
                )
                error.attempts = 0
                raise error

            self._loop, self._inside = loop, set()

        inside, token = self._inside, object()
        inside.add(token)

        try:
            yield
        finally:
            inside.discard(token)
