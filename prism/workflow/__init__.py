"""Agents written in YAML: a state machine, and steps that ask a model, run code, or choose.

`Workflow` reads a file, and `WorkflowAgent` carries it out a turn at a time inside an application.
`prism.worlds.Run` runs such a file on its own, and such a run can be kept, resumed and repeated.

Needs the extra ``workflow``: ``pip install '.[workflow]'`` in a checkout.
"""

from prism.files._source import Problem
from prism.workflow._actions import Action, ActionResult
from prism.workflow._agent import WorkflowAgent
from prism.workflow._document._problems import WorkflowFileError
from prism.workflow._results import Refusal, WorkflowResults
from prism.workflow._steps import StepRun, Turn, WorkflowStopped
from prism.workflow._workflow import Workflow

__all__ = [
    "Action",
    "ActionResult",
    "Problem",
    "Refusal",
    "StepRun",
    "Turn",
    "Workflow",
    "WorkflowAgent",
    "WorkflowFileError",
    "WorkflowResults",
    "WorkflowStopped",
]

for _public in (WorkflowFileError, WorkflowStopped):
    # as a traceback shows them
    _public.__module__ = __name__
