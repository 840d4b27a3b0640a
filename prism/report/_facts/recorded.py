"""The decisions of a run that are worth a look at their prompts, where those were recorded."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism.runlog._prompts import Asked, asked_in, find_prompts, prompts_of
from prism.telemetry.events import DECISION

MOST_OF_A_KIND = 6
"""Fallbacks shown, and least likely choices."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision and its record.

    Args:
        id: Its id.
        why: Why it is shown, in a few words.
        event: Its event in the log.
        record: What was asked and said.
        folder: The folder of its run.
    """

    id: str
    why: str
    event: Mapping[str, Any]
    record: Mapping[str, Any]
    folder: Path


def recorded_of(log: Path) -> tuple[Recorded, ...]:
    """Return the first decisions that fell back, and those that the model held least likely.

    Args:
        log: The log of a run.

    Returns:
        At most twice `MOST_OF_A_KIND`; none if the run recorded no prompts.
    """
    folder = log.parent
    if not prompts_of(folder).is_file():
        return ()

    chosen = _notable(asked for asked in asked_in(log, _ignore) if asked.event["event"] == DECISION)
    records = find_prompts(folder, chosen, _ignore)

    return tuple(
        Recorded(record_id, why, asked.event, records[record_id], folder)
        for record_id, (why, asked) in chosen.items()
        if record_id in records
    )


def _notable(decisions: Iterable[Asked]) -> dict[str, tuple[str, Asked]]:
    fallbacks: list[Asked] = []
    # the likeliest of them first, so that it goes when a less likely one comes
    rare: list[tuple[float, int, Asked]] = []
    for asked in decisions:
        if asked.id is None:
            continue
        if asked.event.get("source") == "fallback":
            if len(fallbacks) < MOST_OF_A_KIND:
                fallbacks.append(asked)
            continue

        chance = _chance(asked.event)
        if chance is not None:
            add = heapq.heappush if len(rare) < MOST_OF_A_KIND else heapq.heappushpop
            add(rare, (-chance, -asked.line, asked))

    least = sorted(rare, reverse=True)
    found = [("it fell back", asked) for asked in fallbacks]
    found += [(f"its probability was {-chance:.3f}", asked) for chance, _, asked in least]

    return {str(asked.id): (why, asked) for why, asked in found}


def _chance(event: Mapping[str, Any]) -> float | None:
    """Return the probability of what was chosen, where another option had a greater one."""
    given = event.get("probabilities")
    chances = {
        option: chance
        for option, chance in (given if isinstance(given, dict) else {}).items()
        # a log may hold anything
        if isinstance(chance, (int, float))
    }
    chance = chances.get(str(event.get("chosen")))
    if chance is None or chance >= max(chances.values()):
        return None

    return float(chance)


def _ignore(_fault: str) -> None:
    """Leave it to the notes on the logs, which say what cannot be read."""
