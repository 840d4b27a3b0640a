"""Small worlds to copy and change."""

from prism.worlds.examples.market import Market
from prism.worlds.examples.rumour import Rumour
from prism.worlds.examples.schelling import Schelling
from prism.worlds.examples.vaccination import Vaccination

__all__ = ["Market", "Rumour", "Schelling", "Vaccination"]
