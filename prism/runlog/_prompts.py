"""What models answered, as it is kept beside a log, and the questions in a log."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from os import PathLike
from pathlib import Path
from typing import Any, Self

import orjson

from prism.errors import InputError
from prism.files._durable import lock
from prism.runlog._reader import OnFault, locate_log, read_line, read_lines
from prism.runlog._writer import SimulatedClock
from prism.telemetry.events import (
    ANSWER_DISCARDED,
    DECISION,
    RUN_STARTED,
    TEXT_WRITTEN,
    TRANSITION,
)

ANSWERS_NAME = "answers.jsonl"
"""Name of the file of answers in the folder of a run."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class PromptLog:
    """A file of prompts and replies, such as a run keeps beside its log.

    Each decision or text is a line of JSON with the id of its event in the log: the agent's id, a
    colon, and the number of decisions and texts that the agent has asked for. It is in the
    operating system's hands as soon as it is kept. Only the user who runs prism may read the file.
    Of a program that starts again with the same file, the last line with an id counts.

    Args:
        path: File to write, ``answers.jsonl`` beside the log.
        clock: The run's clock, for round and tick of each line; None for neither.

    Raises:
        InputError: If another process is writing to it.
        OSError: If it cannot be written; any method may also raise it later.

    Attributes:
        path: The file.
    """

    def __init__(self, path: PathLike[str] | str, clock: SimulatedClock | None = None) -> None:
        self.path: Path = Path(path)
        self._clock = clock
        self._numbers: Counter[str] = Counter()
        self._file = _open_answers(self.path)

    def new_id(self, agent_id: str) -> str:
        """Return the id of an agent's next decision or text."""
        self._numbers[agent_id] += 1
        return f"{agent_id}:{self._numbers[agent_id]}"

    def keep(self, record: dict[str, Any]) -> None:
        """Write one record."""
        self._file.write(_as_line(stamped(record, self._clock)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()


def stamped(record: Mapping[str, Any], clock: SimulatedClock | None) -> dict[str, Any]:
    """Return a record with round and tick after its id, unless it has its own."""
    at = {} if clock is None else {"round": clock.round, "tick": clock.tick}
    return {"id": record["id"], **at, **record}


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
    for number, line in read_lines(path, str):
        record = read_line(line)
        if record is not None and "id" in record:
            yield record
        elif line.endswith(b"\n"):
            raise InputError("is damaged: not the answer of a run", path=path, line=number)


def find_answers(run: Path, ids: Iterable[str], on_fault: OnFault) -> dict[str, dict[str, Any]]:
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


def _as_line(record: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(record, default=str, option=_OPTIONS)
    except TypeError:
        # a model may have written half a surrogate pair, which UTF-8 cannot represent
        text = json.dumps(record, default=str, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def _open_answers(path: Path) -> FileIO:
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

_DECIDED = ("state", "trigger", "chosen")
_MOVES = {
    TRANSITION: ("from_state", "trigger", "to_state"),
    ANSWER_DISCARDED: ("asked_in", "trigger", "chosen"),
}
_ID_KEYS = {DECISION: "decision_id", TEXT_WRITTEN: "text_id"}


@dataclass(slots=True)
class Asked:
    """A decision or a text in a log.

    Args:
        id: Its id; None if it has none, such as a decision by a policy in a run with prompts.
        line: Line of the log, counted from 1.
        event: Its event.
        outcome: After a decision, the agent's next transition or discarded answer; after a text,
            the agent's next event. None at the end of the log, after a decision to stay that
            changed nothing, and if all agents were asked for.
    """

    id: str | None
    line: int
    event: Mapping[str, Any]
    outcome: Mapping[str, Any] | None = None


def asked_in(run: Path, on_fault: OnFault, agent_id: str | None = None) -> list[Asked]:
    """Return the decisions and texts of a log, in its order.

    In a log without ids, they are numbered in the usual way, from 1 for each agent. Of runs of an
    application that follow each other in one file, those of the last count.

    Args:
        run: The folder of the run, or its log.
        on_fault: Called with problems of unreadable parts.
        agent_id: Only those of one agent, with their outcomes.

    Raises:
        InputError: If there is no log.
    """
    log = locate_log(run)
    # if answers were recorded, events without an id asked no model
    is_recorded = (log.parent / ANSWERS_NAME).is_file()
    names = _ID_KEYS if agent_id is None else (agent_id,)
    # most lines are about something else, and need not be parsed
    texts = (json.dumps(name, ensure_ascii=False) for name in (*names, RUN_STARTED))
    marks = [text.encode("utf-8", "replace") for text in texts]
    result: list[Asked] = []
    pending: list[Asked] = []
    counts: Counter[str] = Counter()
    for number, line in read_lines(log, on_fault):
        if not any(mark in line for mark in marks):
            continue
        event = read_line(line) or {}  # prism log check reports invalid JSON
        name, agent = event.get("event"), event.get("agent_id")
        if name == RUN_STARTED and "agents" not in event:
            result, pending, counts = [], [], Counter()
        if agent_id not in (None, agent):
            continue
        pending = _unanswered(pending, event)
        if name in _ID_KEYS:
            answer_id = event.get(_ID_KEYS[name])
            if answer_id is None and not (is_recorded or event.get("source") == "template"):
                counts[str(agent)] += 1
                answer_id = f"{agent}:{counts[str(agent)]}"
            result.append(Asked(answer_id, number, event))
            if agent_id is not None:
                pending.append(result[-1])
    return result


def _unanswered(pending: Iterable[Asked], event: Mapping[str, Any]) -> list[Asked]:
    """Give questions an event as their outcome, and return those that wait for another one."""
    moved = [event.get(name) for name in _MOVES.get(event.get("event", ""), ())]
    left: list[Asked] = []
    for each in pending:
        is_text = each.event["event"] != DECISION
        state, _, chosen = decided = [each.event.get(name) for name in _DECIDED]
        if not (moved or is_text):
            left.append(each)
        # nothing came of a decision to stay, unless the log says so
        elif is_text or state != chosen or decided == moved:
            each.outcome = event
    return left


def find_asked(run: Path, record_id: str, on_fault: OnFault) -> Asked:
    """Return a decision or a text, with its outcome.

    Raises:
        InputError: If there is no log, or it has no such id.
    """
    for each in asked_in(run, on_fault, record_id.rpartition(":")[0]):
        if each.id == record_id:
            return each
    problem = f"holds no decision or text {record_id!r}: 'prism log decision {run}' lists them"
    raise InputError(problem, path=locate_log(run))
