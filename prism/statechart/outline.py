"""A chart as it is drawn: plain texts, the triggers between two states on one arrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prism.errors import DefinitionError
from prism.statechart.checks import in_definition_order
from prism.statechart.definition import Definition, own_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

_FEWEST_COLLAPSED = 3
_UNSHOWABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Arrow:
    """All moves from one state to another, drawn as one arrow.

    Args:
        source: State they start from; None means every other state, and the target's own where it is a source, too.
        target: State they lead to.
        labels: One text for each, such as ``"decides [should_engage] / note"``.
    """

    source: str | None
    target: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """What a diagram shows of a chart. It needs no chart: a report makes one from a log.

    Args:
        states: The states' texts, in the order in which they are to be drawn.
        arrows: The moves.
        initial: State that agents start in, if known.
        name: What the diagram is of.
        decision_states: States in which a reasoner is asked.
        timeouts: Ticks after which a state is left, for states that have a limit of their own.

    Raises:
        DefinitionError: (a ValueError) if there are no states, or something names a state that is not among them.
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
            raise DefinitionError(f"outline {self.name!r}: {', '.join(unknown)} not among the states: add them")
        if not self.states or len(set(self.states)) < len(self.states):
            raise DefinitionError(f"outline {self.name!r}: give at least one state, and each state once")


def outline(chart: Definition) -> Outline:
    """Give the outline of a chart; a move that every other state makes alike becomes one arrow without source."""
    states = in_definition_order(chart.states)
    return Outline(
        tuple(map(state_text, states)),
        _arrows(chart.transitions, len(states)),
        state_text(chart.initial),
        chart.name,
        frozenset(map(state_text, chart.decision_states)),
        {state_text(state): chart.timeouts[state] for state in states if state in chart.timeouts},
    )


def _arrows(transitions: Iterable[Transition[object]], states: int) -> tuple[Arrow, ...]:  # type: ignore[type-var]
    sources: dict[tuple[str, str], dict[str, None]] = {}
    for item in transitions:
        sources.setdefault((state_text(item.target), label_of(item)), {})[state_text(item.source)] = None
    labels: dict[tuple[str | None, str], dict[str, None]] = {}
    for (target, label), found in sources.items():
        others = len(found) - (target in found)
        everywhere = others == states - 1 and others >= _FEWEST_COLLAPSED
        for source in [None] if everywhere else list(found):
            labels.setdefault((source, target), {})[label] = None
    return tuple(Arrow(source, target, tuple(found)) for (source, target), found in labels.items())


def label_of(item: Transition[object]) -> str:  # type: ignore[type-var]
    """Give what stands at the arrow of a transition: ``trigger [guard] / action``, as in UML."""
    guard = "" if item.guard is None else f" [{own_name(item.guard) or 'guard'}]"
    action = "" if item.action is None else f" / {own_name(item.action) or 'action'}"
    return f"{item.trigger}{guard}{action}"


def showable(text: str) -> str:
    """Replace what neither XML nor a terminal can show: control characters and half surrogate pairs."""
    return _UNSHOWABLE.sub("\ufffd", text)
