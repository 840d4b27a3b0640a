"""The engine: states, transitions, charts, and the reasoners that decide ambiguous events.

The public names of the room are here::

    from prism.statechart import Statechart, Transition, social_media_chart

Three packages have more: `prism.statechart.inspection` has the types of what `Statechart.explain`
and `Statechart.check` return, `prism.statechart.formats` writes charts as documents, and
`prism.statechart.reasoner` has everything about reasoners.
"""

from prism.randomness import RandomStream
from prism.statechart._definition import Definition
from prism.statechart._engine.pending import Decider
from prism.statechart._identity import identify
from prism.statechart.inspection._explain import Explanation
from prism.statechart.inspection._lint import Finding
from prism.statechart.queries import agents_in_state, state_distribution
from prism.statechart.reasoner import (
    STATE_DESCRIPTIONS,
    Reasoner,
    build_reasoner_prompt,
    format_context,
    parse_reasoner_response,
)
from prism.statechart.reasoner._cost import Budget, Cost
from prism.statechart.reasoner._policy import PolicyReasoner
from prism.statechart.reasoner._questions import BaseReasoner, Decision, Question
from prism.statechart.reasoner._recollection import Recollection
from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
from prism.statechart.reasoner._wording import Wording
from prism.statechart.reasoner._writer import Writer
from prism.statechart.social import social_feed_chart, social_media_chart, social_media_guards
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState, state_enum
from prism.statechart.transitions import Action, Guard, StateTransition, Transition
from prism.telemetry import EventLogger

__all__ = [
    "STATE_DESCRIPTIONS",
    "Action",
    "AgentState",
    "BaseReasoner",
    "BaseWriter",
    "Budget",
    "Cost",
    "Decider",
    "Decision",
    "Definition",
    "EventLogger",
    "Explanation",
    "Finding",
    "Guard",
    "PolicyReasoner",
    "Question",
    "RandomStream",
    "Reasoner",
    "Recollection",
    "StateTransition",
    "Statechart",
    "TextCall",
    "Transition",
    "Wording",
    "Writer",
    "Written",
    "agents_in_state",
    "build_reasoner_prompt",
    "format_context",
    "identify",
    "parse_reasoner_response",
    "social_feed_chart",
    "social_media_chart",
    "social_media_guards",
    "state_distribution",
    "state_enum",
]
