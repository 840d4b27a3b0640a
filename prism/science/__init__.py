"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from prism.science._compare import compare
from prism.science._compared_runs import ComparedRun
from prism.science._comparison import ComparedGroup, Comparison, Difference

__all__: list[str] = ["ComparedGroup", "ComparedRun", "Comparison", "Difference", "compare"]
