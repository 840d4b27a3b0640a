"""A workflow's transitions as a statechart: what a step proposes, the chart decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from prism.statechart import Statechart, Transition, state_enum
from prism.telemetry._loggers import EventLogger
from prism.workflow._document._definition import (
    ANY_STATE,
    AllowedTransition,
    WorkflowDefinition,
)
from prism.workflow._sandbox._conditions import Condition, ConditionError

STEP = "step"
"""The one trigger of a workflow's chart: a step names the target."""


def chart_of(
    definition: WorkflowDefinition, logger: EventLogger | None = None
) -> Statechart[StrEnum]:
    """Return the statechart of a workflow.

    Where any state may follow any, only those transitions are written out that a step can ask for:
    for 200 states it would be 40,000.

    Args:
        definition: The workflow.
        logger: Where its transitions go.
    """
    states = state_enum(_enum_name(definition.name), definition.states)
    allowed = definition.transitions or _asked_for(definition)

    return Statechart(
        states,
        [
            Transition(
                STEP,
                "*" if item.source == ANY_STATE else states(item.source),
                states(item.target),
                None if item.condition is None else _guard(item.condition),
            )
            for item in allowed
        ],
        initial=states(definition.initial),
        name=definition.name,
        logger=logger,
    )


def _asked_for(definition: WorkflowDefinition) -> Iterator[AllowedTransition]:
    pairs = {
        (source, target): None
        for step in definition.steps
        for target in step.targets
        for source in (definition.states if step.in_state is None else sorted(step.in_state))
    }
    for source, target in pairs:
        yield AllowedTransition(source, target)


def _guard(condition: Condition) -> Callable[[Any, Any], bool]:
    """Return a condition as a guard, which tells the agent why it refuses."""

    def guard(agent: Any, _context: Any) -> bool:
        try:
            holds = condition.evaluate(agent.variables)
        except ConditionError as error:
            agent.note_refusal(f"the condition {condition.source!r} failed: {error}")
            return False

        if not holds:
            agent.note_refusal(f"the condition {condition.source!r} is false")

        return holds

    guard.__name__ = guard.__qualname__ = condition.source

    return guard


def _enum_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace("-", " ").split()) or "Workflow"
