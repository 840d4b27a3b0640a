"""Small worlds to copy and change, each imported on first use."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:  # some load workflows and thinking agents, which the others do not need
    from prism.examples.council import Council
    from prism.examples.day import Day
    from prism.examples.epidemic import Epidemic
    from prism.examples.haggle import Haggle
    from prism.examples.lake import Lake
    from prism.examples.market import Market
    from prism.examples.meadow import Meadow
    from prism.examples.rumour import Rumour
    from prism.examples.schelling import Schelling
    from prism.examples.vaccination import Vaccination
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Council",
    "Day",
    "Epidemic",
    "Haggle",
    "Lake",
    "Market",
    "Meadow",
    "Rumour",
    "Schelling",
    "Vaccination",
]
