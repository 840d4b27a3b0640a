"""Looking at a chart without changing anything: lint and explanations."""

from prism.statechart.inspection._explain import Candidate, Explanation
from prism.statechart.inspection._lint import Finding

__all__ = ["Candidate", "Explanation", "Finding"]
