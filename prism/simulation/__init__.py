"""Rounds and ticks, and when the answers to open questions are carried out."""

from prism.simulation._deciding import ManyDecider

__all__ = ["ManyDecider"]
