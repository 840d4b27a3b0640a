"""What a run is, and the folder that keeps it."""

from prism.runs._folder import RunFolder

__all__ = ["RunFolder"]
