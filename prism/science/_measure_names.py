"""The measures that the runs of a world will have, known before any of them begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prism.files.declarations import meant
from prism.social import Feed
from prism.social._results import count_names
from prism.worlds import World
from prism.worlds._kinds import measures_of, parts_of
from prism.worlds._results import WorldResults
from prism.worlds._world import kinds_of

OF_POSTS = ("score", "likes", "dislikes", "replies", "reshares", "like_chance")
"""Measures of posts that a run has assigned to arms."""

_IN_TABLES = ("states.", "timeouts.", "fallbacks.", "texts.", "measure.", "total.")
_OF_LOGS = ("share_", "ticks_in_", "model_")
"""Prefixes of names that depend on the states and servers of a run."""


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


def unknown_measure(name: str, cls: type[World[Any]], *, only_tables: bool) -> str | None:
    """Return what is wrong with the name of a measure; None if runs of the world can have it.

    Args:
        name: The name.
        cls: The world.
        only_tables: Whether it must be a column of ``results`` or ``rounds``, and not one of what
            `prism.science.compare` reads in logs as well.
    """
    own = parts_of(cls).measures
    known = [*own, *_columns_of(cls)]
    of_agents = [] if only_tables else [*_of_agents(cls)]
    in_logs = [] if only_tables else [*_in_logs(cls), *of_agents]
    prefixes = _IN_TABLES if only_tables else (*_IN_TABLES, *_OF_LOGS)
    if name in (*known, *in_logs) or name.startswith(prefixes):
        return None

    close = meant(name, (*known, *in_logs))
    guess = "" if close is None else f" (did you mean {close!r}?)"
    others = ", and those of prism log run_measures" if in_logs else ""

    listed = ", ".join([*known, *of_agents])
    return f"{name!r} is not a measure of the runs{guess}; there are {listed}{others}"


def _columns_of(cls: type[World[Any]]) -> Iterator[str]:
    """Yield the columns of a batch's tables that every run of a world has."""
    if issubclass(cls, Feed):
        yield from count_names()
        yield from _of_runs()
    else:
        totals = WorldResults(0, ()).totals()
        yield from (name for name, total in totals.items() if isinstance(total, int))


def _in_logs(cls: type[World[Any]]) -> Iterator[str]:
    """Yield what is compared besides, as far as it can be known before."""
    yield from _of_runs()
    yield from (f"{name}_mean" for name in parts_of(cls).measures)
    yield from OF_POSTS
    yield from ("posts_of_cascade", "posts_of_agent")


def _of_agents(cls: type[World[Any]]) -> Iterator[str]:
    """Yield the measures of agents, whose means are compared."""
    for kind in kinds_of(cls):
        yield from (f"{name}_of_{kind.__name__.lower()}" for name in measures_of(kind))


def _of_runs() -> tuple[str, ...]:
    return MEASURES
