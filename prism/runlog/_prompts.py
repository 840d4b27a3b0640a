"""What models answered, as it is kept beside a log, and the questions in a log."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO, FileIO
from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from prism.errors import InputError
from prism.files._durable import lock
from prism.runlog._reader import last_run, locate_log, read_blocks
from prism.telemetry.events import ANSWER_DISCARDED, DECISION, TEXT_WRITTEN, TRANSITION

ANSWERS_NAME = "answers.jsonl"
"""Name of the file of answers in the folder of a run."""

Tell = Callable[[str], object]
"""Receives problems with unreadable parts."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def read_answers(run: PathLike[str] | str) -> Iterator[dict[str, Any]]:
    """Yield the prompts and replies of a run, in the order in which they came.

    The last line may be cut off, as the program may have been killed while it was written.

    Args:
        run: The folder of the run, or the file itself.

    Yields:
        A dict for each decision and text, with its ``id``, ``prompt``, ``reply`` and ``attempts``.

    Raises:
        InputError: If nothing was recorded, or a line is damaged.
    """
    given = Path(run)
    path = given / ANSWERS_NAME if given.is_dir() else given
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    for number, line in enumerate(lines[:-1], start=1):
        found = read_line(line)
        if found is None or "id" not in found:
            raise InputError("is damaged: not the answer of a run", path=path, line=number)
        yield found


def find_answers(run: Path, ids: Iterable[str], on_fault: Tell) -> dict[str, dict[str, Any]]:
    """Return the prompts and replies of some answers by id, as far as they were recorded.

    Args:
        run: The folder of the run.
        ids: The ids.
        on_fault: Called with what is damaged.
    """
    wanted = {*ids}
    if not (run / ANSWERS_NAME).is_file():
        return {}
    try:
        return {line["id"]: line for line in read_answers(run) if line["id"] in wanted}
    except InputError as error:
        on_fault(str(error))
        return {}


def read_line(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, or None."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None

    return record if isinstance(record, dict) else None


def as_line(record: Mapping[str, Any]) -> bytes:
    """Return the line of an answer."""
    try:
        return orjson.dumps(record, default=str, option=_OPTIONS)
    except TypeError:
        # a model may have written half a surrogate pair, which UTF-8 cannot represent
        text = json.dumps(record, default=str, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def open_answers(path: Path) -> FileIO:
    """Open a file that only its owner may read, without a last line that is cut off."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    file = FileIO(descriptor, "r+b")
    try:
        lock(file)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.seek(whole)
    except BaseException as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise InputError("is being written by another process", path=path) from None
        raise
    return file


# The questions in a log

_ID_KEYS = {DECISION: "decision_id", TEXT_WRITTEN: "text_id"}
_OUTCOMES = (TRANSITION, ANSWER_DISCARDED)


@dataclass(frozen=True, slots=True)
class Asked:
    """A decision or a text in a log.

    Args:
        id: Its id; None if it has none, such as a decision by a policy in a run with prompts.
        line: Line of the log, counted from 1.
        event: Its event.
    """

    id: str | None
    line: int
    event: Mapping[str, Any]


def asked_in(
    run: Path, on_fault: Tell, agent_id: str | None = None, *, beside: Path | None = None
) -> Iterator[Asked]:
    """Yield the decisions and texts of a log, in its order.

    In a log without ids, they are numbered in the usual way, from 1 for each agent.

    Args:
        run: The folder of the run, or its log.
        on_fault: Called with problems of unreadable parts.
        agent_id: Only those of one agent.
        beside: Folder in which prompts were recorded, if the log is a part of another folder's.

    Raises:
        InputError: If there is no log.
    """
    for asked, event, line in _events(run, on_fault, agent_id, beside):
        if asked is not None:
            yield Asked(asked, line, event)
        elif event["event"] in _ID_KEYS:
            yield Asked(None, line, event)


def find_asked(run: Path, record_id: str, on_fault: Tell) -> tuple[Asked, Mapping[str, Any] | None]:
    """Return a decision or a text, and its result.

    The result of a decision is the agent's next transition, or the event that discarded the answer.
    The result of a text is the agent's next event. It is None if the log ends before, or if a
    decision to stay changed nothing.

    Raises:
        InputError: If there is no log, or it has no such id.
    """
    events = _events(run, on_fault, record_id.rpartition(":")[0])
    found = next(
        (Asked(asked, line, event) for asked, event, line in events if asked == record_id), None
    )
    if found is None:
        raise InputError(
            f"holds no decision or text {record_id!r}: 'prism log decision {run}' lists them",
            path=locate_log(run),
        )

    return found, _result_of(found.event, (event for _, event, _ in events))


def _result_of(
    asked: Mapping[str, Any], later: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the result of a decision or a text among the agent's later events."""
    for event in later:
        is_outcome = event["event"] in _OUTCOMES
        if is_to_stay(asked):
            if _came_of_staying(asked, event):
                return event
            if is_outcome or _question_of(event) == _question_of(asked):
                return None
        elif is_outcome or asked["event"] != DECISION:
            return event

    return None


def is_to_stay(event: Mapping[str, Any]) -> bool:
    """Return whether an event is a decision to stay in the current state."""
    return event["event"] == DECISION and event.get("chosen") == event.get("state")


def _came_of_staying(decision: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Return whether an event is a transition to the same state, or discards the answer."""
    names = {
        TRANSITION: ("from_state", "trigger", "to_state"),
        ANSWER_DISCARDED: ("asked_in", "trigger", "chosen"),
    }
    asked = [decision.get(name) for name in ("state", "trigger", "chosen")]
    return asked == [event.get(name) for name in names.get(event["event"], ())]


def _question_of(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(event.get(name) for name in ("event", "state", "trigger"))


def _events(
    run: Path, on_fault: Tell, agent_id: str | None, beside: Path | None = None
) -> Iterator[tuple[str | None, Mapping[str, Any], int]]:
    """Yield the relevant events of agents, each with its id, if any, and its line."""
    log = locate_log(run)
    # if answers were recorded, events without an id asked no model
    is_recorded = ((beside or log.parent) / ANSWERS_NAME).is_file()
    counts: Counter[str] = Counter()
    names = _ID_KEYS if agent_id is None else (agent_id,)
    # most lines are about something else, and need not be parsed
    marks = [json.dumps(name, ensure_ascii=False).encode("utf-8", "replace") for name in names]
    first = last_run(log).line
    for block in read_blocks(log):
        if block.fault is not None:
            on_fault(f"{log}: line {block.first_line} {block.fault}")

        for line, text in enumerate(BytesIO(block.data), start=block.first_line):
            if line < first or not any(mark in text for mark in marks):
                continue
            # prism log check reports invalid JSON
            event = read_line(text) or {}
            agent = event.get("agent_id")
            if agent_id not in (None, agent) or not isinstance(event.get("event"), str):
                continue
            asked = event.get(_ID_KEYS.get(event["event"], ""))
            is_template = event.get("source") == "template"
            if asked is None and event["event"] in _ID_KEYS and not (is_recorded or is_template):
                counts[str(agent)] += 1
                asked = f"{agent}:{counts[str(agent)]}"
            yield asked, event, line
