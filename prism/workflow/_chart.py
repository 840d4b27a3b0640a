"""A workflow's transitions as a statechart: what a step proposes, the chart decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

from prism.expressions import Expression
from prism.files._records import shown_path
from prism.statechart import Statechart, Transition, state_enum
from prism.telemetry.loggers import EventLogger
from prism.workflow._document._definition import (
    ANY_STATE,
    AllowedTransition,
    WorkflowDefinition,
)

STEP = "step"
"""The one trigger of a workflow's chart: a step names the target."""

Clock = Callable[[], float]
Guard = Callable[[Any, Any], bool]
Driving = Callable[[str], Statechart[StrEnum]]


class Charts:
    """The statechart of a workflow: the whole chart, and the parts that drive agents.

    If any of 200 states may follow any other, the whole chart has 40,000 rows, and is only made on
    request, to draw it or to check a log. An agent needs the transitions out of its own state, and
    a chart of these drives it.

    Args:
        definition: The workflow.
    """

    def __init__(self, definition: WorkflowDefinition) -> None:
        self.states: type[StrEnum] = state_enum(_enum_name(definition.name), definition.states)
        self._definition = definition
        self._guards: dict[str, Guard] = {}

    @cached_property
    def whole(self) -> Statechart[StrEnum]:
        """The chart with all transitions."""
        return self.out_of(self._definition.states)

    def driving(self, logger: EventLogger | None, clock: Clock) -> Driving:
        """Return a function that returns a chart with all transitions out of a state.

        Args:
            logger: Where transitions go.
            clock: Times histories.
        """

        @cache
        def bound(state: str) -> Statechart[StrEnum]:
            chart = self.out_of((state,))
            return chart.bound(chart.name, logger, clock)

        return bound

    def out_of(self, sources: Collection[str]) -> Statechart[StrEnum]:
        """Return a chart of all states, with the transitions out of some."""
        definition = self._definition
        return Statechart(
            self.states,
            self._transitions(sources),
            initial=self.states(definition.initial),
            name=definition.name,
            final_states=map(self.states, definition.final_states),
        )

    def _transitions(self, sources: Collection[str]) -> Iterator[Transition[StrEnum]]:
        definition = self._definition
        left = [state for state in sources if state not in definition.final_states]
        for item in definition.transitions or self._asked_for_in(left):
            alone = [item.source] if item.source in sources else []
            for source in left if item.source == ANY_STATE else alone:
                guard = None
                if item.condition is not None:
                    # one for a condition, wherever it stands: a chart as data names it by its text
                    key = item.condition.source
                    guard = self._guards.setdefault(key, _guard(item.condition))
                yield Transition(STEP, self.states(source), self.states(item.target), guard)

    def _asked_for_in(self, states: Collection[str]) -> Iterator[AllowedTransition]:
        """Yield what the steps of some states can ask for, once each."""
        for state in states:
            targets = {
                target: None
                for step in self._definition.steps
                if step.in_state is None or state in step.in_state
                for target in step.targets
            }
            for target in targets:
                yield AllowedTransition(state, target)


def _guard(condition: Expression) -> Guard:
    """Return a condition as a guard; the agent notes why it refuses."""

    def guard(agent: Any, _context: Any) -> bool:
        allows: bool = agent.allows(condition)
        return allows

    guard.__name__ = guard.__qualname__ = condition.source

    return guard


def _enum_name(name: str) -> str:
    # a class cannot be called by what no UTF-8 has, as a file may be
    words = shown_path(name).replace("-", " ").replace("\0", " ").split()
    return "".join(word.capitalize() for word in words) or "Workflow"
