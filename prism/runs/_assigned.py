"""Models by the kind of agent: what is assigned to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal, get_args

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


Later = Mapping[str, ModelAssignment]
"""Models of the course of a run, by what the log calls them."""

NO_LATER: Later = MappingProxyType({})


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
            if _is_own_archetype(each):
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


def _is_own_archetype(each: ModelAssignment) -> bool:
    if each.by != "archetype":
        return False

    from prism.agents import ARCHETYPES

    return each.name in ARCHETYPES


class ModelSwitch:
    """Returns the name of who answers for an agent: as a run began, until it is switched.

    Args:
        choose: Who answers as the run begins.
        later: Names of those to whom it may be switched.
        check: Called with the number of agents by name when the run begins, without the later ones.
    """

    def __init__(
        self,
        choose: Callable[[Any], str],
        later: Iterable[str],
        check: Callable[[Mapping[str, int]], object] | None = None,
    ) -> None:
        self._choose = choose
        self._later = frozenset(later)
        self._check = check
        self._switched: dict[str, str] = {}

    def __call__(self, agent: Any) -> str:
        """Return who answers for an agent, which may be given by its id."""
        if self._switched:
            agent_id = agent if isinstance(agent, str) else name_or_address(agent)
            if agent_id in self._switched:
                return self._switched[agent_id]

        return self._choose(agent)

    def is_switched(self, agent: Any) -> bool:
        """Return whether somebody else answers for an agent than as the run began."""
        agent_id = agent if isinstance(agent, str) else name_or_address(agent)
        return agent_id in self._switched

    def switch(self, title: str, agent_ids: Iterable[str]) -> None:
        """Have somebody else answer for some agents from now on."""
        self._switched.update(dict.fromkeys(agent_ids, title))

    def check(self, counts: Mapping[str, int]) -> None:
        """Check the models that a run begins with; the later ones are for nobody yet."""
        if self._check is not None:
            self._check({name: count for name, count in counts.items() if name not in self._later})
