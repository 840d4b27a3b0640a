"""What a chart asks of a reasoner, and what both write to the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from logging import DEBUG
from typing import Any, Protocol

from prism.statechart._definition import Definition
from prism.statechart.memory import count_of
from prism.statechart.names import agent_name, identify
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge
from prism.telemetry import loggers
from prism.telemetry.events import ANSWER_DISCARDED, DECISION, EVENT_REFUSED, TRANSITION
from prism.telemetry.instruments import Level, join_hooks
from prism.telemetry.loggers import EventLogger


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

    Attributes:
        chart: The definition of the chart that asks; None if nobody's.
        are_announced: Whether a reasoner that was asked has logged its decision itself.
    """

    chart: Definition[Any] | None = None
    are_announced = False


class Reporter:
    """Writes a chart's events to its log.

    Args:
        chart: Name of the chart.
        logger: Where to write; None means structlog's own logger, once it is configured.

    Attributes:
        logger: The chart's own logger, if it has one.
    """

    def __init__(self, chart: str, logger: EventLogger | None) -> None:
        self._chart = chart
        self.logger: EventLogger | None = loggers.synchronous(logger)

    def moved(self, agent: Any, edge: Edge, dwell: int | None, context: Any) -> None:
        """Report a transition, with the ticks that the agent spent in the state it left."""
        self.met(agent, edge.from_text)
        about = {**edge.ends, "ticks_in_state": dwell, "context": identify(context)}
        self._report("info", TRANSITION, agent, about)

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
        if not loggers.is_heard(self.logger, DEBUG):
            return
        names = [*filter(None, guards)]
        reason = {"reason": "guards" if names else "no_transition", "guards": names}
        about = {"ticks_in_state": count_of(agent, "ticks_in_state"), "context": identify(context)}
        keys = {"state": state, "trigger": trigger, **reason, **about}
        self._report("debug", EVENT_REFUSED, agent, keys)

    def discarded(self, agent: Any, trigger: str, asked_in: Any, chosen: Any, reason: str) -> None:
        """Warn of an answer that no longer applied: ``moved``, or ``not_enabled``."""
        states = {"asked_in": asked_in, "now_in": agent.state, "chosen": chosen}
        texts = {name: state_text(state) for name, state in states.items()}
        about = {"trigger": trigger, **texts, "reason": reason}
        self._report("warning", ANSWER_DISCARDED, agent, about)

    def failed(self, event: str, error: Exception, agent: Any, edge: Edge) -> None:
        """Report a guard or an action that raised."""
        about = {"exc_info": error, "error": loggers.describe(error), **edge.ends}
        self._report("error", event, agent, about)

    def _report(self, level: Level, event: str, agent: Any, about: Mapping[str, Any]) -> None:
        keys = {"chart": self._chart, "agent_id": agent_name(agent), **about}
        loggers.report(self.logger, level, event, keys)


def announce(
    logger: EventLogger | None, question: Any, chosen: Any, source: str, how: Mapping[str, Any]
) -> None:
    """Log a decision. A fallback is a warning, which is shown even without structlog.

    Args:
        logger: The reasoner's or the chart's own logger, if it has one.
        question: What was asked, an object with ``agent``, ``state``, ``trigger``, ``options``,
            ``context`` and ``chart``, whose definition may be None.
        chosen: What was chosen.
        source: Who chose.
        how: How the choice was made: ``reason``, ``probabilities`` and what else is known.
    """
    keys = {} if (chart := question.chart) is None else {"chart": chart.name}
    keys |= {
        "agent_id": agent_name(question.agent),
        "state": state_text(question.state),
        "trigger": question.trigger,
        "options": [*map(state_text, question.options)],
        "chosen": state_text(chosen),
        "source": source,
        "context": identify(question.context),
        **how,
    }
    loggers.report(logger, "warning" if source == "fallback" else "info", DECISION, keys)
