"""The content of a diagram: states and arrows as plain texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        states: Names of all states, each once, in the order in which they are drawn.
        arrows: The transitions.
        initial: State that agents start in, if known.
        name: Title of the diagram.
        decision_states: States in which a reasoner is asked.
        final_states: States in which an agent has finished.
        boxes: The content of each state that has states inside.
        notes: Lines below a state's name, such as ``time-out after 2 ticks`` or ``entry / unlock``.
        marks: Marks that replace the names of histories: ``H`` or ``H*``.
    """

    states: tuple[str, ...]
    arrows: tuple[Arrow, ...]
    initial: str | None = None
    name: str = "statechart"
    decision_states: frozenset[str] = frozenset()
    final_states: frozenset[str] = frozenset()
    boxes: Mapping[str, Box] = field(default_factory=dict)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
