"""The engine: states, transitions, charts, and the reasoners that decide ambiguous events.

Import public names from here::

    from prism.statechart import Statechart, Transition, social_media_chart

Three modules have more: `prism.statechart.inspection` has what `Statechart.explain` and
`Statechart.check` return, `prism.statechart.outline` has charts as they are drawn, and
`prism.reasoner` has everything about reasoners, whose names in this package are loaded on first
use, since a chart alone needs none of them.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism.statechart._definition import Definition
from prism.statechart._engine.machine import MachineError
from prism.statechart._parts import Action, Guard, History, State, done
from prism.statechart.names import identify
from prism.statechart.queries import agents_in_state, state_distribution
from prism.statechart.reporting import Decider
from prism.statechart.social import social_media_chart
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState, Configuration, state_enum
from prism.statechart.transitions import StateTransition, Transition
from prism.telemetry import EventLogger

if TYPE_CHECKING:
    from prism.randomness import RandomStream
    from prism.reasoner import (
        STATE_DESCRIPTIONS,
        BaseReasoner,
        BaseWriter,
        Budget,
        Cost,
        Decision,
        PolicyReasoner,
        Question,
        Reasoner,
        TextCall,
        Wording,
        Writer,
        Written,
        build_reasoner_prompt,
        format_context,
        parse_reasoner_response,
    )
    from prism.statechart import reasoner as reasoner
    from prism.statechart.inspection import Explanation, Finding
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "STATE_DESCRIPTIONS",
    "Action",
    "AgentState",
    "BaseReasoner",
    "BaseWriter",
    "Budget",
    "Configuration",
    "Cost",
    "Decider",
    "Decision",
    "Definition",
    "EventLogger",
    "Explanation",
    "Finding",
    "Guard",
    "History",
    "MachineError",
    "PolicyReasoner",
    "Question",
    "RandomStream",
    "Reasoner",
    "State",
    "StateTransition",
    "Statechart",
    "TextCall",
    "Transition",
    "Wording",
    "Writer",
    "Written",
    "agents_in_state",
    "build_reasoner_prompt",
    "done",
    "format_context",
    "identify",
    "parse_reasoner_response",
    "social_media_chart",
    "state_distribution",
    "state_enum",
]
