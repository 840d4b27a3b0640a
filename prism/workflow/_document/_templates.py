"""Prompts with variables: read once, filled every turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from prism.statechart.reasoner import _own_prompts


def shown(value: Any) -> str:
    """Return a variable's value as a prompt shows it: a text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)

    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


class Template(_own_prompts.Template):
    """A text with ``{variables}``, whose values are shown as JSON unless they are texts."""

    __slots__ = ()

    def fill(
        self, variables: Mapping[str, Any], shown: Callable[[Any], str] = shown
    ) -> tuple[str, list[str]]:
        """Return the text with its variables, and the names that there are no variables for."""
        return super().fill(variables, shown)
