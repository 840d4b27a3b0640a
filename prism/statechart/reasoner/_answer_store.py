"""Keeping a model's replies from one run to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any, Protocol

from prism.statechart.reasoner._model_client import Reply
from prism.telemetry._loggers import EventLogger, describe, report_warning
from prism.telemetry.events import CACHE_FAILED


class AnswerStore(Protocol):
    """Keeps replies by what was asked; `prism.llm.AnswerCache` keeps them on disk."""

    def get(self, key: str) -> str | None:
        """Return what was put under a key, or None."""

    def put(self, key: str, value: str) -> None:
        """Keep something under a key."""


class ReplyCache:
    """The replies in a store; a store that raises does not end a run.

    It is reported once, as a warning ``reasoner.cache_failed``, and used no more: asking the model
    again costs money, while a full disk or a locked file that is tried at every decision would cost
    the run. A stored text that cannot be read counts as none.

    Args:
        store: Where the replies are.
        logger: Where to report a store that raises.
    """

    def __init__(self, store: AnswerStore, logger: EventLogger | None) -> None:
        self._store: AnswerStore | None = store
        self._logger = logger

    def key(self, *parts: Any) -> str:
        """Return the key of a reply that depends on all of these."""
        return sha256(json.dumps(parts).encode()).hexdigest()

    def get(self, key: str) -> Reply | None:
        """Return the reply under a key, or None."""
        if self._store is None:
            return None

        try:
            stored = self._store.get(key)
        except Exception as error:
            self._disable(error)
            return None

        return None if stored is None else _read(stored)

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply under a key."""
        if self._store is None:
            return

        try:
            self._store.put(key, json.dumps(asdict(reply)))
        except Exception as error:
            self._disable(error)

    def _disable(self, error: Exception) -> None:
        self._store = None
        report_warning(self._logger, CACHE_FAILED, error=describe(error))


def _read(stored: str) -> Reply | None:
    try:
        found = json.loads(stored)
        # earlier versions stored the cost, too
        reply = Reply(found["text"], found["answers"])
    except (ValueError, TypeError, LookupError):
        return None

    return reply if isinstance(reply.text, str) and isinstance(reply.answers, Mapping) else None
