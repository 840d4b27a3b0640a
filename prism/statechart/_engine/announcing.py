"""The event of a decision: what it says, and that it is said once.

Reasoners built on `BaseReasoner` announce their decisions themselves. One that has only a
``decide`` may do so too, by asking another; if it does not, `Statechart.afire` announces for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from prism.statechart._identity import identify, name_or_address
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger, active_logger, report_warning
from prism.telemetry.events import DECISION


class Announced:
    """Whether the decision on one open question has been announced.

    Args:
        agent: Who is asked.
        trigger: The event that opened the question.

    Attributes:
        already: True once somebody has announced it.
    """

    __slots__ = ("_agent", "_trigger", "already")

    def __init__(self, agent: object, trigger: str) -> None:
        self._agent = agent
        self._trigger = trigger
        self.already: bool = False

    def note(self, agent: object, trigger: str) -> None:
        """Take note of an announcement, if it is about this question."""
        self.already |= agent is self._agent and trigger == self._trigger


_awaited: ContextVar[Announced | None] = ContextVar("prism_awaited", default=None)


@contextmanager
def awaiting_announcement(agent: object, trigger: str) -> Iterator[Announced]:
    """Find out whether a decision is announced meanwhile, be it by a task that is started."""
    before, announced = _awaited.get(), Announced(agent, trigger)
    _awaited.set(announced)
    try:
        yield announced
    finally:
        # a coroutine that is forgotten may be closed in the context of another one
        if _awaited.get() is announced:
            _awaited.set(before)


def announce(
    given: EventLogger | None,
    *,
    agent: object,
    state: Any,
    trigger: str,
    options: Iterable[Any],
    chosen: Any,
    source: str,
    context: object,
    reason: str | None = None,
    probabilities: Mapping[str, float] | None = None,
    cost: Mapping[str, Any] | None = None,
) -> None:
    """Log one decision; a fallback is a warning, which is shown even without structlog.

    Args:
        given: The reasoner's or the chart's own logger, if it has one.
        agent: Who decided.
        state: Its state.
        trigger: The event that opened the question.
        options: What there was to choose from.
        chosen: What was chosen.
        source: Who chose.
        context: What the event is about.
        reason: Why the fallback was taken.
        probabilities: Probability of every option by its text, where known.
        cost: The keys of what it took, if a model was asked.
    """
    awaited = _awaited.get()
    if awaited is not None:
        awaited.note(agent, trigger)

    active = active_logger(given)
    if active is None and source != "fallback":
        return

    keys = {
        "agent_id": name_or_address(agent),
        "state": state_text(state),
        "trigger": trigger,
        "options": [state_text(option) for option in options],
        "chosen": state_text(chosen),
        "source": source,
        "reason": reason,
        "probabilities": probabilities,
        "context": _identity(context),
        **(cost or {}),
    }
    if source == "fallback":
        report_warning(given, DECISION, **keys)
    elif active is not None:
        active.info(DECISION, **keys)


def _identity(context: object) -> dict[str, Any] | None:
    """Return what identifies a context, or its class if that cannot be read."""
    try:
        return identify(context)
    except Exception:
        return {"type": type(context).__name__}
