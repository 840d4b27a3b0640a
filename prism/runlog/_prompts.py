"""The questions in a run's log, and the prompts that are kept beside it."""

from __future__ import annotations

import atexit
import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO, FileIO
from os import PathLike
from pathlib import Path
from typing import Any, Self

import orjson

from prism._version import __version__
from prism.errors import InputError
from prism.files._durable import lock
from prism.runlog._reader import last_run, locate_log, read_blocks
from prism.runlog._writer import SimulatedClock
from prism.telemetry.events import ANSWER_DISCARDED, DECISION, TEXT_WRITTEN, TRANSITION

PROMPTS_NAME = "prompts.jsonl.gz"
"""Name of the file in the folder of a run."""

PRIVATE = (
    "this file has every prompt and reply as it was sent: names, traits, posts, and whatever else "
    "agents are told; keep it as private as they are"
)
"""The warning for anybody who passes such a file on."""

Tell = Callable[[str], object]
"""Receives problems with unreadable parts."""

_VERSION = 1
_BLOCK_BYTES = 1 << 18
_LEVEL = 6
_HEADER = b'{"prism":'
"""How the first line of each run begins; those of records begin with their ids."""
_GZIP = zlib.MAX_WBITS | 16
_NO_PROMPTS = "is damaged, or no file of prompts, and nothing is added to it: name another file"
_NOT_READ = "is cut off or damaged: not a JSON object"
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


class PromptLog:
    """A file of prompts and replies, for `Reasoner` and `Writer`.

    Each decision or text is a line of JSON with the id of its event in the log: the agent's id, a
    colon, and the number of decisions and texts that the agent has asked for. Lines are compressed
    in blocks, each a gzip member, so a killed process loses at most the last block. Only the user
    who runs prism may read the file.

    A program that starts again may give the same path: its records are appended as those of another
    run, of which `read_prompts` reads the last.

    Args:
        path: File to write.
        clock: The run's clock, for round and tick of each record; None for neither.
        go_on: What `save` returned: continue an existing file from there; the rest is cut off.

    Raises:
        OSError: If it cannot be written; any method may also raise it later.
        InputError: If the file is something else or damaged, another process is writing to it, or
            it is shorter than it was when it was saved.

    Attributes:
        path: The file.
    """

    def __init__(
        self,
        path: PathLike[str] | str,
        clock: SimulatedClock | None = None,
        *,
        go_on: Mapping[str, Any] | None = None,
    ) -> None:
        self.path: Path = Path(path)
        self._clock = clock
        self._counts: Counter[str] = Counter(go_on["counts"] if go_on else {})
        self._asked_at: dict[str, tuple[int, int]] = {}
        self._lines = bytearray()
        self._file = _opened(self.path, None if go_on is None else go_on["bytes"])
        self._failure: OSError | None = None
        # of a program that ends without closing it
        atexit.register(self.flush)
        if go_on is None:
            header = {"prism": __version__, "prompts": _VERSION, "private": PRIVATE}
            self._lines += orjson.dumps(header, option=_OPTIONS)

    def new_id(self, agent_id: str) -> str:
        """Return the id of an agent's next decision or text."""
        self._counts[agent_id] += 1
        record_id = f"{agent_id}:{self._counts[agent_id]}"
        if self._clock is not None:
            moment = self._clock.moment
            self._asked_at[record_id] = (moment.round, moment.tick)

        return record_id

    def keep(self, record: dict[str, Any]) -> None:
        """Keep one record; it is written with the next block."""
        asked_at = self._asked_at.pop(record["id"], None)
        place = {} if asked_at is None else dict(zip(("round", "tick"), asked_at, strict=True))
        self._lines += _line({"id": record["id"], **place, **record})
        if len(self._lines) >= _BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Pass all records so far to the operating system, so that others can read them."""
        block, self._lines = bytes(self._lines), bytearray()
        if block:
            self._write(block)

    def save(self) -> dict[str, Any]:
        """Write everything so far to the disk, so that it survives a crash of the machine.

        Returns:
            Where to continue later, as plain data.
        """
        self.flush()
        os.fsync(self._file.fileno())
        return {"bytes": self._file.tell(), "counts": dict(self._counts)}

    def close(self) -> None:
        """Write the rest, and close the file."""
        try:
            if not self._file.closed:
                self.flush()
        finally:
            atexit.unregister(self.flush)
            self._file.close()

    def __enter__(self) -> Self:
        """Return the log itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def _write(self, block: bytes) -> None:
        # without a time, so that the same run writes the same bytes if its replies are the same
        left = memoryview(gzip.compress(block, _LEVEL, mtime=0))
        try:
            # nothing can be read after an incomplete block
            if self._failure is not None:
                raise self._failure

            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._failure = error
            problem = error.strerror or str(error)
            raise OSError(error.errno, problem, str(self.path)) from error


