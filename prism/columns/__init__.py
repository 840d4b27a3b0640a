"""Worlds in columns: a million agents, compiled from the world's own class.

``Run(world, 1_000_000, columns=True)`` looks this room up; nobody needs to import it.

Needs the extra ``columns``: ``pip install '.[columns]'`` in a checkout.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.columns._check import compare_engines
    from prism.columns._unit import problems_of
else:
    __getattr__, __dir__ = lazy_names(__name__, extra="columns")

__all__ = ["compare_engines", "problems_of"]
