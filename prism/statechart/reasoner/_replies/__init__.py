"""Reading a model's reply, and refusing what it must not say."""

from prism.statechart.reasoner._replies._data import find_json
from prism.statechart.reasoner._replies._offers import offered_labels
from prism.statechart.reasoner._replies._probabilities import read_probabilities
from prism.statechart.reasoner._replies._reading import parse_reasoner_response, read_choice
from prism.statechart.reasoner._replies._reasons import read_reason
from prism.statechart.reasoner._replies._thoughts import what_is_said

__all__ = [
    "find_json",
    "offered_labels",
    "parse_reasoner_response",
    "read_choice",
    "read_probabilities",
    "read_reason",
    "what_is_said",
]
