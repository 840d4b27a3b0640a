"""Keeping a model's replies from one run to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any, Protocol

from prism.statechart.reasoner._clients import Reply
from prism.telemetry._loggers import EventLogger, describe, report_warning
from prism.telemetry.events import CACHE_FAILED


class AnswerStore(Protocol):
    """Keeps replies by what was asked; `prism.llm.AnswerCache` keeps them on disk."""

    def get(self, key: str) -> str | None:
        """Return what was put under a key, or None."""

    def put(self, key: str, value: str) -> None:
        """Keep something under a key."""


class KeptReplies:
    """A store of replies that never ends a run.

    A store that raises is reported once, as a warning ``reasoner.cache_failed``, and used no more:
    asking the model again costs money, while a full disk or a locked file that is tried at every
    decision would cost the run. What is kept but cannot be read counts as not kept.

    Args:
        store: Where the replies are; None to keep none.
        logger: Where to report a store that raises.
    """

    def __init__(self, store: AnswerStore | None, logger: EventLogger | None) -> None:
        self._store = store
        self._logger = logger

    def key(self, *parts: Any) -> str | None:
        """Name a reply by all that it depends on; None if replies are not kept."""
        return None if self._store is None else sha256(json.dumps(parts).encode()).hexdigest()

    def get(self, key: str | None) -> Reply | None:
        """Return the reply under a key, or None."""
        if self._store is None or key is None:
            return None

        try:
            kept = self._store.get(key)
        except Exception as error:
            self._give_up(error)
            return None

        return None if kept is None else _read(kept)

    def put(self, key: str | None, reply: Reply) -> None:
        """Keep a reply under a key."""
        if self._store is None or key is None:
            return

        try:
            self._store.put(key, json.dumps(asdict(reply)))
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._store = None
        report_warning(self._logger, CACHE_FAILED, error=describe(error))


def _read(kept: str) -> Reply | None:
    try:
        reply = Reply(**json.loads(kept))
    except (ValueError, TypeError):
        return None

    return reply if isinstance(reply.text, str) and isinstance(reply.answers, Mapping) else None
