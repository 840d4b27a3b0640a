"""Programs: steps on a chart, each of which asks a model at most once, acts, and names a state.

`prism.programs.yaml` reads programs from YAML files; `prism.programs.thinking` has the agent that
thinks, executes and pages. `ProgramAgent` carries out steps of your own.
"""

from prism.programs._layer import ProgramAgent, ProgramResults, Step, StepFailedError, StepRun, Turn

__all__ = ["ProgramAgent", "ProgramResults", "Step", "StepFailedError", "StepRun", "Turn"]
