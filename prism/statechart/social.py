"""The chart of a social media agent (specification, State Transitions)."""

from __future__ import annotations

from typing import Any

from prism.statechart._parts import Guard
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import TIMEOUT, Transition

FEED_READY = "feed_ready"
SEES_POST = "sees_post"
DECIDES = "decides"
IGNORES = "ignores"
COMPOSE_DONE = "compose_done"
ACTION_DONE = "action_done"
ROUND_ENDS = "round_ends"
HAS_IDEA = "has_idea"

RESTING_TICKS = 2

_ACTING = AgentState.ENGAGING_REPLY, AgentState.ENGAGING_RESHARE

ACTS: frozenset[str] = frozenset(state.value for state in _ACTING)
"""The options of a chart in which agents decide between all that they may do about a post."""


def should_engage(agent: Any, context: Any) -> bool:
    """Guard: the event is relevant enough to the agent."""
    return bool(agent.should_engage(context))


def intends_reply(agent: Any, context: Any) -> bool:  # noqa: ARG001 - a guard takes both
    """Guard: the agent is about to reply."""
    return bool(agent.pending_action == "reply")


def intends_reshare(agent: Any, context: Any) -> bool:  # noqa: ARG001 - a guard takes both
    """Guard: the agent is about to reshare."""
    return bool(agent.pending_action == "reshare")


def intends_post(agent: Any, context: Any) -> bool:  # noqa: ARG001 - a guard takes both
    """Guard: the agent is about to publish a post of its own."""
    return bool(agent.pending_action == "post")


def social_media_chart(
    *,
    should_engage: Guard = should_engage,
    acts: bool = False,
    has_ideas: bool = False,
    resting_ticks: int = RESTING_TICKS,
    **options: Any,
) -> Statechart[AgentState]:
    """Make the chart that social agents share.

    ``decides`` is the one ambiguous event: from EVALUATING an agent that should engage may compose,
    like or scroll on, and `Statechart.afire` asks a reasoner which. A composing agent does what
    ``agent.pending_action`` says: ``"reply"``, ``"reshare"`` or ``"post"``; without one the draft
    is dropped.

    Args:
        should_engage: Called with agent and context in place of ``agent.should_engage(context)``,
            for classes whose method has other arguments. For a method that takes a number: ``lambda
            agent, post: agent.should_engage(rate(agent, post))``.
        acts: Whether agents can also decide in EVALUATING to reply or reshare, as in a run of the
            feed where a model decides. The chart's name then ends with ``_acts``.
        has_ideas: Whether agents also write unprompted: with ``has_idea`` an agent in IDLE or
            SCROLLING begins to compose a new post. The chart is then called ``social_feed``, else
            ``social_media``.
        resting_ticks: Ticks that an agent rests.
        options: ``strict``, ``logger`` and ``clock``, as for `Statechart`.

    Returns:
        A chart over `AgentState` that starts in IDLE. It needs an agent's ``pending_action``, and
        ``should_engage`` unless that is given here.

    Raises:
        DefinitionError: (a ValueError) if ``should_engage`` is not a plain function of two
            arguments.
    """
    s = AgentState
    further = _ACTING if acts else ()
    engaging = (s.ENGAGING_LIKE, s.ENGAGING_REPLY, s.ENGAGING_RESHARE)
    transitions = [
        Transition(FEED_READY, s.IDLE, s.SCROLLING),
        Transition(SEES_POST, s.SCROLLING, s.EVALUATING),
        Transition(IGNORES, s.EVALUATING, s.SCROLLING),
        *(
            Transition(DECIDES, s.EVALUATING, state, guard=should_engage)
            for state in (s.COMPOSING, s.ENGAGING_LIKE, *further)
        ),
        Transition(DECIDES, s.EVALUATING, s.SCROLLING),
        Transition(COMPOSE_DONE, s.COMPOSING, s.ENGAGING_REPLY, guard=intends_reply),
        Transition(COMPOSE_DONE, s.COMPOSING, s.ENGAGING_RESHARE, guard=intends_reshare),
        Transition(COMPOSE_DONE, s.COMPOSING, s.RESTING, guard=intends_post),
        Transition(COMPOSE_DONE, s.COMPOSING, s.SCROLLING),
        Transition(ACTION_DONE, engaging, s.RESTING),
        Transition(TIMEOUT, (s.EVALUATING, s.COMPOSING, *engaging), s.SCROLLING),
        Transition(TIMEOUT, s.SCROLLING, s.RESTING),
        Transition(TIMEOUT, s.RESTING, s.IDLE),
        Transition(ROUND_ENDS, [state for state in s if state is not s.IDLE], s.IDLE),
    ]
    if has_ideas:
        transitions.append(Transition(HAS_IDEA, [s.IDLE, s.SCROLLING], s.COMPOSING))
    return Statechart(
        AgentState,
        transitions,
        s.IDLE,
        name=("social_feed" if has_ideas else "social_media") + ("_acts" if acts else ""),
        decision_states=[s.EVALUATING],
        timeouts={s.RESTING: resting_ticks},
        **options,
    )
