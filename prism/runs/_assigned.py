"""Models for some of the agents: which agent gets which model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from prism.llm._assignments import BYS, ModelAssignment
from prism.statechart.names import agent_name

ALL_OTHERS = "all others"
"""The title of agents that use the run's model."""

Warn = Callable[[str], object]


Later = Mapping[str, ModelAssignment]
"""Models to which a run switches later, by their names in the log."""

NO_LATER: Later = MappingProxyType({})


class Assigned:
    """Finds the assignment of an agent, and assignments that match no agent.

    Args:
        assignments: The assignments.
        chart: Name of the chart of agents that do not name one.
        warn: Called for an archetype that no agent of the run has.
    """

    def __init__(
        self, assignments: Sequence[ModelAssignment], chart: str | None, warn: Warn
    ) -> None:
        ranked = sorted(assignments, key=lambda each: BYS.index(each.by))
        self._ranked = ranked
        self._chart = chart
        self._warn = warn

    def __call__(self, agent: Any) -> str:
        """Return the title of an agent's assignment."""
        found = (each.title for each in self._ranked if self._fits(each, agent))
        return next(found, ALL_OTHERS)

    def check(self, counts: Mapping[str, int]) -> None:
        """Refuse assignments that match no agent of the run, since they may be misspelt.

        Args:
            counts: Number of agents by title.

        Raises:
            InputError: If there is one. For one of prism's own archetypes, there is only a warning.
        """
        for each in self._ranked:
            if counts.get(each.title):
                continue
            if _is_own_archetype(each):
                self._warn(str(each.error("no agent in this run has this archetype")))
            else:
                raise each.error(
                    "matches no agent of this run, or only agents with another table: correct "
                    "the name, or leave it out"
                )

    def _fits(self, each: ModelAssignment, agent: Any) -> bool:
        if each.by == "agent":
            name = agent if isinstance(agent, str) else agent_name(agent)
            return fnmatchcase(name, each.name)
        if each.by == "archetype":
            archetype = getattr(agent, "archetype", None)
            return each.name == getattr(archetype, "name", archetype)
        if each.by == "kind":
            return each.name == type(agent).__name__

        own = getattr(agent, "chart", None)
        return each.name == getattr(own, "name", self._chart)


def _is_own_archetype(each: ModelAssignment) -> bool:
    if each.by != "archetype":
        return False

    from prism.agents import ARCHETYPES

    return each.name in ARCHETYPES
