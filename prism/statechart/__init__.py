"""The engine: states, transitions, the chart that governs them, and the reasoners it may ask.

The public names of the room are here::

    from prism.statechart import Statechart, Transition, social_media_chart

Three modules stand apart, so that the engine starts fast: ``prism.statechart.explain`` has the types of what
`Statechart.explain` gives, ``prism.statechart.drawing`` draws diagrams from plain data, and
``prism.statechart.scxml`` has the names that an exported SCXML document uses.
"""

from prism.statechart.budget import Budget
from prism.statechart.checks import Finding
from prism.statechart.context import identify
from prism.statechart.decisions import BaseReasoner, Call, Decision, Question
from prism.statechart.policy import PolicyReasoner
from prism.statechart.queries import agents_in_state, state_distribution
from prism.statechart.reasoner import (
    STATE_DESCRIPTIONS,
    Reasoner,
    build_reasoner_prompt,
    format_context,
    parse_reasoner_response,
)
from prism.statechart.social import social_media_chart, social_media_guards
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState, state_enum
from prism.statechart.streams import RandomStream
from prism.statechart.transitions import StateTransition, Transition

__all__ = [
    "STATE_DESCRIPTIONS",
    "AgentState",
    "BaseReasoner",
    "Budget",
    "Call",
    "Decision",
    "Finding",
    "PolicyReasoner",
    "Question",
    "RandomStream",
    "Reasoner",
    "StateTransition",
    "Statechart",
    "Transition",
    "agents_in_state",
    "build_reasoner_prompt",
    "format_context",
    "identify",
    "parse_reasoner_response",
    "social_media_chart",
    "social_media_guards",
    "state_distribution",
    "state_enum",
]
