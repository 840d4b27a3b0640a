"""One way to observe charts and reasoners: an `Instrument`, installed by `instrumented`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from prism._lazy import import_extra
from prism.telemetry.events import DECISION, TEXT_WRITTEN

Level = Literal["debug", "info", "warning", "error"]
"""Details have the level debug: loggers get them, and instruments do not."""

Number = int | tuple[int, ...]


class Instrument:
    """Observes charts and reasoners; derive from it and override the hooks you need.

    A hook is called in the thread of what it observes, and its exceptions propagate. Hooks only
    observe: they must not fire events. While an instrument is installed that overrides `guard` or
    `transition`, charts fire through the Machine of ``transitions`` alone, which takes ten times as
    long.

    ``chart`` is a chart's `prism.statechart.Definition`, and ``number`` the place of a transition
    in ``chart.transitions``; in a chart with composites, a tuple of the places of all that belong
    together. ``context`` is the event's, as it was passed to ``fire``.
    """

    def chart_built(self, chart: Any, /) -> None:
        """Observe that a chart was built."""

    def guard(
        self, chart: Any, number: Number, agent: Any, context: Any, outcome: str | Exception, /
    ) -> None:
        """Observe the outcome of a guard that a chart evaluates to fire or to list targets.

        It is ``passed``, ``failed``, or the exception that the guard raised, which counts as a
        failure.
        """

    def transition(self, chart: Any, number: Number, agent: Any, context: Any, /) -> None:
        """Observe that a transition was made, including a self-transition."""

    def event(self, name: str, level: Level, keys: Mapping[str, Any], /) -> None:
        """Observe any event of prism, in the order of the log, whichever logger it goes to.

        The name is one of those in `prism.telemetry.events`, such as ``reasoner.decision``. A guard
        that raised, a discarded answer or another fault has the level ``warning`` or ``error``. The
        keys are those of the log; an exception is ``exc_info``.
        """


listening: list[Instrument] = []
"""What observes now."""

installed: list[Instrument] = []
"""What observes guards or transitions; while nothing does, ``fire`` takes its fast path."""

join_hooks: list[Callable[[str, str, str], object]] = []
"""Called with chart, agent and state when an agent of a chart without its own logger is met."""


@contextmanager
def instrumented(instrument: Instrument) -> Iterator[None]:
    """Install an instrument for the block; several may be installed at once.

    Args:
        instrument: Its hooks are called, in all threads.
    """
    lists = [listening, installed] if _observes_charts(instrument) else [listening]
    for each in lists:
        each.append(instrument)
    try:
        yield
    finally:
        for each in lists:
            each.remove(instrument)


def _observes_charts(instrument: Instrument) -> bool:
    """Return whether an instrument overrides a hook that the fast path of fire does not call."""
    hooks = instrument.guard, instrument.transition
    inherited = [Instrument.guard, Instrument.transition]
    return [getattr(hook, "__func__", None) for hook in hooks] != inherited


def observe(hook: str, *values: Any) -> None:
    """Call a hook, by its name, of all that observes."""
    for instrument in listening:
        getattr(instrument, hook)(*values)


# Decisions and texts as spans of OpenTelemetry

_NAMES = {
    "agent_id": "gen_ai.agent.id",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "host": "url.full",
}


class ModelSpans(Instrument):
    """Makes a span of each decision and each text, which lasts as long as its answer took.

    Names follow OpenTelemetry's semantic conventions for generative AI; all others begin with
    ``prism.``, and a text itself is not among them. Needs the extra ``otel``::

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

    def event(self, name: str, _level: Level, keys: Mapping[str, Any], /) -> None:
        """Make a span of a decision or a text."""
        if name not in (DECISION, TEXT_WRITTEN):
            return

        end = time.time_ns()
        span = self._tracer.start_span(
            "decide" if name == DECISION else "write",
            start_time=end - round(1e9 * (keys.get("latency") or 0.0)),
            attributes={
                _NAMES.get(key, f"prism.{key}"): value
                for key, value in keys.items()
                if isinstance(value, (str, int, float)) and key != "text"
            },
        )
        if keys.get("source") in ("fallback", "failed"):
            span.set_status(self._failed, str(keys.get("reason")))
        span.end(end)
