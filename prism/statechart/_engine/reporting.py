"""What a chart reports: its transitions, faults in the user's code, answers that came too late."""

from __future__ import annotations

import logging
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._identity import agent_name, identify
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge
from prism.telemetry._loggers import EventLogger, active_logger, report_fault, report_warning
from prism.telemetry.events import ACTION_FAILED, ANSWER_DISCARDED, GUARD_FAILED, TRANSITION


class Reporter:
    """Writes a chart's events to its log.

    Args:
        chart: Name of the chart.
        logger: Where to write; None means structlog's own logger, once it is configured.
        strict: Whether to raise faults of guards and actions instead.

    Raises:
        DefinitionError: If the logger is one of the standard library, which takes no keys.
    """

    __slots__ = ("_chart", "_logger", "_strict")

    def __init__(self, chart: str, logger: EventLogger | None, *, strict: bool) -> None:
        if isinstance(logger, logging.Logger):
            raise DefinitionError(
                f"chart {chart!r}: logger must be a structlog logger, got the standard library's "
                f"{logger.name!r}: wrap it with structlog.wrap_logger, or leave it out and "
                "configure structlog"
            )

        self._chart = chart
        self._logger = logger
        self._strict = strict

    def moved(self, agent: Any, edge: Edge, dwell: int | None, context: Any) -> None:
        """Report a transition, with the ticks that the agent spent in the state it left."""
        logger = active_logger(self._logger)
        if logger is not None:
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

    def discarded(self, agent: Any, trigger: str, asked_in: Any, chosen: Any) -> None:
        """Warn of an answer that came after the agent had moved."""
        report_warning(
            self._logger,
            ANSWER_DISCARDED,
            chart=self._chart,
            agent_id=agent_name(agent),
            trigger=trigger,
            asked_in=state_text(asked_in),
            now_in=state_text(agent.state),
            chosen=state_text(chosen),
        )

    def guard_failed(self, error: Exception, agent: Any, edge: Edge) -> None:
        """Report a guard that raised; it counts as failed."""
        self._failed(GUARD_FAILED, error, agent, edge)

    def action_failed(self, error: Exception, agent: Any, edge: Edge) -> None:
        """Report an action that raised; the transition is made all the same."""
        self._failed(ACTION_FAILED, error, agent, edge)

    def _failed(self, event: str, error: Exception, agent: Any, edge: Edge) -> None:
        if self._strict:
            raise error

        report_fault(
            self._logger,
            event,
            error,
            chart=self._chart,
            agent_id=agent_name(agent),
            from_state=edge.from_text,
            to_state=edge.to_text,
            trigger=edge.trigger,
        )
