"""Small worlds to copy and change; each is imported when its name is asked for."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:  # two of them load workflows and thinking agents, which the others do not need
    from prism.worlds.examples.bazaar import Bazaar
    from prism.worlds.examples.council import Council
    from prism.worlds.examples.day import Day
    from prism.worlds.examples.epidemic import Epidemic
    from prism.worlds.examples.lake import Lake
    from prism.worlds.examples.market import Market
    from prism.worlds.examples.rumour import Rumour
    from prism.worlds.examples.schelling import Schelling
    from prism.worlds.examples.threshold import Threshold
    from prism.worlds.examples.vaccination import Vaccination
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Bazaar",
    "Council",
    "Day",
    "Epidemic",
    "Lake",
    "Market",
    "Rumour",
    "Schelling",
    "Threshold",
    "Vaccination",
]
