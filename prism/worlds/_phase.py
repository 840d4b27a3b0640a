"""The phases of a run, which decide what its agents and its world may do."""

from __future__ import annotations

from enum import StrEnum

OVERLAP_RULE = (
    "in an overlap world, agents continue while others wait, so a step may look only at its own "
    "agent; leave out  overlap = True, or do it in a hook such as round_begins"
)


class Phase(StrEnum):
    """The phase of a run.

    Attributes:
        SETTING_UP: The world is prepared; no agent may fire.
        BEGINNING: The hooks for the beginning of a round or a tick run.
        TREATING: A treatment is applied, which may set parameters.
        STEPPING: Agents take their steps, and may ask questions.
        WAITING: The run waits for answers; none of the user's code runs.
        GOING_ON: In an overlap world, a step continues with its answer, or agents are ``"alone"``,
            and a step may only change its own agent.
        ENDING: The hooks for the end of a tick or a round run.
        LOOKING: A measure or ``until`` runs, and nothing may change.
    """

    SETTING_UP = "setting_up"
    BEGINNING = "beginning"
    TREATING = "treating"
    STEPPING = "stepping"
    WAITING = "waiting"
    GOING_ON = "going_on"
    ENDING = "ending"
    LOOKING = "looking"


_NEXT = {
    Phase.SETTING_UP: [Phase.BEGINNING],
    Phase.BEGINNING: [Phase.TREATING, Phase.STEPPING, Phase.WAITING, Phase.LOOKING, Phase.ENDING],
    Phase.TREATING: [Phase.BEGINNING],
    Phase.STEPPING: [Phase.WAITING, Phase.GOING_ON, Phase.LOOKING, Phase.ENDING],
    Phase.WAITING: [Phase.STEPPING, Phase.GOING_ON, Phase.LOOKING, Phase.ENDING],
    Phase.GOING_ON: [Phase.STEPPING, Phase.WAITING],
    Phase.ENDING: [Phase.BEGINNING, Phase.STEPPING, Phase.LOOKING],
    Phase.LOOKING: [Phase.BEGINNING, Phase.STEPPING, Phase.WAITING, Phase.ENDING],
}

ALLOWED: frozenset[tuple[Phase, Phase]] = frozenset(
    (before, after) for before, following in _NEXT.items() for after in following
)
"""The changes from one phase to another."""

UNABLE_TO_FIRE: frozenset[Phase] = frozenset((Phase.SETTING_UP, Phase.LOOKING))
"""Phases in which no agent may fire an event."""
