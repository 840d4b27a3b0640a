"""How long code steps took: as measured, or as the log of an earlier run has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from prism.errors import ReplayError
from prism.telemetry.events import WORKFLOW_STEP

ToldSeconds = Callable[[str, float], float]
"""Returns the seconds to log, given a code step's key (``3:step``) and the seconds measured."""


def as_measured(_key: str, measured: float) -> float:
    """Return the seconds of a code step as they were measured, in microseconds."""
    return round(measured, 6)


class RecordedSeconds:
    """Copies what an earlier run measured.

    Args:
        path: Its log, for messages.
        agent_id: The agent.
        events: The events of that log.
    """

    def __init__(self, path: Path, agent_id: str, events: Iterable[Mapping[str, Any]]) -> None:
        self._path = path
        self._seconds = {
            f"{event['turn']}:{event['step']}": float(event["seconds"])
            for event in events
            if event.get("event") == WORKFLOW_STEP
            and event.get("type") == "code"
            and event.get("agent_id") == agent_id
        }

    def __call__(self, key: str, _measured: float) -> float:
        """Return the seconds that a code step took in the earlier run.

        Args:
            key: The turn and the step's name, as ``3:step``.

        Raises:
            ReplayError: If it did not run there.
        """
        try:
            return self._seconds[key]
        except KeyError:
            turn, _, step = key.partition(":")
            raise ReplayError(
                f"{self._path} holds no code step {step!r} of turn {turn}: replay it with the "
                "workflow, context and turns of the recorded run"
            ) from None
