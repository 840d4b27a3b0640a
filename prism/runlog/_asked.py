"""The decisions and texts of a log, by their ids, and what came of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from prism.errors import InputError
from prism.runlog._prompts import Tell, prompts_of
from prism.runlog._reader import locate_log, read_blocks
from prism.telemetry.events import ANSWER_DISCARDED, DECISION, TEXT_WRITTEN, TRANSITION

_ID_KEYS = {DECISION: "decision_id", TEXT_WRITTEN: "text_id"}
_OUTCOMES = (TRANSITION, ANSWER_DISCARDED)


@dataclass(frozen=True, slots=True)
class Asked:
    """A decision or a text in a log.

    Args:
        id: Its id; None where it has none, as a decision by a policy in a run with prompts.
        line: Line of the log, counted from 1.
        event: Its event.
    """

    id: str | None
    line: int
    event: Mapping[str, Any]


def asked_in(run: Path, on_fault: Tell, agent_id: str | None = None) -> Iterator[Asked]:
    """Yield the decisions and texts of a log, in its order.

    In a log without ids they are counted as they would be: each agent's from 1.

    Args:
        run: The folder of the run, or its log.
        on_fault: Called with what cannot be read.
        agent_id: Only those of one agent.

    Raises:
        InputError: If there is no log.
    """
    for asked, event, line in _events(run, on_fault, agent_id):
        if asked is not None:
            yield Asked(asked, line, event)
        elif event["event"] in _ID_KEYS:
            yield Asked(None, line, event)


def find_asked(run: Path, record_id: str, on_fault: Tell) -> tuple[Asked, Mapping[str, Any] | None]:
    """Return a decision or a text, and what came of it.

    That is of a decision the agent's next transition, or that the answer was discarded; of a text
    the agent's next event. None if the log ends before.

    Raises:
        InputError: If there is no log, or nothing of that id in it.
    """
    agent_id = record_id.rpartition(":")[0]
    found: Asked | None = None
    for asked, event, line in _events(run, on_fault, agent_id):
        if found is None:
            if asked == record_id:
                found = Asked(asked, line, event)
        elif found.event["event"] != DECISION or event["event"] in _OUTCOMES:
            return found, event

    if found is None:
        raise InputError(
            f"holds no decision or text {record_id!r}: 'prism log decision {run}' lists them",
            path=locate_log(run),
        )

    return found, None


def _events(
    run: Path, on_fault: Tell, agent_id: str | None
) -> Iterator[tuple[str | None, Mapping[str, Any], int]]:
    """Yield the events of agents that may matter, each with its id, if it has one, and its line."""
    log = locate_log(run)
    # where prompts were recorded, what has no id asked no model
    counts = None if prompts_of(log.parent).is_file() else Counter[str]()
    wanted = _mentions(agent_id)
    for block in read_blocks(log):
        if block.fault is not None:
            on_fault(f"{log}: line {block.first_line} {block.fault}")

        for line, text in enumerate(BytesIO(block.data), start=block.first_line):
            event = _parsed(text) if wanted(text) else None
            if event is None or agent_id not in (None, event.get("agent_id")):
                continue

            yield _id_of(event, counts), event, line


def _mentions(agent_id: str | None) -> Callable[[bytes], bool]:
    """Return a quick look at whether a line may be wanted: most are not, and are not parsed."""
    if agent_id is None:
        names = [f'"{name}"'.encode() for name in _ID_KEYS]
        return lambda text: any(name in text for name in names)

    # the log may be another logger's, with blanks, or with escapes in place of characters
    named = json.dumps(agent_id, ensure_ascii=False).encode("utf-8", "surrogatepass")
    forms = {named, json.dumps(agent_id).encode()}
    return lambda text: any(form in text for form in forms)


def _parsed(text: bytes) -> Mapping[str, Any] | None:
    try:
        event = orjson.loads(text)
    except orjson.JSONDecodeError:  # prism log check says so
        return None

    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _id_of(event: Mapping[str, Any], counts: Counter[str] | None) -> str | None:
    key = _ID_KEYS.get(event["event"])
    if key is None:
        return None

    given, agent_id = event.get(key), event.get("agent_id")
    if isinstance(given, str):
        return given
    # nobody was asked for a template
    if counts is None or not isinstance(agent_id, str) or event.get("source") == "template":
        return None

    counts[agent_id] += 1
    return f"{agent_id}:{counts[agent_id]}"
