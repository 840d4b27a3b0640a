"""The version of prism."""

__version__ = "0.1.0"
