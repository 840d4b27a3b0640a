"""Events: their names, the loggers they go to, and instruments that observe them.

`prism.telemetry.events` has the names of all events.
"""

from prism.telemetry.instruments import (
    ChartBuilt,
    GuardEvaluated,
    Instrument,
    LogEvent,
    ModelSpans,
    TransitionDetails,
    instrumented,
)
from prism.telemetry.loggers import LOGGER_NAME, EventLogger, StandardLogger

__all__ = [
    "LOGGER_NAME",
    "ChartBuilt",
    "EventLogger",
    "GuardEvaluated",
    "Instrument",
    "LogEvent",
    "ModelSpans",
    "StandardLogger",
    "TransitionDetails",
    "instrumented",
]
