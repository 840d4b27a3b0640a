"""One way to observe charts and reasoners: an `Instrument`, installed by `instrumented`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["info", "warning", "error"]

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
class GuardEvaluated:
    """The guard of a transition was evaluated.

    Args:
        chart: The chart's `prism.statechart.Definition`.
        number: Place of the transition in ``chart.transitions``; in a chart with composites a tuple
            with that place.
        agent: The agent.
        context: The event's context, as it was passed to ``fire``.
        outcome: ``passed``, ``failed``, or ``raised``, which counts as a failure.
        error: The exception that the guard raised.
    """

    chart: Any
    number: int | tuple[int, ...]
    agent: Any
    context: Any
    outcome: GuardOutcome
    error: Exception | None = None


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
    placed = [
        (hooks, getattr(instrument, name))
        for name, own in _INSTALLED.items()
        if getattr(type(instrument), name) is not getattr(Instrument, name)
        for hooks in ([own, engine_hooks] if name in _OF_CHARTS else [own])
    ]
    for hooks, hook in placed:
        hooks.append(hook)

    try:
        yield
    finally:
        for hooks, hook in placed:
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
