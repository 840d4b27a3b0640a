"""Events: their names, the loggers they go to, and instruments that observe them.

`prism.telemetry.events` has the names of all events.
"""

from prism.telemetry.instruments import Instrument, ModelSpans, instrumented
from prism.telemetry.loggers import LOGGER_NAME, EventLogger

__all__ = ["LOGGER_NAME", "EventLogger", "Instrument", "ModelSpans", "instrumented"]
