"""Open logs, and read them block by block."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TypeVar

import polars as pl

from prism.analysis._reading.parsing import OBJECTS, OWN_KEYS, empty, objects_of, parse
from prism.analysis._reading.runs import (
    KNOWN_EVENTS,
    Note,
    Run,
    is_known,
    parameters_apart,
)
from prism.analysis._reading.scanning import (
    ADDED,
    Column,
    KeysFound,
    as_columns,
    columns_of_schema,
    names_shown,
    query_of,
    values_of,
)
from prism.analysis._reading.survey import SURVEYED, FileSurvey
from prism.errors import InputError
from prism.files._records import TemporaryCopy, distinct_ends
from prism.runlog._events import EVENTS, WORLD_EVENTS
from prism.runlog._reader import LOG_NAME, Block, LastRun, last_run, locate_log, read_blocks
from prism.telemetry import events

_TABULATED = (
    events.AGENT_JOINED,
    events.TRANSITION,
    events.DECISION,
    events.POST_PUBLISHED,
    events.POST_LIKED,
)
_NOT_TABULATED = ("interests", "following", "follows", "topics")

COLUMNS: dict[str, tuple[str, ...]] = {
    event.name: tuple(key.name for key in event.keys if key.name not in _NOT_TABULATED)
    for event in EVENTS
    if event.name in _TABULATED
}
"""Keys of the events for tables, except ``timestamp``, ``round`` and ``tick``."""

# No table reads the other keys of these events.
COLUMNS |= {
    events.ROUND_ENDED: ("measures", "states", "timeouts", "fallbacks"),
    events.AGENTS_MEASURED: ("kind", "measure", "values", "quantiles"),
    events.TREATMENT_APPLIED: ("treatment", "parameters"),
    events.RUN_STARTED: ("seconds_per_round",),
}
COLUMNS |= {
    events.TREATMENT_ASSIGNED: ("experiment", "arm", "agent_id", "post_id"),
    events.POST_DISLIKED: ("post_id",),
    events.POST_VOTED: ("post_id", "likes", "dislikes"),
}

STAMP = ("timestamp", "round", "tick")

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch."""

_TIME = pl.Datetime("us", "UTC")

