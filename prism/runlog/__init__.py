"""The run as a log: event names, the writer, and the simulated clock."""

from prism.runlog.clock import SimulatedClock
from prism.runlog.configuration import configure
from prism.runlog.replay import ReplayReasoner
from prism.runlog.writer import RunLog

__all__ = ["ReplayReasoner", "RunLog", "SimulatedClock", "configure"]
