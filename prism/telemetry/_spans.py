"""Decisions and texts as spans of OpenTelemetry, which this module alone imports."""

from __future__ import annotations

import time
from typing import Any

from prism._lazy import import_extra
from prism.telemetry.events import DECISION, TEXT_WRITTEN
from prism.telemetry.instruments import Instrument, LogEvent

_STANDARD = {
    "agent_id": "gen_ai.agent.id",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "host": "url.full",
}
_OWN = ("round", "tick", "state", "trigger", "chosen", "source", "attempts")


class ModelSpans(Instrument):
    """Makes a span of each decision and each text, which lasts as long as its answer took.

    Names follow OpenTelemetry's semantic conventions for generative AI; all others begin with
    ``prism.``. Needs the extra ``otel``::

        with instrumented(ModelSpans()):
            run.run()

    Args:
        provider: A tracer provider; None for the application's.

    Raises:
        MissingExtraError: If OpenTelemetry is not installed.
    """

    def __init__(self, provider: Any = None) -> None:
        trace = import_extra("opentelemetry.trace", "otel")
        self._tracer = trace.get_tracer("prism", tracer_provider=provider)
        self._failed = trace.StatusCode.ERROR

    def event(self, details: LogEvent, /) -> None:
        """Make a span of a decision or a text."""
        if details.name not in (DECISION, TEXT_WRITTEN):
            return

        keys, end = details.keys, time.time_ns()
        named = {name: keys.get(key) for key, name in _STANDARD.items()}
        own = {f"prism.{key}": keys.get(key) for key in _OWN}
        span = self._tracer.start_span(
            "decide" if details.name == DECISION else "write",
            start_time=end - round(1e9 * (keys.get("latency") or 0.0)),
            attributes={
                key: value if isinstance(value, (int, float)) else str(value)
                for key, value in {**named, **own}.items()
                if value is not None
            },
        )
        if keys.get("source") in ("fallback", "failed"):
            span.set_status(self._failed, str(keys.get("reason")))
        span.end(end)
