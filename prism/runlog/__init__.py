"""The run as a log: writing it, reading it, and the simulated clock."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.runlog._configuration import configure
    from prism.runlog._reader import read_answers
    from prism.runlog._writer import RunLog, SimulatedClock
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "RunLog",
    "SimulatedClock",
    "configure",
    "read_answers",
]
