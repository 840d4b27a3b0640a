"""What prism says: event names, and the loggers they go to.

`prism.telemetry.events` has the names of all events.
"""

from prism.telemetry._loggers import LOGGER_NAME, EventLogger, StandardLogger

__all__ = ["LOGGER_NAME", "EventLogger", "StandardLogger"]
