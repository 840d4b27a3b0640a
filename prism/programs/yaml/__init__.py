"""Agents written in YAML: a state machine, and steps that ask a model, run code, or choose.

`Workflow` reads a file, and `WorkflowAgent` carries it out a turn at a time inside an application.
`prism.worlds.Run` runs such a file on its own, and such a run can be kept, resumed and repeated.

Needs the extra ``programs``: ``pip install '.[programs]'`` in a checkout.
"""

from prism.files.source import Problem
from prism.programs.yaml._agent import Action, WorkflowAgent
from prism.programs.yaml._workflow import Workflow

__all__ = ["Action", "Problem", "Workflow", "WorkflowAgent"]
