"""How a model is asked: found out once, and one rule for a whole run."""

from __future__ import annotations

import logging
from typing import Any

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
        is_proven: Whether a question by letter was answered, or could not be.
    """

    def __init__(self, client: Any, mode: Mode) -> None:
        self.now: Kind = "letter" if mode != "chat" and gives_chances(client) else "name"
        self.is_proven: bool = mode != "auto"
        self._warned: set[str] = set()

    @property
    def needs_proof(self) -> bool:
        """Whether it is unknown if the model can be asked by letter, so it is tried once."""
        return self.now == "letter" and not self.is_proven

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
