"""Turns in a row: one agent that carries out its workflow, as a run that is kept and repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from prism.runlog import SimulatedClock
from prism.runs._agent_loop import AgentLoop, Event, tokens_of, told_by
from prism.statechart.reasoner._spending import Cost
from prism.statechart.reasoner._texts import BaseWriter
from prism.telemetry._loggers import EventLogger
from prism.telemetry.events import ROUND_ENDED, WORKFLOW_STEP
from prism.workflow._agent import WorkflowAgent
from prism.workflow._steps import StepRun, Turn


@dataclass(frozen=True, slots=True)
class Refusal:
    """A transition that was refused, for one reason.

    Args:
        step: The step that asked for it.
        state: State that it would have left.
        target: State that the step named; None if the reply of a model was none of the answers.
        reason: Which condition was false or failed, or what the reply was none of.
        times: How often.
    """

    step: str
    state: str
    target: str | None
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class WorkflowResults:
    """What came of a run of turns.

    Args:
        agent_id: The agent.
        turns: Turns that it took.
        state: Its state in the end.
        failure: Why the workflow stopped before the last turn; None if it did not.
        has_finished: Whether that state is a final one, in which a run is complete.
        transitions: Transitions that it made, those to the state it was in left out.
        steps: How often steps ran, by their outcome.
        refused: What was refused, and how often: step, state, the target it named, why.
        actions: How often what steps asked the application to do was ``done``, or ``failed``.
        action_failure: Why the last of those failed that failed.
        tokens: Tokens that the model read and wrote, as far as they are known.
        context: Its variables in the end.
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

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for ``run.json``."""
        return asdict(self) | {"refused": list(map(asdict, self.refused))}


class WorkflowLoop(AgentLoop[Turn]):
    """Runs an agent for a number of turns; a turn is a round.

    Args:
        agent: The agent.
        writer: Who writes for it.
        turns: Number of turns.
        seed: Seed of the run.
        logger: Where its events go.
        clock: The run's clock.
    """

    def __init__(
        self,
        agent: WorkflowAgent,
        writer: BaseWriter,
        *,
        turns: int,
        seed: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
    ) -> None:
        super().__init__(writer, rounds=turns, seed=seed, logger=logger, clock=clock)
        self.agent: WorkflowAgent = agent

    def snapshot(self) -> dict[str, Any]:
        """Return what the run is, between two turns, as plain data; the log holds the rest."""
        return {**self.position(), "agent": self.agent.to_dict()}

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Go on where another run of the same options was.

        Args:
            snapshot: What `snapshot` returned there.
            events: Its log until then.
        """
        final = self.agent.workflow.definition.final_states
        self.finished: list[Turn] = list(_turns_of(self.remembered(events), final))
        self.agent.restore(snapshot["agent"])
        self.go_on_from(snapshot)

    def _begin(self) -> None:
        if not self.finished:
            self.announce_start(self.agent.workflow.name, self.agent)

    def _goes_on(self) -> bool:
        return self.agent.failure is None and not self.agent.has_finished

    async def _round(self) -> Turn:
        return await self.agent.turn()

    def _results(self) -> WorkflowResults:
        steps = [step for turn in self.finished for step in turn.steps]

        return WorkflowResults(
            agent_id=self.agent.agent_id,
            turns=len(self.finished),
            state=self.agent.state.value,
            failure=self.agent.failure,
            has_finished=self.agent.has_finished,
            transitions=sum(turn.transitions for turn in self.finished),
            steps=dict(sorted(Counter(step.outcome for step in steps).items())),
            refused=_refused(steps),
            actions=self.agent.actions.counts,
            action_failure=self.agent.actions.last_failure,
            tokens=tokens_of(step.cost for step in steps),
            context=dict(self.agent.context),
        )


def _refused(steps: Iterable[StepRun]) -> tuple[Refusal, ...]:
    counts = Counter(
        (step.step, step.state, step.target, step.reason or "")
        for step in steps
        if step.outcome == "done" and step.reason is not None
    )
    return tuple(Refusal(*refused, times=times) for refused, times in counts.most_common())


def _turns_of(events: Iterable[Event], final_states: frozenset[str]) -> Iterator[Turn]:
    """Return the turns that a log tells of."""
    told = (event for event in events if event["event"] in (WORKFLOW_STEP, ROUND_ENDED))
    for number, group in groupby(told, key=lambda event: int(event["round"])):
        found = list(group)
        steps = tuple(_step_of(event) for event in found if event["event"] == WORKFLOW_STEP)
        (state,) = found[-1]["states"]
        has_stopped = any(step.outcome == "failed" for step in steps)
        yield Turn(number, state, steps, has_stopped, state in final_states)


def _step_of(event: Event) -> StepRun:
    cost = Cost()
    cost.input_tokens, cost.output_tokens = event["input_tokens"], event["output_tokens"]

    return told_by(
        StepRun,
        event,
        kind=event["type"],
        cost=None if event["type"] == "code" else cost,
        unknown=tuple(event["unknown_variables"]),
        # logs of earlier releases do not name what was refused
        target=event.get("target", event["moved_to"]),
    )
