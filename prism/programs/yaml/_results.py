"""The results of a run of turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from prism.programs._layer import Turn, counted
from prism.programs.yaml._agent import WorkflowAgent


@dataclass(frozen=True, slots=True)
class WorkflowResults:
    """The results of a run of turns.

    Args:
        agent_id: The agent.
        turns: Number of turns that it took.
        state: Its state at the end.
        failure: Why the workflow stopped before the last turn; None if it did not.
        has_finished: Whether that state is a final one, in which a run is complete.
        transitions: Number of transitions that it made, without self-transitions.
        steps: How often steps ran, by their outcome.
        refused: How often transitions were refused, by step, target and reason; the most frequent
            first.
        actions: How often actions of the application were ``done`` or ``failed``.
        tokens: Tokens that the model read and wrote, if known.
        context: Its variables at the end.
    """

    agent_id: str
    turns: int
    state: str
    failure: str | None = None
    has_finished: bool = False
    transitions: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0
    context: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self)

    def totals(self) -> dict[str, int]:
        """Return the counts that end the log of every run."""
        return {"agent_ticks": self.turns, "transitions": self.transitions}

    @classmethod
    def of(cls, agent: WorkflowAgent, turns: Sequence[Turn]) -> Self:
        """Return the results of an agent's turns.

        Args:
            agent: The agent, after the last of them.
            turns: The turns.
        """
        steps = [step for turn in turns for step in turn.steps]
        refused = (
            f"{step.step}: {step.state} -> {step.target or 'nowhere'}: {step.reason}"
            for step in steps
            if step.outcome == "done" and step.reason is not None
        )
        done = agent.actions.successes
        return cls(
            agent.agent_id,
            len(turns),
            agent.state.value,
            agent.failure,
            agent.has_finished,
            sum(turn.transitions for turn in turns),
            steps=counted(step.outcome for step in steps),
            refused=dict(Counter(refused).most_common()),
            actions={
                k: n for k, n in (("done", done), ("failed", agent.actions.number - done)) if n
            },
            tokens=sum(step.cost.tokens for step in steps if step.cost is not None),
            context=dict(agent.context),
        )
