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
    from prism.runs._policy_file import Cell, Logit, Policy, PolicySource, RatioTest, Unidentified
    from prism.science._batch import Batch, batch, merge_batches, read_batch, resume_batch
    from prism.science._batch_door import BatchObserver, BatchRun, BatchStatus
    from prism.science._calibrate import calibrate
    from prism.science._compare import compare
    from prism.science._comparison import ComparedGroup, ComparedRun, Comparison, Difference
    from prism.science._divergence import divergence, divergence_figure
    from prism.science._fit import Fit, fit, read_fit, resume_fit
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
else:
    # a process of a batch only makes runs, and needs neither tables nor plans
    __getattr__, __dir__ = lazy_names(__name__)

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
    "Fit",
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
    "batch",
    "calibrate",
    "compare",
    "divergence",
    "divergence_figure",
    "fit",
    "fit_tail",
    "merge_batches",
    "mser",
    "policy_coefficients",
    "policy_probabilities",
    "policy_tests",
    "policy_unidentified",
    "preset_figures",
    "preset_runs",
    "read_batch",
    "read_change",
    "read_fit",
    "read_sensitivity",
    "rerun",
    "resume_batch",
    "resume_fit",
    "resume_rerun",
    "resume_sensitivity",
    "sensitivity",
    "steadiness",
    "steady_state",
    "tails",
]
