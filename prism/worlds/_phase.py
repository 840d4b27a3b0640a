"""What a run is doing, which decides what its agents and its world may do."""

from __future__ import annotations

from enum import StrEnum

from prism.statechart import Statechart, Transition

OVERLAP_RULE = (
    "in an overlap world agents go on while others wait, so that a step looks at its own agent "
    "alone; leave  overlap = True  out, or let a hook such as round_begins do it"
)


class Phase(StrEnum):
    """What a run is doing.

    Attributes:
        SETTING_UP: The world is made ready; nobody fires.
        BEGINNING: A round or a tick begins: its hooks run.
        TREATING: A treatment is applied, which may set parameters.
        STEPPING: Agents take their steps, and may ask.
        WAITING: Answers are out; no code of the user's runs.
        GOING_ON: In an overlap world, a step continues with its answer, and changes only its own
            agent.
        ENDING: A tick or a round ends: its hooks run.
        LOOKING: A measure or ``until`` looks, and nothing may change.
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
    Phase.BEGINNING: [Phase.TREATING, Phase.STEPPING, Phase.WAITING, Phase.ENDING],
    Phase.TREATING: [Phase.BEGINNING],
    Phase.STEPPING: [Phase.WAITING, Phase.LOOKING, Phase.ENDING],
    Phase.WAITING: [Phase.STEPPING, Phase.GOING_ON, Phase.LOOKING, Phase.ENDING],
    Phase.GOING_ON: [Phase.WAITING],
    Phase.ENDING: [Phase.BEGINNING, Phase.STEPPING, Phase.LOOKING],
    Phase.LOOKING: [Phase.STEPPING, Phase.WAITING, Phase.ENDING],
}

run_chart: Statechart[Phase] = Statechart(
    Phase,
    [Transition(target.value, source, target) for source in _NEXT for target in _NEXT[source]],
    initial=Phase.SETTING_UP,
    name="run",
)
"""What a run may do after what; `RunHost.phase` follows it."""
