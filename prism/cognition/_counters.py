"""The tokens of prompts: who counts them, and the window that a model is asked for."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from prism.cognition._config._config import Config
from prism.errors import InputError
from prism.llm import Model
from prism.statechart.reasoner._tokens import TokenCounter, count_tokens

ESTIMATE = "estimate"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 1


COUNTERS: dict[str, Callable[[str], int]] = {ESTIMATE: count_tokens, "bytes": _bytes}
"""An estimate that is rarely too small, and a count that no tokenizer exceeds."""


def counter_of(name: str) -> TokenCounter:
    """Return the token counter of a name.

    Args:
        name: ``estimate``, ``bytes``, or ``package.module:function`` for your own tokenizer, which
            takes a text and returns how many tokens it has.

    Raises:
        InputError: If there is none, or it counts no tokens.
    """
    if name in COUNTERS:
        return COUNTERS[name]

    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        known = ", ".join(COUNTERS)
        raise InputError(
            f"there is no token counter {name!r}: use {known} or package.module:function",
            field="count",
        )
    try:
        if os.getcwd() not in sys.path:  # noqa: PTH109 - as Python itself has it
            sys.path.insert(0, os.getcwd())  # noqa: PTH109
        found: Any = getattr(importlib.import_module(module), attribute)
        counted = found("two words")
    except Exception as error:  # of a module of the user's
        raise InputError(f"{name} cannot be used: {error}", field="count") from error
    if isinstance(counted, bool) or not isinstance(counted, int) or counted < 0:
        raise InputError(f"{name} must return a number of tokens, got {counted!r}", field="count")

    counter: TokenCounter = found
    return counter


def with_window(client: Any, config: Config, count: Any = count_tokens) -> Any:
    """Return a model with a window for the largest prompt and a reply, if none is given.

    Args:
        client: A `Model` or the text of one; any other client is returned as it is.
        config: Its hard limit is the largest prompt.
        count: Counts tokens; prompts are estimated before they are sent, which may be above what a
            counter of the user's counts.
    """
    model = Model.of(client) if isinstance(client, str) else client
    if not isinstance(model, Model) or not config.hard_limit.enable:
        return client
    # a client of another library has a window of its own
    if model.window is not None or model.client is not None:
        return client

    hard = config.hard_limit.max_tokens
    # the share of replies, a quarter of the window, if nothing else is said
    reply = model.reply_tokens or -(-hard // 3)
    room = hard if count is count_tokens else hard * 3 // 2
    return replace(model, window=room + reply, reply_tokens=reply)
