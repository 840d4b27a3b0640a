"""The chart of a feed's agents: that of the specification, with what parameters add to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prism.social._parameters import CLASSIC, Parameters
from prism.statechart import (
    AgentState,
    Guard,
    Statechart,
    social_feed_chart,
    social_media_chart,
)
from prism.statechart.social import DECIDES
from prism.telemetry._loggers import EventLogger

_ENGAGING = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE)
"""Where only those go from EVALUATING whom a post concerns enough."""


def feed_chart(
    parameters: Parameters,
    guard: Guard | None,
    logger: EventLogger | None,
    clock: Callable[[], float],
) -> Statechart[AgentState]:
    """Return the chart of a feed's agents.

    Args:
        parameters: Whether agents write of their own accord, how long they rest, and how much of
            an agent's engagement threshold counts.
        guard: Who says whether a post is relevant enough; None if each agent does.
        logger: Where events go.
        clock: The run's clock.
    """
    resting = parameters.resting_ticks
    if parameters.posts_per_tick:
        chart = social_feed_chart(
            should_engage=guard, resting_ticks=resting, logger=logger, clock=clock
        )
    else:
        chart = social_media_chart(should_engage=guard, logger=logger, clock=clock)
        if resting != CLASSIC.resting_ticks:
            chart = chart.extended(timeouts={AgentState.RESTING: resting})

    # a guard of the user's own has the last word
    if guard is not None or parameters.engagement == CLASSIC.engagement:
        return chart

    # so the chart still needs of agents what it needed
    scaled = _Scaled(parameters.engagement)
    return chart.extended(
        guards={(DECIDES, AgentState.EVALUATING, target): scaled for target in _ENGAGING}
    )


class _Scaled:
    """Guard: what an agent engages with if a part of its threshold counts.

    An agent without a relevance or a threshold has the last word itself.

    Args:
        scale: That part.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale

    __name__ = "should_engage"

    def __call__(self, agent: Any, post: Any) -> bool:
        # asked in any case, as it notes the relevance that the log tells
        engages = bool(agent.should_engage(post))
        rating = getattr(agent, "relevance", None)
        threshold = getattr(agent, "engagement_threshold", None)
        if engages or rating is None or threshold is None:
            return engages

        return bool(rating(post) >= self._scale * threshold)
