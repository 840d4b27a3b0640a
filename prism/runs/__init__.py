"""Runs that are kept in a folder: begun, resumed from a checkpoint, and replayed from a log.

Anything can be run so that goes on in rounds and can describe itself as plain data: see `Runnable`
and `RunOptions`.
"""

from prism.runs._folder import RunFolder
from prism.runs._options import ModelOptions, ReasonerOptions, ReplayOptions
from prism.runs._runnable import Results, Runnable, RunOptions
from prism.runs._running import Observer, Outcome, begin, replay, resume

__all__ = [
    "ModelOptions",
    "Observer",
    "Outcome",
    "ReasonerOptions",
    "ReplayOptions",
    "Results",
    "RunFolder",
    "RunOptions",
    "Runnable",
    "begin",
    "replay",
    "resume",
]
