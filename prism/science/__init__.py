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

__all__ = [
    "Batch",
    "BatchObserver",
    "BatchRun",
    "BatchStatus",
    "Configuration",
    "Plan",
    "batch",
    "read_batch",
    "resume_batch",
]
