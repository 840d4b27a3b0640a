"""Decisions and texts as spans of OpenTelemetry: the one module that imports it.

Names follow the semantic conventions for generative AI (OpenTelemetry, version 1.38); all others
begin with ``prism.``.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from prism.errors import MissingExtraError
from prism.telemetry._instrument import Instrument, LogEvent
from prism.telemetry.events import DECISION, TEXT_WRITTEN, TRANSITION

_NANOSECONDS = 1_000_000_000

_ASKED = frozenset({"model", "cache", "replay"})
"""Sources of an answer that a model gave, now or earlier."""

_FAILED = frozenset({"fallback", "failed"})

_STANDARD = {
    "agent_id": "gen_ai.agent.id",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
}
"""Keys of the log that the conventions have names for."""

_OWN = (
    *("chosen", "decision_id", "attempts", "key", "options", "queue_seconds", "request_seconds"),
    *("round", "source", "state", "text_id", "tick", "trigger"),
)

_STATUS = re.compile(r" answered (\d{3})\b")
_EXCEPTION = re.compile(r"([A-Z]\w*): ")

_OF_TRANSITION = ("chart", "from_state", "to_state", "trigger")


class ModelSpans(Instrument):
    """Makes a span of OpenTelemetry from each decision and text, with the transition it led to.

    Install it with `instrumented`. It needs the extra ``otel`` and sends to the application's
    tracer provider. A span covers the time of the answer, and ends with an event for the transition
    that followed. So a span is sent when the agent has moved or decides again, or when the
    instrument is closed::

        with ModelSpans() as spans, instrumented(spans):
            simulation.run()

    Args:
        provider: A tracer provider; None for the application's.

    Raises:
        MissingExtraError: If OpenTelemetry is not installed.
    """

    def __init__(self, provider: Any = None) -> None:
        try:
            from opentelemetry import trace
        except ModuleNotFoundError as error:
            raise MissingExtraError("telemetry", str(error.name), extra="otel") from None

        self._trace = trace
        self._tracer = trace.get_tracer("prism", tracer_provider=provider)
        self._open: dict[str, tuple[Any, int]] = {}
        self._providers: dict[str, str] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> ModelSpans:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End the spans of agents that have decided but not moved."""
        for agent_id in list(self._open):
            self._end(agent_id)

    def event(self, details: LogEvent, /) -> None:
        """Turn a decision or a text into a span, and add a transition to the agent's own."""
        if details.name == DECISION:
            self._end(details.keys["agent_id"])
            with self._lock:
                self._open[details.keys["agent_id"]] = self._span("decide", details)
        elif details.name == TEXT_WRITTEN:
            span, end = self._span("write", details)
            span.end(end)
        elif details.name == TRANSITION and details.keys["agent_id"] in self._open:
            moved = {name: _plain(details.keys.get(name)) for name in _OF_TRANSITION}
            self._end(details.keys["agent_id"], moved)

    def _end(self, agent_id: str, moved: Mapping[str, Any] | None = None) -> None:
        with self._lock:
            span, end = self._open.pop(agent_id, (None, 0))
        if span is None:
            return

        if moved is not None:
            span.add_event(TRANSITION, moved, timestamp=end)
        span.end(end)

    def _provider_of(self, keys: Mapping[str, Any]) -> str | None:
        """Return the API that a model's server speaks, as its answers have shown; None if unknown.

        Ollama alone reports durations; a server of prism's other dialect is OpenAI's or alike.
        """
        host = keys.get("host") or ""
        if keys.get("total_duration") is not None:
            self._providers[host] = "ollama"
        elif host and keys.get("done_reason") is not None:
            self._providers[host] = "openai"

        return self._providers.get(host) if keys.get("model") is not None else None

    def _span(self, what: str, details: LogEvent) -> tuple[Any, int]:
        """Return a span that is still open, and the time at which it should end."""
        keys = details.keys
        end = time.time_ns()
        was_asked = keys.get("source") in _ASKED or keys.get("model") is not None
        span = self._tracer.start_span(
            f"chat {keys['model']}" if was_asked and keys.get("model") else what,
            kind=self._trace.SpanKind.CLIENT if was_asked else self._trace.SpanKind.INTERNAL,
            attributes=_attributes(what, keys, self._provider_of(keys)),
            start_time=end - round(_NANOSECONDS * (keys.get("latency") or 0.0)),
        )
        if keys.get("source") in _FAILED:
            span.set_attribute("error.type", _error_type(str(keys.get("reason") or "")))
            span.set_status(self._trace.StatusCode.ERROR, str(keys.get("reason") or ""))

        return span, end


def _error_type(reason: str) -> str:
    """Return the HTTP status that a reason names, or else the class of its exception."""
    found = _STATUS.search(reason) or _EXCEPTION.match(reason)
    return "_OTHER" if found is None else found.group(1)


def _attributes(what: str, keys: Mapping[str, Any], provider: str | None) -> dict[str, Any]:
    """Return the attributes of a span from the keys of a log event."""
    host = urlsplit(keys.get("host") or "")
    ended = keys.get("done_reason")
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "server.address": host.hostname,
        "server.port": host.port,
        "gen_ai.response.finish_reasons": None if ended is None else [ended],
        "prism.kind": what,
        **{name: keys.get(key) for key, name in _STANDARD.items()},
        **{f"prism.{key}": _plain(keys.get(key)) for key in _OWN},
    }

    return {name: value for name, value in attributes.items() if value is not None}


def _plain(value: Any) -> Any:
    """Return a value that an attribute can hold: a state as its text, a list of states as texts."""
    if isinstance(value, (list, tuple)):
        return [str(getattr(each, "value", each)) for each in value]
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)
