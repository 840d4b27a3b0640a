"""Random numbers that depend on a key, not on the order in which they are drawn."""

from prism.randomness.stream import RandomStream, Taken, index_at, total_of

__all__ = ["RandomStream", "Taken", "index_at", "total_of"]
