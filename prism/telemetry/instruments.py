"""One way to observe charts and reasoners: an `Instrument`, installed by `instrumented`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from prism._lazy import import_extra
from prism.telemetry.events import DECISION, TEXT_WRITTEN

Level = Literal["debug", "info", "warning", "error"]
"""Details have the level debug: loggers get them, and instruments do not."""

GuardOutcome = Literal["passed", "failed", "raised"]

Hook = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class ChartBuilt:
    """A chart was built.

    Args:
        chart: Its `prism.statechart.Definition`.
    """

    chart: Any


@dataclass(frozen=True, slots=True)
class TransitionDetails:
    """A transition was made.

    Args:
        chart: The chart's `prism.statechart.Definition`.
        number: Place of the transition in ``chart.transitions``; in a chart with composites the
            places of all that are made together.
        agent: The agent.
        context: The event's context, as it was passed to ``fire``.
    """

    chart: Any
    number: int | tuple[int, ...]
    agent: Any
    context: Any


@dataclass(frozen=True, slots=True)
class GuardEvaluated(TransitionDetails):
    """The guard of a transition was evaluated; in a chart with composites its place is a tuple.

    Args:
        outcome: ``passed``, ``failed``, or ``raised``, which counts as a failure.
        error: The exception that the guard raised.
    """

    outcome: GuardOutcome
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event as it goes to the log.

    Args:
        name: One of the names in `prism.telemetry.events`, such as ``reasoner.decision``.
        level: ``info``, ``warning`` or ``error``.
        keys: The event's keys, as in the log; an exception as ``exc_info``.
    """

    name: str
    level: Level
    keys: Mapping[str, Any]


class Instrument:
    """Observes charts and reasoners; derive from it and override the hooks you need.

    A hook is called in the thread of what it observes, and its exceptions propagate. Hooks only
    observe: they must not fire events. A hook that is not overridden costs nothing, and without an
    instrument ``fire`` pays for one truth test.
    """

    def chart_built(self, details: ChartBuilt, /) -> None:
        """Observe that a chart was built."""

    def guard(self, details: GuardEvaluated, /) -> None:
        """Observe the outcome of a guard that a chart evaluates to fire or to list targets."""

    def transition(self, details: TransitionDetails, /) -> None:
        """Observe that a transition was made, including a self-transition."""

    def event(self, details: LogEvent, /) -> None:
        """Observe any event of prism, in the order of the log, whichever logger it goes to.

        A reasoner's decision has the name ``reasoner.decision``; a guard that raised, a discarded
        answer or another fault has the level ``warning`` or ``error``.
        """


engine_hooks: list[Hook] = []
"""Installed hooks of what charts do; while there are none, ``fire`` takes its fast path."""

event_hooks: list[Hook] = []
"""Installed hooks of what goes to the log."""

join_hooks: list[Callable[[str, str, str], object]] = []
"""Called with chart, agent and state when an agent of a chart without its own logger is met."""

_OF_CHARTS = ("chart_built", "guard", "transition")
_INSTALLED: dict[str, list[Hook]] = {"event": event_hooks, **{name: [] for name in _OF_CHARTS}}


@contextmanager
def instrumented(instrument: Instrument) -> Iterator[None]:
    """Install an instrument for the block; several may be installed at once.

    Args:
        instrument: Its overridden hooks are called, in all threads.
    """
    installed = [
        (hooks, getattr(instrument, name))
        for name, of_name in _INSTALLED.items()
        if getattr(type(instrument), name) is not getattr(Instrument, name)
        for hooks in ([of_name, engine_hooks] if name in _OF_CHARTS else [of_name])
    ]
    for hooks, hook in installed:
        hooks.append(hook)

    try:
        yield
    finally:
        for hooks, hook in installed:
            hooks.remove(hook)


def observe(name: str, kind: Callable[..., object], *values: Any) -> None:
    """Call the installed hooks of one name.

    Args:
        name: Name of the hook.
        kind: Class of the details, which are made only if a hook needs them.
        values: The fields of the details.
    """
    if hooks := _INSTALLED[name]:
        details = kind(*values)
        for hook in hooks:
            hook(details)


# Decisions and texts as spans of OpenTelemetry

_OURS = ("round", "tick", "state", "trigger", "chosen", "source", "attempts")
_NAMES = {
    "agent_id": "gen_ai.agent.id",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "host": "url.full",
    **{key: f"prism.{key}" for key in _OURS},
}


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
        values = {name: keys[key] for key, name in _NAMES.items() if keys.get(key) is not None}
        span = self._tracer.start_span(
            "decide" if details.name == DECISION else "write",
            start_time=end - round(1e9 * (keys.get("latency") or 0.0)),
            attributes={
                name: value if isinstance(value, (int, float)) else str(value)
                for name, value in values.items()
            },
        )
        if keys.get("source") in ("fallback", "failed"):
            span.set_status(self._failed, str(keys.get("reason")))
        span.end(end)
