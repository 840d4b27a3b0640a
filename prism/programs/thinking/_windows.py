"""What is known of the server of a thinking agent: its window, and whether it takes schemas."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from prism.errors import LLMError
from prism.llm import Model
from prism.llm._pool import ModelPool
from prism.programs.thinking._config import Config


def with_window(client: Any, config: Config) -> Any:
    """Return a model with a window for the largest prompt and a reply, if none is given.

    Args:
        client: A `Model` or the text of one; any other client is returned as it is.
        config: Its hard limit is the largest prompt.
    """
    model = Model.of(client) if isinstance(client, str) else client
    if not isinstance(model, Model) or not config.hard_limit.enable:
        return client
    # a client of another library has a window of its own
    if model.window is not None or model.client is not None:
        return model
    hard = config.hard_limit.max_tokens
    reply = model.reply_tokens or -(-hard // 3)
    # an estimate may be too low
    return replace(model, window=hard * 3 // 2 + reply)


def sends_schemas(writer: Any) -> bool:
    """Return whether a writer sends the schema of a reply to its server."""
    return isinstance(getattr(writer, "pool", None), ModelPool)


async def window_of(writer: Any) -> int | None:
    """Return the smallest window of a writer's servers, prompt and reply together, if known."""
    pool = getattr(writer, "pool", None)
    if not isinstance(pool, ModelPool):
        return None
    windows: list[int] = []
    for server in pool.servers:
        with suppress(LLMError):
            if (window := await server.usable_window()) is not None:
                windows.append(window)
    return min(windows, default=None)
