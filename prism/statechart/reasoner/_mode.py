"""Finding out whether a server and its model take decision questions."""

from __future__ import annotations

from time import monotonic
from typing import Any, Literal

from prism.errors import TimedOutError
from prism.statechart.reasoner._dispatch import SingleFlight
from prism.statechart.reasoner._model_client import ModelClient
from prism.statechart.reasoner._prompts import Kind
from prism.telemetry._loggers import EventLogger, describe, report_warning
from prism.telemetry.events import MODE_UNKNOWN

LONGEST_LOOK_SECONDS = 10.0
"""How long to wait until a server says whether it takes decisions, for which it needs no model."""

_REST_AFTER_LOOK = 10
"""How many times as long as a failed look took to wait before the next."""


def kind_by(mode: Literal["auto", "decision", "chat"], client: Any) -> Kind | None:
    """Return what is asked in a mode, or None if the server has to say."""
    if mode != "auto":
        return mode
    return None if callable(getattr(client, "systemone", None)) else "chat"


class ModeFinder:
    """Looks at what a client's server and model offer, once for all who want to know.

    Args:
        client: The client.
        logger: Where to report, once, that a look failed.
    """

    def __init__(self, client: ModelClient, logger: EventLogger | None) -> None:
        self._client = client
        self._logger = logger
        self._looks: SingleFlight[Kind] = SingleFlight()
        self._next_look = 0.0
        self._has_reported = False

    async def find(self, seconds: float) -> Kind | None:
        """Return how to ask, or None if that cannot be found out now.

        Args:
            seconds: How long it may take at most.
        """
        if monotonic() < self._next_look:
            return None

        began = monotonic()
        look = await self._looks.do("kind", lambda _cost: self._look(seconds))
        if look.error is None:
            return look.result

        # a server that hangs must not delay every decision
        ended = monotonic()
        self._next_look = max(self._next_look, ended + _REST_AFTER_LOOK * (ended - began))
        if not self._has_reported:
            self._has_reported = True
            report_warning(self._logger, MODE_UNKNOWN, error=describe(look.error))

        return None

    async def _look(self, seconds: float) -> Kind:
        import asyncio

        limit = min(seconds, LONGEST_LOOK_SECONDS)
        try:
            async with asyncio.timeout(limit) as timer:
                return "decision" if await self._client.offers_decisions() else "chat"
        except Exception as error:
            if timer.expired():
                raise TimedOutError(f"no answer within {limit:g} s") from error
            raise
