"""What a diagram shows: plain texts, the triggers between two states on one arrow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from prism.errors import DefinitionError

_UNSHOWABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Arrow:
    """All moves from one state to another, drawn as one arrow.

    Args:
        source: State they start from; None means every other state, and the target's own where it
            is a source, too.
        target: State they lead to.
        labels: One text for each, such as ``"decides [should_engage] / note"``.
    """

    source: str | None
    target: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagram:
    """What a diagram shows of a chart. It needs no chart: a report makes one from a log.

    Args:
        states: The states' texts, in the order in which they are to be drawn.
        arrows: The moves.
        initial: State that agents start in, if known.
        name: What the diagram is of.
        decision_states: States in which a reasoner is asked.
        timeouts: Ticks after which a state is left, for states that have a limit of their own.

    Raises:
        DefinitionError: (a ValueError) if there are no states, or something names a state that is
            not among them.
    """

    states: tuple[str, ...]
    arrows: tuple[Arrow, ...]
    initial: str | None = None
    name: str = "statechart"
    decision_states: frozenset[str] = frozenset()
    timeouts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what could not be drawn."""
        ends = [end for arrow in self.arrows for end in (arrow.source, arrow.target)]
        named = dict.fromkeys([*ends, self.initial, *sorted(self.decision_states), *self.timeouts])
        unknown = [repr(state) for state in named if state is not None and state not in self.states]
        if unknown:
            raise DefinitionError(
                f"outline {self.name!r}: {', '.join(unknown)} not among the states: add them"
            )

        if not self.states or len(set(self.states)) < len(self.states):
            raise DefinitionError(
                f"outline {self.name!r}: give at least one state, and each state once"
            )


def showable(text: str) -> str:
    """Replace what neither XML nor a terminal can show: control characters and half surrogate pairs."""
    return _UNSHOWABLE.sub("\ufffd", text)