_AHEAD = 2
"""Number of blocks that are parsed while another is in use."""

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class RunLogs:
    """The opened logs of one run or several; made by `read_log`.

    Nothing is kept in memory. Every table takes one pass over the files. So does the first access
    to `runs` or `notes`, unless a table was made before.

    Args:
        paths: The logs, with the label of each.
        unreadable: Notes on the logs that could not be opened.
        copies: Files that are read instead of pipes.
    """

    _with_parameters = True

    def __init__(
        self,
        paths: Sequence[tuple[Path, str]],
        unreadable: Sequence[Note] = (),
        copies: Mapping[Path, TemporaryCopy] | None = None,
    ) -> None:
        self._paths = tuple(paths)
        self._copies = copies or {}
        self._unreadable = tuple(unreadable)
        self._runs: tuple[Run, ...] | None = None
        self._notes: tuple[Note, ...] | None = None
        self._foreign: set[str] = set()
        self._last_runs: dict[Path, LastRun] = {}
        self._remarks: dict[tuple[str, str], Note] = {}

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, in the order of the files; a file without events of prism has none."""
        return self._surveyed()[0]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on problems of the logs. Tables use everything else.

        Some notes appear only after a table has found them: `state_counts`, for example, finds
        agents whose transitions are missing.
        """
        return (*self._surveyed()[1], *self._remarks.values())

    def scan(self, event: str) -> pl.LazyFrame:
        """Return all events of one kind as a polars query.

        Args:
            event: A name from ``prism.telemetry.events``, such as ``post.published``, or that of
                an event of your own, such as ``world.sold``.

        Returns:
            A LazyFrame in the order of the logs, with ``run`` (if there are several; the parameters
            of their worlds follow it, as in `labelled`), ``line``, ``timestamp`` (UTC), ``round``,
            ``tick``, and every key that any of these events has. The keys of the schema come first,
            and are present even if no event has them. Other keys get the narrowest type that fits
            all their values: true or false, whole number, number, text, list of texts, or else JSON
            text. A key with the name ``run`` or ``line`` becomes ``key_run`` or ``key_line``.
            Collect it with ``engine="streaming"`` if the log is long.

            This method already reads the logs once, to find the keys.

        Raises:
            InputError: If prism has no such event and the logs have none either, or if such events
                have more than 1,000 different keys.
        """
        found, others = KeysFound(columns_of_schema(event)), set[str]()
        is_there = event in KNOWN_EVENTS
        own = None if is_known(event) else event
        for block, frame, _ in self._pass(["event"], own=own):
            lines = frame.filter(event=event)["line"]
            found.take(block, lines)
            is_there |= not lines.is_empty()
            if not is_there:
                others.update(frame["event"].unique())

        if not is_there:
            known = names_shown({*others, *self._foreign}) or "none at all"
            raise InputError(f"no event {event!r} in the logs; they have {known}", field="event")

        return self.scan_columns(event, found.columns())

    def scan_columns(self, event: str, columns: Sequence[Column]) -> pl.LazyFrame:
        """Return some columns of all events of one kind as a polars query; see `scan`."""
        types = {name: pl.UInt32() for name in ADDED} | {each.name: each.type for each in columns}
        schema = {**types, "run": pl.String()}

        def read(needed: Collection[str]) -> Iterator[pl.DataFrame]:
            return self._scanned(event, [each for each in columns if each.name in needed])

        query = query_of(read, schema=schema).with_columns(timestamp=parse_time("timestamp"))
        if not self._are_several():
            return query.drop("run")

        return self._with_values(query, list(schema))

    def blocks(self, *kinds: str, columns: Iterable[str]) -> Iterator[pl.DataFrame]:
        """Read all logs once, from first line to last, some megabytes at a time.

        Args:
            kinds: Names of the events to read; empty for all that prism knows.
            columns: Their keys; ``OWN_KEYS`` for those that a world gave its own events.

        Yields:
            Frames with ``run`` (the index in `runs`), ``line``, ``event`` and the columns. Times
            are text; objects are JSON text, and null in events whose ``COLUMNS`` do not name them.
            The first frame is empty, so there is always one.
        """
        condition = pl.col("event").is_in(kinds) if kinds else None
        yield from self.blocks_where(condition, columns=columns)

    def blocks_where(
        self,
        condition: pl.Expr | None,
        *,
        columns: Iterable[str],
        objects_where: pl.Expr | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Read all logs once, as `blocks` does, but only the events that meet a condition.

        Columns of objects are parsed for these events only, which saves much time if there are few.

        Args:
            condition: A condition on columns other than those of objects; None takes all events
                that prism knows.
            columns: Keys of the events.
            objects_where: Which of these events need their objects. They are null in the others,
                which saves more time. None takes all.

        Yields:
            Frames like those of `blocks`.
        """
        wanted = tuple(dict.fromkeys((*SURVEYED, *columns)))
        objects = [name for name in wanted if name in OBJECTS or name == OWN_KEYS]
        plain = [name for name in wanted if name not in objects]

        nothing = empty(wanted)
        yield nothing

        for block, frame, _ in self._pass(plain):
            found = frame if condition is None else frame.filter(condition)
            yield _with_objects(found, block, objects, objects_where).select(nothing.columns)

    def remark(self, note: Note) -> None:
        """Add a table's note to `notes`, replacing its earlier note on the same log."""
        self._remarks[note.kind, note.path] = note

    def labelled(self, table: pl.DataFrame) -> pl.DataFrame:
        """Replace the numbers of runs by their labels; drop the column if there is only one run.

        The parameters of worlds follow the column of the run. A parameter with the name of another
        column becomes ``parameter_`` and its name.
        """
        if not self._are_several():
            return table.drop("run")

        labels = table.with_columns(self._run_label().alias("run"))

        return self._with_values(labels.lazy(), table.columns).collect()

    def _pass(
        self, columns: Sequence[str], own: str | None = None
    ) -> Iterator[tuple[Block, pl.DataFrame, Path]]:
        """Read all logs once: their blocks, the events in each as columns, and the file."""
        runs: list[Run] = []
        notes = list(self._unreadable)
        foreign = set[str]()
        for path, label in self._paths:
            copy = self._copies.get(path)
            file = copy.path if copy else path
            survey = FileSurvey(path, label, len(runs), own)
            try:
                if path not in self._last_runs:
                    self._last_runs[path] = last_run(file)
                survey = FileSurvey(path, label, len(runs), own, self._last_runs[path])
                for block, frame in _read(file, columns, survey):
                    yield block, frame, path
            except InputError as error:
                notes.append(Note("unreadable", str(path), error.line, error.problem))

            runs += [] if survey.run is None else [survey.run]
            notes += survey.notes()
            foreign |= survey.foreign_names()

        # Known only after every log has been read to its end.
        self._runs, self._notes, self._foreign = tuple(runs), tuple(notes), foreign

    def _scanned(self, event: str, columns: Sequence[Column]) -> Iterator[pl.DataFrame]:
        """Read the events of one kind, with the labels of their runs."""
        plain = [each.key for each in columns if each.kind is None]
        others = [each for each in columns if each.kind is not None]
        labels = dict(self._paths)

        own = None if is_known(event) else event
        for block, frame, path in self._pass(["event", *plain], own=own):
            rows = frame.filter(event=event)
            # an application's own events belong to their file, which may have no run
            yield rows.with_columns(
                values_of(block, rows["line"], others), run=pl.lit(labels[path])
            )

    def _with_values(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        """Add the parameters of each run, by its label."""
        if not self._with_parameters:
            return table

        values = as_columns(parameters_apart(self.runs), otherwise="parameters")
        labels = [run.label for run in self.runs]
        added = {
            f"parameter_{name}" if name in columns else name: pl.col("run").replace_strict(
                labels, values[name], default=None, return_dtype=values.schema[name]
            )
            for name in values.columns
        }
        others = [name for name in columns if name != "run"]

        return table.select("run", *(value.alias(name) for name, value in added.items()), *others)

    def _run_label(self) -> pl.Expr:
        labels = {number: run.label for number, run in enumerate(self.runs)}
        return pl.col("run").replace_strict(labels, return_dtype=pl.String)

    def _are_several(self) -> bool:
        return len(self._paths) + len(self._unreadable) > 1

    def _surveyed(self) -> tuple[tuple[Run, ...], tuple[Note, ...]]:
        if self._runs is None or self._notes is None:
            for _ in self.blocks(columns=()):
                pass

        return self._runs or (), self._notes or ()


def read_log(*paths: PathLike[str] | str) -> RunLogs:
    """Open the logs of one run or several.

    Args:
        paths: Logs, plain or compressed with gzip, or folders of runs. A log that cannot be
            opened is reported in `RunLogs.notes`. A pipe, such as ``/dev/stdin``, is copied into a
            temporary file at once, since every table reads the log again.

    Returns:
        The logs, from which every function of `prism.analysis` makes its table.

    Raises:
        InputError: If no path is given, if the same log is given twice, or if none can be opened.
    """
    if not paths:
        raise InputError("no log given: give at least one run's folder or log")

    found: list[Path] = []
    copies: dict[Path, TemporaryCopy] = {}
    unreadable: list[Note] = []
    problem: InputError | None = None

    for path in paths:
        try:
            log = locate_log(path)
            if not log.is_file() and log not in copies:
                copies[log] = TemporaryCopy(log)
            found.append(log)
        except InputError as error:
            problem = problem or error
            unreadable.append(Note("unreadable", str(error.path), error.line, error.problem))

    if problem is not None and not found:
        raise problem

    _require_different(found)

    return RunLogs(list(zip(found, _labels(found), strict=True)), unreadable, copies)


def parse_time(name: str) -> pl.Expr:
    """Return a column of times as UTC times with microseconds; null if invalid.

    They are ISO 8601 texts, in UTC where they name no time zone, or seconds since the epoch.
    """
    return pl.col(name).map_batches(_times, _TIME, is_elementwise=True)


def _times(texts: pl.Series) -> pl.Series:
    zoned = texts.str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
    # nearly always, and the rest takes ten times as long
    if zoned.null_count() == texts.null_count():
        return zoned

    local = (texts.str.replace(" ", "T", literal=True) + "Z").str.to_datetime(
        "%+", time_unit="us", time_zone="UTC", strict=False
    )
    seconds = texts.cast(pl.Float64, strict=False)
    whole = seconds.set(~seconds.is_between(0, _LAST_SECOND), None) * 1_000_000
    epoch = whole.cast(pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return zoned.fill_null(local).fill_null(epoch)


def _read(
    path: Path, columns: Sequence[str], survey: FileSurvey
) -> Iterator[tuple[Block, pl.DataFrame]]:
    for block, parsed in _ahead(lambda block: (block, parse(block, columns)), read_blocks(path)):
        if block.fault is not None:
            survey.take_fault(block.first_line, block.fault)
        else:
            yield block, survey.take(block, parsed)


def _with_objects(
    frame: pl.DataFrame, block: Block, names: Sequence[str], where: pl.Expr | None
) -> pl.DataFrame:
    if not names:
        return frame

    kinds = [kind for kind, keys in COLUMNS.items() if not set(names).isdisjoint(keys)]
    has_objects = pl.col("event").is_in(kinds)
    if OWN_KEYS in names:
        has_objects |= pl.col("event").str.starts_with(WORLD_EVENTS)
    if where is not None:
        has_objects &= where

    lines = frame.select(pl.when(has_objects).then("line")).to_series()

    return frame.with_columns(objects_of(block, lines, names))


def _require_different(logs: Sequence[Path]) -> None:
    path, count = Counter(path.resolve() for path in logs).most_common(1)[0]
    if count > 1:
        raise InputError("is given more than once", path=path)


def _labels(logs: Sequence[Path]) -> list[str]:
    """Label each log by its folder or name, with enough of its path to be unique."""
    names = [_without_suffixes(log.absolute()) for log in logs]
    return distinct_ends(names if len(set(names)) == len(names) else logs)


def _without_suffixes(log: Path) -> Path:
    name = log.name.removesuffix(".gz")
    return log.parent if name == LOG_NAME else log.with_name(name.removesuffix(".jsonl"))


def _ahead(work: Callable[[ItemT], ResultT], items: Iterable[ItemT]) -> Iterator[ResultT]:
    """Return results in order, computing a few items ahead in other threads."""
    with ThreadPoolExecutor(_AHEAD) as pool:
        pending: deque[Future[ResultT]] = deque()
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > _AHEAD:
                yield pending.popleft().result()

        while pending:
            yield pending.popleft().result()
