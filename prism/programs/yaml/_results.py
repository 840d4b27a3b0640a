"""The results of a run of turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from prism.programs._layer import StepRun, Turn
from prism.programs.yaml._agent import WorkflowAgent


@dataclass(frozen=True, slots=True)
class Refusal:
    """A transition that was refused for one reason, once or more often.

    Args:
        step: The step that asked for it.
        state: State that it would have left.
        target: State that the step named; None if the model's reply was not one of the answers.
        reason: The condition that was false or failed, or the answers that the reply did not match.
        times: How often.
    """

    step: str
    state: str
    target: str | None
    reason: str
    times: int


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
        refused: Refused transitions, the most frequent first.
        actions: How often actions of the application were ``done`` or ``failed``.
        action_failure: Why the latest failed action failed.
        last_skipped: The latest step that failed and was skipped, and why it failed.
        tokens: Tokens that the model read and wrote, if known.
        context: Its variables at the end.
    """

    agent_id: str
    turns: int
    state: str
    failure: str | None = None
    transitions: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    actions: Mapping[str, int] = field(default_factory=dict)
    action_failure: str | None = None
    tokens: int = 0
    context: Mapping[str, Any] = field(default_factory=dict)
    has_finished: bool = False
    last_skipped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self) | {"refused": list(map(asdict, self.refused))}

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
        costs = [step.cost for step in steps if step.cost is not None]

        return cls(
            agent_id=agent.agent_id,
            turns=len(turns),
            state=agent.state.value,
            failure=agent.failure,
            has_finished=agent.has_finished,
            transitions=sum(turn.transitions for turn in turns),
            steps=dict(sorted(Counter(step.outcome for step in steps).items())),
            refused=_refused(steps),
            actions=agent.actions.counts,
            action_failure=agent.actions.last_failure,
            tokens=sum(cost.tokens for cost in costs),
            context=dict(agent.context),
            last_skipped=_last_skipped(steps),
        )


def _refused(steps: Iterable[StepRun]) -> tuple[Refusal, ...]:
    counts = Counter(
        (step.step, step.state, step.target, step.reason or "")
        for step in steps
        if step.outcome == "done" and step.reason is not None
    )
    return tuple(Refusal(*refused, times=times) for refused, times in counts.most_common())


def _last_skipped(steps: Iterable[StepRun]) -> str | None:
    skipped = [f"{step.step}: {step.reason}" for step in steps if step.outcome == "skipped"]
    return skipped[-1] if skipped else None
