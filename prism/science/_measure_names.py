"""The measures that the runs of a world will have, known before any of them begins."""

from __future__ import annotations

from typing import Any

from prism.errors import PrismError
from prism.files.declarations import meant
from prism.social import Feed
from prism.worlds import World
from prism.worlds._addresses import address_of, load_world
from prism.worlds._results import WorldResults
from prism.worlds._world import MEASURE, marked

_IN_TABLES = ("states.", "timeouts.", "fallbacks.", "texts.", "measure.", "total.")
"""Prefixes of columns that depend on the states and servers of a run."""

MEASURES = (
    *("agents", "agent_ticks", "transitions", "timeouts", "decisions", "fallbacks"),
    *("posts", "replies", "reshares", "likes", "views", "browsing"),
    *("silent", "writing", "creating", "liking", "written"),
    *("top_1", "next_9", "other_90", "top_10", "gini"),
    *("cascades", "singletons", "beyond_one_degree", "cascade_size", "cascade_depth"),
    *("largest_cascade", "deepest_cascade", "virality", "median_place"),
    *("reshare_singletons", "reshare_beyond_one_degree", "deepest_reshare"),
)
"""The columns of ``run_measures`` in `prism.analysis`, without the measures of a world."""


def unknown_measure(name: str, cls: type[World[Any]]) -> str | None:
    """Return what is wrong with a column of ``results`` or ``rounds``; None if it will be there.

    Args:
        name: The column.
        cls: The world of the runs.
    """
    totals = WorldResults(0, ()).totals().items()
    known = [*marked(cls, MEASURE), *(total for total, n in totals if isinstance(n, int))]
    if issubclass(cls, Feed):
        known += ["posts", "replies", "reshares", "likes", *MEASURES]
    if name in known or name.startswith(_IN_TABLES):
        return None

    close = meant(name, known)
    guess = "" if close is None else f" (did you mean {close!r}?)"
    return f"{name!r} is not a measure of the runs{guess}; there are {', '.join(known)}"


def titles_of(world: object) -> dict[str, str]:
    """Return the measures of a world in words with their units; empty if it cannot be loaded.

    Args:
        world: Its address, as ``run.json`` and plans have it.
    """
    try:
        cls = load_world(address_of(str(world)))
    except PrismError:
        return {}
    titles = {name: getattr(getattr(cls, name), "title", "") for name in marked(cls, MEASURE)}
    return {name: title for name, title in titles.items() if title}
