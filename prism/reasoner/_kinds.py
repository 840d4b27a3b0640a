"""How a model is asked: found out once, and one rule for a whole run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from prism.errors import TimedOutError
from prism.reasoner._clients import gives_chances
from prism.reasoner._messages import ModelClient
from prism.reasoner._requests import Kind, Mode
from prism.reasoner._slots import SingleFlight
from prism.reasoner._spending import loop_time
from prism.telemetry.events import MODE_UNKNOWN
from prism.telemetry.loggers import EventLogger, describe, report

_LOGGER = logging.getLogger("prism.llm")

_LONGEST_LOOK_SECONDS = 10.0
"""Seconds to wait for a server to say whether it has a decision model."""

_REST_AFTER_LOOK = 10
"""Factor from the duration of a failed look to the wait before the next one."""


class Kinds:
    """Finds out how a client's model is asked, once for all questions.

    Args:
        pool: The client, with slots.
        client: The client as the user gave it.
        mode: How the user wants it to be asked.
        logger: Where to report the first failure.

    Attributes:
        is_proven: Whether a question by letter was answered, or could not be.
    """

    def __init__(
        self, pool: ModelClient, client: Any, mode: Mode, logger: EventLogger | None
    ) -> None:
        self._pool, self._logger = pool, logger
        self._gives_chances = gives_chances(client)
        self._found: Kind | None = None
        if mode == "chat":
            self._found = "name"
        elif not callable(getattr(client, "systemone", None)):
            self._found = self._without_decisions
        self._mode = mode
        self._looks: SingleFlight[Kind] = SingleFlight()
        self.is_proven: bool = False
        self._next_look = 0.0
        self._warned: set[str] = set()

    @property
    def _without_decisions(self) -> Kind:
        return "letter" if self._gives_chances else "name"

    async def find(self, seconds: float) -> Kind:
        """Return how to ask; by name, if it cannot be found out now.

        Args:
            seconds: The time limit.
        """
        if self._found is not None:
            return self._found

        usual: Kind = "decision" if self._mode == "decision" else self._without_decisions
        began = loop_time()
        if began < self._next_look:
            return usual

        look = await self._looks.do("kind", lambda _cost: self._look(seconds))
        if look.error is None:
            assert look.result is not None
            self._found = look.result
            return look.result

        # a server that hangs must not delay every decision
        ended = loop_time()
        self._next_look = ended + _REST_AFTER_LOOK * (ended - began)
        if "unknown" not in self._warned:
            self._warned.add("unknown")
            report(self._logger, "warning", MODE_UNKNOWN, error=describe(look.error))

        return usual

    def needs_proof(self, kind: Kind) -> bool:
        """Return whether it is unknown if the model can be asked by letter, so it is tried once."""
        return kind == "letter" and self._mode == "auto" and not self.is_proven

    async def _look(self, seconds: float) -> Kind:
        limit = min(seconds, _LONGEST_LOOK_SECONDS)
        try:
            async with asyncio.timeout(limit):
                offers = await self._pool.offers_decisions()
        except TimeoutError as error:
            raise TimedOutError(f"no answer within {limit:g} s") from error

        if offers or (self._mode == "decision" and not self._gives_chances):
            return "decision"
        return self._without_decisions

    def gives_no_chances(self, kind: Kind) -> None:
        """Note that a model gave no probabilities when it was asked in a way."""
        is_decision = kind == "decision" and self._gives_chances
        self._found = "letter" if is_decision else "name"

    def has_too_little_mass(self, model: str | None, mass: float | None) -> None:
        """Ask by name from now on, as the model would rather write something else than a letter."""
        self._found = "name"
        if "mass" not in self._warned:
            self._warned.add("mass")
            share = "none" if mass is None else f"{mass:.2g}"
            _LOGGER.warning(
                "%s gave the letters of all options together %s of the probability: below a half "
                "they say little, so from now on it is asked for the name of an option",
                model or "the model",
                share,
            )

    def warn_without_reasons(self, model: str | None) -> None:
        """Warn once that a model that is asked for probabilities gives no reasons."""
        if "reasons" not in self._warned:
            self._warned.add("reasons")
            logging.getLogger("prism.statechart.prompts").warning(
                "%s is asked for probabilities, so it gives no reasons: to get reasons, use mode "
                "chat",
                model or "the model",
            )
