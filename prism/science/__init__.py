"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from prism.science._batch import (
    Batch,
    BatchObserver,
    BatchRun,
    BatchStatus,
    batch,
    read_batch,
    resume_batch,
)
from prism.science._plan import Configuration, Plan
from prism.science._sensitivity import (
    Sensitivity,
    SensitivityMethod,
    read_sensitivity,
    resume_sensitivity,
    sensitivity,
)

__all__ = [
    "Batch",
    "BatchObserver",
    "BatchRun",
    "BatchStatus",
    "Configuration",
    "Plan",
    "Sensitivity",
    "SensitivityMethod",
    "batch",
    "read_batch",
    "read_sensitivity",
    "resume_batch",
    "resume_sensitivity",
    "sensitivity",
]
