"""Worlds of a million agents: charts, guards and steps as expressions over arrays of numpy.

Agents act simultaneously: each line of a step is carried out for all of them before the next one.
Needs the extra ``arrays``.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.arrays._charts import ArrayChart
    from prism.arrays._networks import ArrayNetwork, small_world
    from prism.arrays._numbers import Agents, Mask
    from prism.arrays._world import ArrayRound, ArrayWorld
else:
    __getattr__, __dir__ = lazy_names(__name__, extra="arrays")

__all__ = [
    "Agents",
    "ArrayChart",
    "ArrayNetwork",
    "ArrayRound",
    "ArrayWorld",
    "Mask",
    "small_world",
]
