"""The run as a log: writing it, replaying it, and the simulated clock."""

from typing import TYPE_CHECKING

from prism.runlog._clock import SimulatedClock
from prism.runlog._prompts import PromptLog, read_prompts
from prism.runlog._replay import ReplayReasoner, ReplayWriter
from prism.runlog._writer import RunLog

if TYPE_CHECKING:
    from prism.runlog._configuration import configure

__all__ = [
    "PromptLog",
    "ReplayReasoner",
    "ReplayWriter",
    "RunLog",
    "SimulatedClock",
    "configure",
    "read_prompts",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Return `configure`, which alone needs structlog to be loaded."""
        if name != "configure":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from prism.runlog._configuration import configure

        globals()[name] = configure
        return configure

    def __dir__():
        return sorted({*globals(), *__all__})
