"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from prism.runs._policy_file import Cell, Logit, Policy, PolicySource, RatioTest, Unidentified
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
from prism.science._divergence import divergence
from prism.science._divergence_figure import divergence_figure
from prism.science._plan import Configuration, Plan
from prism.science._policy_tables import (
    policy_coefficients,
    policy_probabilities,
    policy_tests,
    policy_unidentified,
)
from prism.science._rerun import Parted, Rerun, read_change, rerun, resume_rerun

__all__ = [
    "Batch",
    "BatchObserver",
    "BatchRun",
    "BatchStatus",
    "Cell",
    "Configuration",
    "Logit",
    "Parted",
    "Plan",
    "Policy",
    "PolicySource",
    "RatioTest",
    "Rerun",
    "Unidentified",
    "batch",
    "calibrate",
    "divergence",
    "divergence_figure",
    "policy_coefficients",
    "policy_probabilities",
    "policy_tests",
    "policy_unidentified",
    "read_batch",
    "read_change",
    "rerun",
    "resume_batch",
    "resume_rerun",
]
