"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.runs.policy_file import Policy
    from prism.science._batch import BatchObserver, batch, estimate_batch, read_batch, resume_batch
    from prism.science._calibrate import Calibration, calibrate
    from prism.science._compare import Comparison, compare
    from prism.science._differences import Difference
    from prism.science._fit import Fit, fit, read_fit
    from prism.science._measured_runs import ComparedRun
    from prism.science._plan import Configuration, Plan
    from prism.science._rerun import Rerun, rerun
    from prism.science._sensitivity import (
        Sensitivity,
        SensitivityMethod,
        read_sensitivity,
        sensitivity,
    )
    from prism.science.batch_tables import Batch, BatchRun, BatchStatus
else:
    # a process of a batch only makes runs, and needs neither tables nor plans
    __getattr__, __dir__ = lazy_names(__name__, extra="science")

__all__ = [
    "Batch",
    "BatchObserver",
    "BatchRun",
    "BatchStatus",
    "Calibration",
    "ComparedRun",
    "Comparison",
    "Configuration",
    "Difference",
    "Fit",
    "Plan",
    "Policy",
    "Rerun",
    "Sensitivity",
    "SensitivityMethod",
    "batch",
    "calibrate",
    "compare",
    "estimate_batch",
    "fit",
    "read_batch",
    "read_fit",
    "read_sensitivity",
    "rerun",
    "resume_batch",
    "sensitivity",
]
