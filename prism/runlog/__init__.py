"""The run as a log: event names, the writer, and the simulated clock."""

from prism.runlog.clock import SimulatedClock
from prism.runlog.writer import RunLog

__all__ = ["RunLog", "SimulatedClock"]
