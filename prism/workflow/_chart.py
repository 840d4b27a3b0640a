"""A workflow's transitions as a statechart: what a step proposes, the chart decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cache, cached_property
from time import time
from typing import Any

from prism.expressions import Expression
from prism.files._records import shown_path
from prism.statechart import Statechart, Transition, state_enum
from prism.telemetry._loggers import EventLogger
from prism.workflow._document._definition import (
    ANY_STATE,
    AllowedTransition,
    WorkflowDefinition,
)

STEP = "step"
"""The one trigger of a workflow's chart: a step names the target."""

MOST_ROWS = 2000
"""A chart of more transitions is made piece by piece, as an agent gets to each state."""

Clock = Callable[[], float]
Guard = Callable[[Any, Any], bool]
Driving = Callable[[str], Statechart[StrEnum]]


class Charts:
    """The statechart of a workflow: whole, and as far as it drives agents.

    Where any of 200 states may follow any, the whole chart has 40,000 rows. Such a chart is made
    when somebody asks for it, to draw it or to check a log. An agent needs the transitions out of
    its own state only, and is driven by a chart of these.

    Args:
        definition: The workflow.
    """

    def __init__(self, definition: WorkflowDefinition) -> None:
        self.states: type[StrEnum] = state_enum(_enum_name(definition.name), definition.states)
        self._definition = definition
        self._guards: dict[str, Guard] = {}
        self._pieces: dict[str, Statechart[StrEnum]] = {}

    @cached_property
    def whole(self) -> Statechart[StrEnum]:
        """The chart, with every transition."""
        return self._chart(self._transitions(self._definition.states))

    @cached_property
    def is_large(self) -> bool:
        """Whether the whole chart is too large to be made before it is asked for."""
        definition = self._definition
        if not definition.transitions:
            everywhere, somewhere = self._asked_for
            rows = len(everywhere) * len(definition.states) + sum(map(len, somewhere.values()))
            return rows > MOST_ROWS

        # counted, not made: to make them is what takes long
        anywhere = sum(item.source == ANY_STATE for item in definition.transitions)
        others = len(definition.transitions) - anywhere

        return anywhere * len(definition.states) + others > MOST_ROWS

    def out_of(self, state: str) -> Statechart[StrEnum]:
        """Return a chart of the transitions out of a state: the whole one, unless that is large."""
        if not self.is_large:
            return self.whole

        found = self._pieces.get(state)
        if found is None:
            found = self._pieces[state] = self._chart(self._transitions((state,)))

        return found

    def _chart(self, transitions: Iterable[Transition[StrEnum]]) -> Statechart[StrEnum]:
        return Statechart(
            self.states,
            transitions,
            initial=self.states(self._definition.initial),
            name=self._definition.name,
            final_states=map(self.states, self._definition.final_states),
        )

    def _transitions(self, sources: Iterable[str]) -> Iterator[Transition[StrEnum]]:
        definition, wanted = self._definition, frozenset(sources)
        may_be_left = wanted - definition.final_states
        anywhere = [state for state in definition.states if state in may_be_left]
        if not definition.transitions:
            everywhere, somewhere = self._asked_for
            for source in anywhere:
                for target in {**everywhere, **somewhere.get(source, {})}:
                    yield self._transition(AllowedTransition(source, target), source)

        for item in definition.transitions:
            alone = [item.source] if item.source in wanted else []
            for source in anywhere if item.source == ANY_STATE else alone:
                yield self._transition(item, source)

    def _transition(self, item: AllowedTransition, source: str) -> Transition[StrEnum]:
        guard = None
        if item.condition is not None:
            # one for a condition, wherever it stands: a chart as data names guards by their text
            guard = self._guards.setdefault(item.condition.source, _guard(item.condition))

        return Transition(STEP, self.states(source), self.states(item.target), guard)

    @cached_property
    def _asked_for(self) -> tuple[dict[str, None], dict[str, dict[str, None]]]:
        """The targets that steps can ask for in any state, and those in single states beside."""
        everywhere: dict[str, None] = {}
        somewhere: dict[str, dict[str, None]] = {}
        definition = self._definition
        for step in definition.steps:
            if step.in_state is None:
                everywhere.update(dict.fromkeys(step.targets))
            for source in () if step.in_state is None else definition.states_of(step):
                somewhere.setdefault(source, {}).update(dict.fromkeys(step.targets))

        return everywhere, somewhere


def driving(charts: Charts, logger: EventLogger | None, clock: Clock | None) -> Driving:
    """Return a function of a state: its chart has all transitions out of that, and is bound once.

    Args:
        charts: The workflow's charts.
        logger: Where transitions go.
        clock: Times histories; None for real time.
    """

    @cache
    def bound(place: str) -> Statechart[StrEnum]:
        chart = charts.out_of(place)
        return chart.bound(chart.name, logger, clock or time)

    return lambda state: bound(state if charts.is_large else "")


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
