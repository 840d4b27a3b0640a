"""What a chart asks of a reasoner, and how the answer is announced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from prism.statechart._definition import Definition
from prism.statechart.names import agent_name, identify
from prism.statechart.states import state_text
from prism.telemetry.events import DECISION
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import EventLogger, listener, pass_over

__all__ = ["Asked", "Options", "announce"]


class Decider(Protocol):
    """Anything that `Statechart.afire` can ask, such as a `Reasoner` or a `PolicyReasoner`.

    If a reasoner has only this method, its decisions are announced with the source ``policy``.
    Derive from `BaseReasoner` to give another source.
    """

    async def decide(
        self, agent: Any, current_state: Any, trigger: str, options: list[Any], context: Any = None
    ) -> Any:
        """Choose one of the options."""


class Options(list[Any]):
    """The options of a question that a chart asks.

    Args:
        options: The targets to choose from.
        chart: The definition of the chart that asks; None if nobody's.

    Attributes:
        chart: As given.
        are_announced: Whether a reasoner that was asked has logged its decision itself.
    """

    def __init__(self, options: Iterable[Any], chart: Definition[Any] | None) -> None:
        super().__init__(options)
        self.chart = chart
        self.are_announced: bool = False


class Asked(NamedTuple):
    """An ambiguous event, as its decision is logged.

    Args:
        agent: Who decided.
        state: Its state.
        trigger: The event that opened the question.
        options: What there was to choose from.
        context: The event's context.
    """

    agent: object
    state: Any
    trigger: str
    options: Sequence[Any]
    context: object


def announce(
    logger: EventLogger | None,
    asked: Any,
    chosen: Any,
    source: str,
    how: Mapping[str, Any],
    more: Mapping[str, Any],
) -> None:
    """Log a decision. A fallback is a warning, which is shown even without structlog.

    Args:
        logger: The reasoner's or the chart's own logger, if it has one.
        asked: What was asked: an `Asked`, or an object with its attributes.
        chosen: What was chosen.
        source: Who chose.
        how: How the choice was made: ``reason``, ``probabilities`` and what else is known.
        more: Further keys, which stand after the context.
    """
    level: Level = "warning" if source == "fallback" else "info"
    # not by `report`, whose copy of the keys takes a fifth of the time
    try:
        if (listening := listener(logger, level)) is None:
            return
        log = listening.info if level == "info" else listening.warning
        log(
            DECISION,
            agent_id=agent_name(asked.agent),
            state=state_text(asked.state),
            trigger=asked.trigger,
            options=[*map(state_text, asked.options)],
            chosen=state_text(chosen),
            source=source,
            **how,
            context=identify(asked.context),
            **more,
        )
    except Exception as error:
        pass_over(error, DECISION)
