"""Small worlds to copy and change; each is imported when its name is asked for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prism.worlds.examples.council import Council
    from prism.worlds.examples.lake import Lake
    from prism.worlds.examples.market import Market
    from prism.worlds.examples.rumour import Rumour
    from prism.worlds.examples.schelling import Schelling
    from prism.worlds.examples.vaccination import Vaccination

__all__ = ["Council", "Lake", "Market", "Rumour", "Schelling", "Vaccination"]

# Two of them bring workflows and thinking agents with them, which the others do without.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Return a world from its module."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{name.lower()}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
