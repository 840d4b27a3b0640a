"""The chart of a feed's agents: that of the specification, with what parameters add to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prism.social._parameters import CLASSIC, Parameters
from prism.statechart import AgentState, Guard, Statechart, Transition, social_media_chart
from prism.telemetry._loggers import EventLogger

HAS_IDEA = "has_idea"
"""An agent begins to write of its own accord."""

IDEAS_FROM = (AgentState.IDLE, AgentState.SCROLLING)
"""Where ideas come: agents who are at leisure, or who only scroll."""


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
    if parameters.engagement != CLASSIC.engagement:
        guard = _Scaled(parameters.engagement, guard or _agents_own)

    chart = social_media_chart(should_engage=guard, logger=logger, clock=clock)
    ideas = [
        Transition(HAS_IDEA, state, AgentState.COMPOSING)
        for state in IDEAS_FROM
        if parameters.posts_per_tick
    ]
    rests = parameters.resting_ticks != CLASSIC.resting_ticks
    if not ideas and not rests:
        return chart

    timeouts = {AgentState.RESTING: parameters.resting_ticks} if rests else {}
    return chart.extended(transitions=ideas, timeouts=timeouts)


def _agents_own(agent: Any, post: Any) -> bool:
    return bool(agent.should_engage(post))


class _Scaled:
    """Guard: what an agent engages with if a part of its threshold counts.

    Args:
        scale: That part.
        guard: Whom to ask first.
    """

    def __init__(self, scale: float, guard: Guard) -> None:
        self._scale = scale
        self._guard = guard

    __name__ = "should_engage"

    def __call__(self, agent: Any, post: Any) -> bool:
        # asked in any case, as it notes the relevance that the log tells
        engages = self._guard(agent, post)
        return bool(engages or agent.relevance(post) >= self._scale * agent.engagement_threshold)
