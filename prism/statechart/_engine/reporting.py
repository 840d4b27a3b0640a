"""What a chart and its reasoners write to the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from prism.statechart._engine.writing import count_of
from prism.statechart.names import agent_name, identify
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge
from prism.telemetry.events import ANSWER_DISCARDED, EVENT_REFUSED, TRANSITION
from prism.telemetry.instruments import Level, join_hooks
from prism.telemetry.loggers import (
    EventLogger,
    active_logger,
    debug_logger,
    pass_over,
    report,
    report_fault,
    synchronous,
)


class Reporter:
    """Writes a chart's events to its log.

    Args:
        chart: Name of the chart.
        logger: Where to write; None means structlog's own logger, once it is configured.
        strict: Whether to raise faults of guards and actions instead.

    Attributes:
        logger: The chart's own logger, if it has one.
    """

    def __init__(self, chart: str, logger: EventLogger | None, *, strict: bool) -> None:
        self._chart = chart
        self.logger: EventLogger | None = synchronous(logger)
        self._strict = strict

    def moved(self, agent: Any, edge: Edge, dwell: int | None, context: Any) -> None:
        """Report a transition, with the ticks that the agent spent in the state it left."""
        self.met(agent, edge.from_text)
        # not by `report`: of all events this is the one that there are millions of
        try:
            if (logger := active_logger(self.logger)) is not None:
                logger.info(
                    TRANSITION,
                    chart=self._chart,
                    agent_id=agent_name(agent),
                    from_state=edge.from_text,
                    to_state=edge.to_text,
                    trigger=edge.trigger,
                    ticks_in_state=dwell,
                    context=identify(context),
                )
        except Exception as error:
            pass_over(error, TRANSITION)

    def met(self, agent: Any, state: str) -> None:
        """Tell who counts the agents of charts that have no logger of their own."""
        for join in join_hooks if self.logger is None else ():
            join(self._chart, agent_name(agent), state)

    def refused(
        self, agent: Any, state: str, trigger: str, guards: Iterable[str | None], context: Any
    ) -> None:
        """Report an event that made no transition, if anybody listens to details.

        Args:
            agent: The agent.
            state: The text of its state.
            trigger: Name of the event.
            guards: The names of the guards that did not pass; none where nothing reacts to it.
            context: The event's context.
        """
        self.met(agent, state)
        if debug_logger(self.logger) is None:
            return
        names = [*filter(None, guards)]
        self._report(
            "debug",
            EVENT_REFUSED,
            agent,
            state=state,
            trigger=trigger,
            reason="guards" if names else "no_transition",
            guards=names,
            ticks_in_state=count_of(agent, "ticks_in_state"),
            context=identify(context),
        )

    def discarded(self, agent: Any, trigger: str, asked_in: Any, chosen: Any, reason: str) -> None:
        """Warn of an answer that no longer applied: ``moved``, or ``not_enabled``."""
        states = {"asked_in": asked_in, "now_in": agent.state, "chosen": chosen}
        texts = {name: state_text(state) for name, state in states.items()}
        self._report("warning", ANSWER_DISCARDED, agent, trigger=trigger, **texts, reason=reason)

    def failed(self, event: str, error: Exception, agent: Any, edge: Edge) -> None:
        """Report a guard or an action that raised; raise the error in a strict chart."""
        if self._strict:
            raise error
        ends = {"from_state": edge.from_text, "to_state": edge.to_text, "trigger": edge.trigger}
        name = agent_name(agent)
        report_fault(self.logger, event, error, chart=self._chart, agent_id=name, **ends)

    def _report(self, level: Level | Literal["debug"], event: str, agent: Any, **keys: Any) -> None:
        report(self.logger, level, event, chart=self._chart, agent_id=agent_name(agent), **keys)
