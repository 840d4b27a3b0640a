"""How a model is asked: found out once, and one rule for a whole run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from weakref import WeakKeyDictionary

from prism.reasoner._clients import gives_chances
from prism.reasoner._requests import Kind, Mode

_LOGGER = logging.getLogger("prism.llm")


class Kinds:
    """How a client's model is asked: for a letter, or for the name of an option.

    Args:
        client: The client.
        mode: How the user wants it to be asked.

    Attributes:
        now: The kind of question that is asked now.
    """

    def __init__(self, client: Any, mode: Mode) -> None:
        self.now: Kind = "letter" if mode != "chat" and gives_chances(client) else "name"
        self._is_proven = mode != "auto"
        self._trials: WeakKeyDictionary[Any, asyncio.Future[None]] = WeakKeyDictionary()
        self._warned: set[str] = set()

    async def tries(self) -> bool:
        """Return whether the caller is the first to ask by letter; others wait for its answer.

        So a server without log-probabilities costs a run one request, and not one for each agent.
        """
        if self.now != "letter" or self._is_proven:
            return False
        loop = asyncio.get_running_loop()
        if loop not in self._trials:
            self._trials[loop] = loop.create_future()
            return True

        await asyncio.wait([self._trials[loop]])
        return False

    def has_tried(self) -> None:
        """Let the others ask, whatever came of the first question."""
        self._is_proven = True
        trial = self._trials.get(asyncio.get_running_loop())
        if trial is not None and not trial.done():
            trial.set_result(None)

    def gives_no_chances(self) -> None:
        """Note that a model gave no probabilities."""
        self.now = "name"

    def has_too_little_mass(self, model: str | None, mass: float | None) -> None:
        """Ask by name from now on, as the model would rather write something else than a letter."""
        self.now = "name"
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
