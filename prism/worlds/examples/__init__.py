"""Small worlds to copy and change."""

from prism.worlds.examples.council import Council
from prism.worlds.examples.lake import Lake
from prism.worlds.examples.market import Market
from prism.worlds.examples.rumour import Rumour
from prism.worlds.examples.schelling import Schelling
from prism.worlds.examples.vaccination import Vaccination

__all__ = ["Council", "Lake", "Market", "Rumour", "Schelling", "Vaccination"]
