"""Another model in the course of a run: who answers for an agent from now on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prism.statechart._identity import name_or_address
from prism.statechart.reasoner._by_agent import ReasonerByAgent


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


def switch_of(reasoner: Any) -> ModelSwitch | None:
    """Return what switches the models of a reasoner; None if it has no later ones."""
    choose = reasoner.choose if isinstance(reasoner, ReasonerByAgent) else None
    return choose if isinstance(choose, ModelSwitch) else None