def read_prompts(
    run: PathLike[str] | str, *, on_fault: Tell | None = None
) -> Iterator[dict[str, Any]]:
    """Read the prompts and replies of a run, in the order of the answers.

    Of several runs in one file, it is the last.

    Args:
        run: The folder of the run, or the file itself.
        on_fault: Called with each fault, such as the incomplete end of a file that is being
            written.

    Yields:
        A dict for each decision and text: ``id``, ``kind`` (``decision`` or ``text``), ``round``
        and ``tick`` if known, ``agent_id``, ``prompt``, ``reply``, ``source``, ``reason`` and
        ``attempts``; for a decision also ``state``, ``trigger``, ``options``, ``context``,
        ``asked`` (``chat``, or ``decision`` with its ``choice``), ``chosen`` and ``probabilities``;
        for a text its ``key`` and ``schema``. If one request served several decisions,
        ``same_request_as`` is the id of the record that has the attempts.

    Raises:
        InputError: If nothing was recorded, or a part cannot be read and there is no ``on_fault``.
    """
    path = prompts_of(Path(run))
    if not path.is_file():
        raise InputError(
            f"holds no {PROMPTS_NAME}: a run records its prompts with --record-prompts", path=run
        )

    return _records(path, on_fault)


def find_prompts(
    run: PathLike[str] | str, ids: Iterable[str], on_fault: Tell
) -> dict[str, dict[str, Any]]:
    """Return the records of some ids, if they exist.

    Args:
        run: The folder of the run.
        ids: The ids.
        on_fault: Called with problems of unreadable parts.
    """
    path = prompts_of(Path(run))
    if not path.is_file():
        return {}

    left = {_start_of(one): one for one in ids}
    found: dict[str, dict[str, Any]] = {}
    for line, number in _lines(path, on_fault):
        # the id comes first, so other lines need not be parsed
        start = line[: line.find(b'",') + 2]
        if start in left:
            record = read_line(line)
            if record is None:
                _tell(path, number, _NOT_READ, on_fault)
            else:
                found[left.pop(start)] = record
        if not left:
            break

    return found


def _start_of(record_id: str) -> bytes:
    """Return the beginning of a record's line."""
    named = json.dumps(record_id, ensure_ascii=False)
    return f'{{"id":{named},'.encode("utf-8", "surrogatepass")


def choice_text(record: Mapping[str, Any]) -> str | None:
    """Return a decision question as text: the question, and the meaning of each option.

    Args:
        record: The record of the decision.
    """
    choice = record.get("choice")
    if not isinstance(choice, dict):
        return None

    criteria = choice.get("criteria")
    meanings = criteria if isinstance(criteria, dict) else {}
    options = "\n".join(
        f"- {option}" + (f": {meaning}" if meaning else "") for option, meaning in meanings.items()
    )

    return f"{choice.get('instructions')}\n\n{options}"


def prompts_of(run: Path) -> Path:
    """Return the path of a run's prompts, whether or not the file exists."""
    return run / PROMPTS_NAME if run.is_dir() else run


def _records(path: Path, on_fault: Tell | None) -> Iterator[dict[str, Any]]:
    is_first = True
    for line, number in _lines(path, on_fault):
        record = read_line(line)
        if record is None:
            _tell(path, number, _NOT_READ, on_fault)
        elif is_first:
            _check_header(path, record)
        else:
            yield record

        is_first = False


