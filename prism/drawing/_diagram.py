"""What a diagram shows: states and arrows as plain texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prism.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Arrow:
    """All transitions from one state to another, drawn as one arrow.

    Args:
        source: Source state; None for every other state, and for the target itself if it has the
            transition, too.
        target: Target state.
        labels: One text for each transition, such as ``"decides [should_engage] / note"``.
    """

    source: str | None
    target: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagram:
    """States and the arrows between them; made from a chart, or by a report from a log.

    Args:
        states: Names of the states, in the order in which they are drawn.
        arrows: The transitions.
        initial: State that agents start in, if known.
        name: Title of the diagram.
        decision_states: States in which a reasoner is asked.
        timeouts: Ticks after which a state times out, for states with a limit.
        final_states: States in which an agent is done.

    Raises:
        DefinitionError: (a ValueError) if there are no states, a state is listed twice, or
            something names a state that is not listed.
    """

    states: tuple[str, ...]
    arrows: tuple[Arrow, ...]
    initial: str | None = None
    name: str = "statechart"
    decision_states: frozenset[str] = frozenset()
    timeouts: Mapping[str, int] = field(default_factory=dict)
    final_states: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check that everything can be drawn."""
        ends = [end for arrow in self.arrows for end in (arrow.source, arrow.target)]
        kinds = [*sorted(self.decision_states), *sorted(self.final_states)]
        named = dict.fromkeys([*ends, self.initial, *kinds, *self.timeouts])
        unknown = [repr(state) for state in named if state is not None and state not in self.states]
        if unknown:
            raise DefinitionError(
                f"diagram {self.name!r}: {', '.join(unknown)} not among the states: add them"
            )

        if not self.states or len(set(self.states)) < len(self.states):
            raise DefinitionError(
                f"diagram {self.name!r}: give at least one state, and each state once"
            )
