"""The content of a diagram: states and arrows as plain texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prism.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Arrow:
    """All transitions from one state to another, drawn as one arrow.

    Args:
        source: Source state; None for every other state, including the target if it has the
            transition.
        target: Target state.
        labels: One text for each transition, such as ``"decides [should_engage] / note"``.
    """

    source: str | None
    target: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """The content of a state in a diagram.

    Args:
        inside: Names of the states directly inside, in the order in which they are drawn.
        initial: The state inside that is entered first, unless the states inside are regions.
        is_parallel: Whether the states inside are regions, all of which are active together.
    """

    inside: tuple[str, ...]
    initial: tuple[str, ...] = ()
    is_parallel: bool = False


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
        final_states: States in which an agent has finished.
        boxes: The content of each state that has states inside.
        notes: Lines below a state's name, such as ``entry / unlock``.
        marks: Marks that replace the names of histories: ``H`` or ``H*``.

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
    boxes: Mapping[str, Box] = field(default_factory=dict)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that everything can be drawn."""
        inside = (each for box in self.boxes.values() for each in (*box.inside, *box.initial))
        ends = (end for arrow in self.arrows for end in (arrow.source, arrow.target))
        named = {self.initial, *ends, *self.decision_states, *self.final_states, *self.timeouts}
        named |= {*self.boxes, *inside, *self.notes, *self.marks}
        if unknown := sorted(filter(None, named.difference(self.states))):
            names = ", ".join(map(repr, unknown))
            raise DefinitionError(f"diagram {self.name!r}: {names} not among the states: add them")

        if not self.states or len(set(self.states)) < len(self.states):
            raise DefinitionError(
                f"diagram {self.name!r}: give at least one state, and each only once"
            )
