"""Texts with ``{names}``, read once and filled often; nothing in them is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

NAME: re.Pattern[str] = re.compile(r"\{([^\W\d]\w*)\}")
DOTTED_NAME: re.Pattern[str] = re.compile(r"\{([^\W\d]\w*(?:\.\w+)*)\}")
"""A name, or one of something named, ``{agent.age}``; a chain is for the reader to refuse."""

MAX_CHARACTERS = 4_000_000
"""The longest prompt: a few lines can name a long variable very often."""


class PromptError(ValueError):
    """A prompt cannot be filled."""


class Template:
    """A text with ``{variables}``.

    Only names in braces are variables: no formats, no chains of attributes, so that a prompt may
    hold JSON as it is. What a variable brings is not looked through again.

    Args:
        text: The text.
        pattern: What a variable looks like, its name as the one group.
    """

    __slots__ = ("_parts", "names", "text")

    def __init__(self, text: str, pattern: re.Pattern[str] = NAME) -> None:
        self.text = text
        # literal, name, literal, name, ..., literal
        self._parts: list[str] = pattern.split(text)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self._parts[1::2]))

    def fill(
        self, variables: Mapping[str, Any], shown: Callable[[Any], str] = str
    ) -> tuple[str, list[str]]:
        """Return the text with its variables, and the names that there are no variables for.

        Args:
            variables: Values by name. Each is looked up once, however often it is named.
            shown: Returns a value as the prompt shows it.

        Raises:
            PromptError: If the prompt is longer than prism asks.
        """
        if not self.names:
            return self.text, []

        known = {name: shown(variables[name]) for name in self.names if name in variables}
        filled = list(self._parts)
        for number in range(1, len(filled), 2):
            name = filled[number]
            filled[number] = known.get(name, f"{{{name}}}")

        if sum(map(len, filled)) > MAX_CHARACTERS:
            longest = max(known, key=lambda name: len(known[name]))
            raise PromptError(
                f"the prompt has more than {MAX_CHARACTERS:,} characters, of which the variable "
                f"{longest!r} has {len(known[longest]):,} each time: shorten it"
            )

        return "".join(filled), [name for name in self.names if name not in known]
