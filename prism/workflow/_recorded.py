"""What the log of an earlier run says of things that a repeated run must not do again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prism.errors import ReplayError
from prism.telemetry.events import WORKFLOW_ACTION, WORKFLOW_STEP
from prism.workflow._actions import Action, ActionResult


class Recorded:
    """The seconds of code steps and the results of actions, as an earlier run had them.

    Args:
        path: Its log, for messages.
        agent_id: The agent.
        events: The events of that log.
    """

    def __init__(self, path: Path, agent_id: str, events: Iterable[Mapping[str, Any]]) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        self._results: dict[str, Mapping[str, Any]] = {}
        for event in events:
            if event.get("agent_id") != agent_id:
                continue
            if event.get("event") == WORKFLOW_STEP and event.get("type") == "code":
                self._seconds[f"{event['turn']}:{event['step']}"] = float(event["seconds"])
            elif event.get("event") == WORKFLOW_ACTION:
                self._results[event["key"]] = event

    def seconds(self, key: str) -> float:
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

    def result_of(self, action: Action) -> ActionResult | None:
        """Return what came of an action in the earlier run; None if nobody carried it out."""
        found = self._results.get(action.key)
        if found is None:
            return None

        return ActionResult(action.action, found["result"], found["succeeded"])