def _lines(path: Path, on_fault: Tell | None) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of the last run that can be read, each with its number."""
    blocks = ((block.first_line, BytesIO(block.data)) for block in read_blocks(path))
    headers = (
        number
        for first, lines in blocks
        for number, line in enumerate(lines, start=first)
        if line.startswith(_HEADER)
    )
    begins = max(headers, default=1)
    for block in read_blocks(path):
        if block.fault is not None:
            _tell(path, block.first_line, block.fault, on_fault)

        for number, line in enumerate(BytesIO(block.data), start=block.first_line):
            if number >= begins:
                yield line, number


def _check_header(path: Path, header: Mapping[str, Any]) -> None:
    version = header.get("prompts")
    if not isinstance(version, int):
        raise InputError("is not a file of prompts: its first line must say so", path=path, line=1)
    if version > _VERSION:
        problem = f"is of version {version}, and this prism knows {_VERSION}: read it with a newer"
        raise InputError(problem, path=path, line=1)


def _tell(path: Path, line: int, problem: str, on_fault: Tell | None) -> None:
    if on_fault is None:
        raise InputError(problem, path=path, line=line)

    on_fault(f"{path}: line {line} {problem}")


def read_line(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line, or None."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None

    return record if isinstance(record, dict) else None


def _line(record: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(record, default=str, option=_OPTIONS)
    except TypeError:
        # a model may have written half a surrogate pair, which UTF-8 cannot represent
        text = json.dumps(record, default=str, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def _opened(path: Path, kept: int | None) -> FileIO:
    """Open a file that only its owner may read, and truncate it after the kept part.

    Args:
        path: The file.
        kept: The length of that part; None for all that can be read.
    """
    flags = os.O_RDWR | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags if kept else flags | os.O_CREAT, 0o600)
    file = FileIO(descriptor, "r+b")
    try:
        lock(file)
        path.chmod(0o600)
        length = os.fstat(descriptor).st_size
        if kept is None:
            kept = _readable_length(path, file)
        if length < kept:
            problem = f"has {length} bytes, and had {kept}: put it back as it was"
            raise InputError(problem, path=path)

        file.truncate(kept)
        file.seek(kept)
    except BlockingIOError:
        file.close()
        raise InputError("is being written by another process", path=path) from None
    except BaseException:
        file.close()
        raise

    return file


def _readable_length(path: Path, file: FileIO) -> int:
    """Return where the last whole block of a file of prompts ends.

    Raises:
        InputError: If it is something else, or damaged.
    """
    whole, begins = 0, b""
    unpack = zlib.decompressobj(wbits=_GZIP)
    while data := file.read(_BLOCK_BYTES):
        while data:
            try:
                text = unpack.decompress(data)
            except zlib.error:
                raise InputError(_NO_PROMPTS, path=path) from None
            begins = begins or text
            data = unpack.unused_data
            if unpack.eof:
                whole = file.tell() - len(data)
                unpack = zlib.decompressobj(wbits=_GZIP)

    if not (begins or _HEADER).startswith(_HEADER):
        raise InputError(_NO_PROMPTS, path=path)

    return whole


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
    # if prompts were recorded, events without an id asked no model
    counts = None if prompts_of(beside or log.parent).is_file() else Counter[str]()
    wanted, first = _mentions(agent_id), last_run(log).line
    for block in read_blocks(log):
        if block.fault is not None:
            on_fault(f"{log}: line {block.first_line} {block.fault}")

        for line, text in enumerate(BytesIO(block.data), start=block.first_line):
            # prism log check reports invalid JSON
            event = (read_line(text) if line >= first and wanted(text) else None) or {}
            is_wanted = agent_id in (None, event.get("agent_id"))
            if not is_wanted or not isinstance(event.get("event"), str):
                continue

            yield _id_of(event, counts), event, line


def _mentions(agent_id: str | None) -> Callable[[bytes], bool]:
    """Return a quick test for lines that may be relevant; most are not, and need not be parsed."""
    if agent_id is None:
        names = [f'"{name}"'.encode() for name in _ID_KEYS]
        return lambda text: any(name in text for name in names)

    # another logger may have written the log, with blanks or escape sequences
    named = json.dumps(agent_id, ensure_ascii=False).encode("utf-8", "surrogatepass")
    forms = {named, json.dumps(agent_id).encode()}
    return lambda text: any(form in text for form in forms)


def _id_of(event: Mapping[str, Any], counts: Counter[str] | None) -> str | None:
    key = _ID_KEYS.get(event["event"])
    if key is None:
        return None

    given, agent_id = event.get(key), event.get("agent_id")
    if isinstance(given, str):
        return given
    # a template is not an answer
    if counts is None or not isinstance(agent_id, str) or event.get("source") == "template":
        return None

    counts[agent_id] += 1
    return f"{agent_id}:{counts[agent_id]}"
