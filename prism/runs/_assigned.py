"""Models by the kind of agent: what is assigned to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from prism.agents import ARCHETYPES
from prism.errors import InputError
from prism.runs._settings import Hedge, ModelSettings, given_settings
from prism.statechart._identity import name_or_address

By = Literal["agent", "archetype", "kind", "chart"]

ALL_OTHERS = "all others"
"""Whose model is the one of the run."""

BYS: tuple[By, ...] = get_args(By)
"""What agents can be told apart by; what comes first goes before."""

Warn = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class ModelAssignment(ModelSettings):
    """A model for some of a run's agents; None stands for what the run says for all.

    Agents are told apart by what they are called (``agent``, a pattern such as ``user_1*``), by
    their ``archetype``, by their ``kind`` (the name of their class), or by their ``chart``. Where
    several fit an agent, that order decides, then the order in which they are given.

    Args:
        by: What agents are told apart by.
        name: Name of the archetype, kind or chart, or a pattern of names.
        model: As for `ModelOptions`, and so are the other settings: ``host`` (the servers are not
            those of the run where ``server`` is another), ``server``, ``mode``, ``pick``,
            ``think``, ``temperature``, ``concurrency``, ``timeout``, ``patience`` and ``hedge``.
        place: Where it was read, for messages.

    Raises:
        InputError: If agents cannot be told apart by that, or a setting has an invalid value.
    """

    by: By = field(kw_only=False)
    name: str = field(kw_only=False)
    hedge: Hedge = None
    place: tuple[str, int | None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse an unknown way to tell agents apart, and invalid settings."""
        if self.by not in BYS:
            raise InputError(f"must be one of {', '.join(BYS)}, got {self.by!r}", field="by")

        ModelSettings.__post_init__(self)

    @property
    def title(self) -> str:
        """What the run's log calls those that it is for, such as ``archetype lurker``."""
        return f"{self.by} {self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        """What it says otherwise than the run."""
        return given_settings(self)

    def error(self, problem: str, setting: str | None = None) -> InputError:
        """Return an error that says where this was read."""
        path, line = self.place or (None, None)
        name = f"{self.by}.{self.name}" + (f".{setting}" if setting else "")
        return InputError(problem, path=path, line=line, field=name)

    def to_config(self) -> dict[str, Any]:
        """Return this as plain data."""
        told = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.settings.items()
        }
        return {"by": self.by, "name": self.name, **told}


class Assigned:
    """Finds for an agent what it is assigned to, and what was assigned to nobody.

    Args:
        assignments: What is assigned.
        chart: Name of the chart of agents that do not say it.
        warn: Called for an archetype that nobody in the run has.
    """

    def __init__(
        self, assignments: Sequence[ModelAssignment], chart: str | None, warn: Warn
    ) -> None:
        ranked = sorted(assignments, key=lambda each: BYS.index(each.by))
        self._ranked = ranked
        self._chart = chart
        self._warn = warn

    def __call__(self, agent: Any) -> str:
        """Return the title of what an agent is assigned to."""
        found = (each.title for each in self._ranked if self._fits(each, agent))
        return next(found, ALL_OTHERS)

    def check(self, counts: Mapping[str, int]) -> None:
        """Refuse what is assigned to no agent of the run, as it may be misspelt.

        Args:
            counts: How many agents there are by title.

        Raises:
            InputError: If there is such a thing; an archetype of prism's own is only told of.
        """
        for each in self._ranked:
            if counts.get(each.title):
                continue
            if each.by == "archetype" and each.name in ARCHETYPES:
                self._warn(str(each.error("nobody in this run has this archetype")))
            else:
                raise each.error(
                    "is for no agent of this run, or only for agents that another table is for: "
                    "correct the name, or leave it out"
                )

    def _fits(self, each: ModelAssignment, agent: Any) -> bool:
        if each.by == "agent":
            name = agent if isinstance(agent, str) else name_or_address(agent)
            return fnmatchcase(name, each.name)
        if each.by == "archetype":
            archetype = getattr(agent, "archetype", None)
            return each.name == getattr(archetype, "name", archetype)
        if each.by == "kind":
            return each.name == type(agent).__name__

        own = getattr(agent, "chart", None)
        return each.name == getattr(own, "name", self._chart)
