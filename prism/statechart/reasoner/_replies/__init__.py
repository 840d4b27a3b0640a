"""Reading a model's reply, and refusing what it must not say."""

from prism.statechart.reasoner._replies._probabilities import read_probabilities
from prism.statechart.reasoner._replies._reading import parse_reasoner_response

__all__ = ["parse_reasoner_response", "read_probabilities"]
