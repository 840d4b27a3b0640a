"""The engine: states, transitions, and charts.

Import public names from here::

    from prism.statechart import Statechart, Transition, social_media_chart

Two modules have more: `prism.statechart.inspection` has what `Statechart.explain` and
`Statechart.check` return, and `prism.statechart.outline` has charts as they are drawn. The
reasoners that decide ambiguous events are in `prism.reasoner`; those that the specification names
here are loaded on first use, since a chart alone needs none of them.
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

if TYPE_CHECKING:
    from prism.reasoner import Reasoner, build_reasoner_prompt, parse_reasoner_response
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Action",
    "AgentState",
    "Configuration",
    "Decider",
    "Definition",
    "Guard",
    "History",
    "MachineError",
    "Reasoner",
    "State",
    "StateTransition",
    "Statechart",
    "Transition",
    "agents_in_state",
    "build_reasoner_prompt",
    "done",
    "identify",
    "parse_reasoner_response",
    "social_media_chart",
    "state_distribution",
    "state_enum",
]
