"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism.errors import MissingExtraError

if find_spec("polars") is None:
    raise MissingExtraError("science", "polars")

if TYPE_CHECKING:
    from prism.runs._policy_file import Policy
    from prism.science._batch import Batch, batch, read_batch, resume_batch
    from prism.science._batch_door import BatchObserver, BatchRun, BatchStatus
    from prism.science._calibrate import Calibration, calibrate
    from prism.science._compare import compare
    from prism.science._comparison import ComparedGroup, ComparedRun, Comparison, Difference
    from prism.science._fit import Fit, fit, read_fit, resume_fit
    from prism.science._plan import Configuration, Plan
    from prism.science._presets import preset_figures, preset_runs
    from prism.science._rerun import Parted, Rerun, rerun, resume_rerun
    from prism.science._sensitivity import (
        Sensitivity,
        SensitivityMethod,
        read_sensitivity,
        resume_sensitivity,
        sensitivity,
    )
else:
    # a process of a batch only makes runs, and needs neither tables nor plans
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Batch",
    "BatchObserver",
    "BatchRun",
    "BatchStatus",
    "Calibration",
    "ComparedGroup",
    "ComparedRun",
    "Comparison",
    "Configuration",
    "Difference",
    "Fit",
    "Parted",
    "Plan",
    "Policy",
    "Rerun",
    "Sensitivity",
    "SensitivityMethod",
    "batch",
    "calibrate",
    "compare",
    "fit",
    "preset_figures",
    "preset_runs",
    "read_batch",
    "read_fit",
    "read_sensitivity",
    "rerun",
    "resume_batch",
    "resume_fit",
    "resume_rerun",
    "resume_sensitivity",
    "sensitivity",
]
