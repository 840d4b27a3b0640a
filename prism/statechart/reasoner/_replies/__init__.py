"""Reading a model's reply, and refusing what it must not say."""

from prism.statechart.reasoner._replies._objects import find_json, what_is_said
from prism.statechart.reasoner._replies._reading import (
    parse_reasoner_response,
    read_choice,
    read_probabilities,
    read_reason,
)

__all__ = [
    "find_json",
    "parse_reasoner_response",
    "read_choice",
    "read_probabilities",
    "read_reason",
    "what_is_said",
]
