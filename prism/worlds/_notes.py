"""What agents remember for a model: notes, in one order with their transitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Any

from prism.reasoner._recollection import transition_in_words

MOST_NOTES = 50
"""Number of notes that an agent keeps, the same as that of its transitions."""


def add_note(agent: Any, time: float, text: str) -> None:
    """Store a note about an agent.

    Args:
        agent: The agent.
        time: When it happened, in seconds of the run's clock.
        text: The note.
    """
    if agent._notes is None:
        agent._notes = deque(maxlen=MOST_NOTES)

    # the number of earlier transitions at the same instant puts notes and transitions in one order
    same = takewhile(lambda record: _time_of(record) == time, reversed(agent._state_history))
    agent._notes.append((time, sum(1 for _ in same), " ".join(text.split())))


def remembered(agent: Any) -> Callable[[int], Sequence[str]]:
    """Return a function that tells an agent's last notes and transitions as of now.

    The function does not read them when the prompt is made, since messages may arrive before that.
    """
    things = _in_order(agent)
    return lambda most: things[-most:]


def _in_order(agent: Any) -> Sequence[str]:
    """Return an agent's notes and transitions in words, oldest first."""
    things: list[tuple[float, int, int, Any]] = []
    place, last = 0, None
    for record in agent._state_history:
        time = _time_of(record)
        place, last = (place + 1 if time == last else 1), time
        things.append((time, place, 0, record))

    for number, (time, before, text) in enumerate(agent._notes or ()):
        things.append((time, before, number + 1, text))

    things.sort(key=lambda thing: thing[:3])

    return [thing if isinstance(thing, str) else transition_in_words(thing) for *_, thing in things]


def _time_of(record: Any) -> float:
    return float(record.timestamp.timestamp())


def kept_notes(agents: Sequence[Any]) -> dict[str, Any]:
    """Return the notes for a checkpoint, or nothing if there are none."""
    of_agents = [*map(attrgetter("_notes"), agents)]
    # most agents have none, and all are looked at between rounds
    if not any(of_agents):
        return {}

    return {
        "notes": [
            [place, [list(note) for note in notes]]
            for place, notes in enumerate(of_agents)
            if notes
        ]
    }


def restore_notes(agents: Sequence[Any], kept: Mapping[str, Any]) -> None:
    """Give agents the notes that `kept_notes` returned."""
    for agent in agents:
        agent._notes = None
    for place, notes in kept.get("notes", ()):
        agents[place]._notes = deque(map(tuple, notes), maxlen=MOST_NOTES)
