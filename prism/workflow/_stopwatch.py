"""How long code steps take: measured, or copied from the log of an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from prism.errors import ReplayError
from prism.telemetry.events import WORKFLOW_STEP


class Stopwatch:
    """Measures code steps."""

    def start(self) -> float:
        """Return the moment at which a step begins."""
        return perf_counter()

    def stop(self, began: float, key: str) -> float:
        """Return the seconds since a step began.

        Args:
            began: What `start` returned.
            key: The turn and the step's name, as ``3:step``.
        """
        return round(perf_counter() - began, 6)


class RecordedStopwatch(Stopwatch):
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

    def start(self) -> float:
        """Return the moment at which a step begins, which is no matter here."""
        return 0.0

    def stop(self, began: float, key: str) -> float:
        """Return the seconds that the step took in the earlier run.

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
