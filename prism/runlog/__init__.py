"""The run as a log: writing it, reading it, and the simulated clock."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.runlog._configuration import configure
    from prism.runlog.reader import read_answers
    from prism.runlog.writer import RunLog, SimulatedClock
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["RunLog", "SimulatedClock", "configure", "read_answers"]
