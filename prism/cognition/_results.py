"""The results of a run of cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from prism.cognition._agent import CognitiveAgent
from prism.cognition._cycle import Cycle


@dataclass(frozen=True, slots=True)
class CognitiveResults:
    """The results of a run of cycles.

    Args:
        agent_id: The agent.
        cycles: Cycles that the run had.
        cycle: Cycles over the memory's life.
        state: The agent's final state.
        transitions: Transitions between states.
        outcomes: How often cycles were ``done``, ``refused``, ``unusable`` or ``failed``.
        actions: How often actions were ``done``, ``missing`` or ``refused``.
        pagings: How often memories were moved to keep within a limit, or because a reply asked.
        tokens: Tokens that the model read and wrote, if known.
        memories: Entries of working memory at the end.
        thoughts: Entries of the log at the end.
        stored: Entries of storage at the end.
        stopped: Why the run ended early; None if it did not.
    """

    agent_id: str
    cycles: int
    cycle: int
    state: str
    transitions: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    pagings: int = 0
    tokens: int = 0
    memories: int = 0
    thoughts: int = 0
    stored: int = 0
    stopped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self)

    def totals(self) -> dict[str, int]:
        """Return the counts that end the log of every run."""
        return {"agent_ticks": self.cycles, "transitions": self.transitions}

    @classmethod
    def of(
        cls, agent: CognitiveAgent, cycles: Sequence[Cycle], stopped: str | None = None
    ) -> CognitiveResults:
        """Return the results of an agent's cycles.

        Args:
            agent: The agent, after the last of them.
            cycles: The cycles.
            stopped: Why the run ended early, if it did.
        """
        return cls(
            agent_id=agent.agent_id,
            cycles=len(cycles),
            cycle=agent.memory.cycle,
            state=agent.state.value,
            transitions=sum(cycle.transitions for cycle in cycles),
            outcomes=_counted(cycle.outcome for cycle in cycles),
            actions=_counted(c.action.outcome for c in cycles if c.action is not None),
            pagings=sum(len(cycle.paged) for cycle in cycles),
            tokens=sum(cycle.cost.tokens for cycle in cycles if cycle.cost is not None),
            memories=len(agent.memory.working),
            thoughts=len(agent.memory.thoughts),
            stored=agent.memory.stored_count,
            stopped=stopped,
        )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
