"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from prism.science._steady import Steady, geweke, mser, steadiness, steady_state
from prism.science._tails import Tail, fit_tail, tails

__all__ = [
    "Steady",
    "Tail",
    "fit_tail",
    "geweke",
    "mser",
    "steadiness",
    "steady_state",
    "tails",
]
