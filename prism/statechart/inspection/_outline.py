"""The outline of a chart that its lint checks, whether it is flat or has composites."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from prism.statechart.transitions import Transition


@dataclass(frozen=True, slots=True)
class Outline:
    """The facts about a chart that its lint checks.

    Args:
        initial: The states in which agents begin.
        left: States that have a way out.
        timed: States that an agent leaves in time, without an event.
        limited: States for which the chart sets a limit.
        final: Final states.
        shadowed: Transitions that can never fire, each after its source and before the transition
            that always comes first.
    """

    initial: Set[Any]
    left: Set[Any]
    timed: Set[Any]
    limited: Set[Any]
    final: Set[Any]
    shadowed: Sequence[tuple[Any, Transition[Any], Transition[Any]]]
