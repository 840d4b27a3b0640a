"""Rounds, ticks and the order of agents, of any world: it knows no agent class and no state."""

from prism.simulation._loop import Loop
from prism.simulation._world import BatchDecider, Remembering, Summary, World, WorldResults

__all__ = ["BatchDecider", "Loop", "Remembering", "Summary", "World", "WorldResults"]
