"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from prism.errors import MissingExtraError

try:
    import polars as _polars  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "polars":
        raise
    raise MissingExtraError("science", _error.name) from None

from prism.runs._policy_file import Cell, Logit, Policy, PolicySource, RatioTest, Unidentified
from prism.science._arms import arm_effects
from prism.science._batch import (
    Batch,
    BatchObserver,
    BatchRun,
    BatchStatus,
    batch,
    read_batch,
    resume_batch,
)
from prism.science._calibrate import calibrate
from prism.science._compare import compare
from prism.science._comparison import ComparedGroup, ComparedRun, Comparison, Difference
from prism.science._divergence import divergence, divergence_figure
from prism.science._plan import Configuration, Plan
from prism.science._policy_tables import (
    policy_coefficients,
    policy_probabilities,
    policy_tests,
    policy_unidentified,
)
from prism.science._presets import preset_figures, preset_runs
from prism.science._rerun import Parted, Rerun, read_change, rerun, resume_rerun
from prism.science._sensitivity import (
    Sensitivity,
    SensitivityMethod,
    read_sensitivity,
    resume_sensitivity,
    sensitivity,
)
from prism.science._steady import Steady, mser, steadiness, steady_state
from prism.science._tails import Tail, fit_tail, tails

__all__ = [
    "Batch",
    "BatchObserver",
    "BatchRun",
    "BatchStatus",
    "Cell",
    "ComparedGroup",
    "ComparedRun",
    "Comparison",
    "Configuration",
    "Difference",
    "Logit",
    "Parted",
    "Plan",
    "Policy",
    "PolicySource",
    "RatioTest",
    "Rerun",
    "Sensitivity",
    "SensitivityMethod",
    "Steady",
    "Tail",
    "Unidentified",
    "arm_effects",
    "batch",
    "calibrate",
    "compare",
    "divergence",
    "divergence_figure",
    "fit_tail",
    "mser",
    "policy_coefficients",
    "policy_probabilities",
    "policy_tests",
    "policy_unidentified",
    "preset_figures",
    "preset_runs",
    "read_batch",
    "read_change",
    "read_sensitivity",
    "rerun",
    "resume_batch",
    "resume_rerun",
    "resume_sensitivity",
    "sensitivity",
    "steadiness",
    "steady_state",
    "tails",
]
