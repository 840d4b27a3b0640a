"""Events: their names, the loggers they go to, and instruments that observe them.

`prism.telemetry.events` has the names of all events.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism.telemetry._instrument import (
    ChartBuilt,
    GuardEvaluated,
    Instrument,
    LogEvent,
    TransitionDetails,
    instrumented,
)
from prism.telemetry._loggers import LOGGER_NAME, EventLogger, StandardLogger

if TYPE_CHECKING:
    from prism.telemetry._spans import ModelSpans
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
