"""A run in counts: what its log comes to, round by round, without keeping its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from prism.analysis._reading.merging import COUNT, TableMerger, merge_by_first, merge_by_sum
from prism.analysis._reading.parsing import TYPES, Parsed, parse
from prism.analysis._reading.runs import Run
from prism.analysis._reading.survey import SURVEYED, FileSurvey
from prism.analysis._tables import faults
from prism.analysis._tables.decisions import COSTS, sums
from prism.analysis._tables.states import closes_round, how_closing
from prism.report._facts.pictures import groups_in
from prism.runlog._events import EVENTS, WORLD_EVENTS
from prism.runlog._prompts import read_line
from prism.runlog._reader import Block, last_run
from prism.telemetry import events
from prism.watch._index import NAMING, Index, Lines, Read

COUNTED = (*COSTS, "request_seconds")
_COLUMNS = tuple(
    dict.fromkeys(
        (*SURVEYED, *NAMING, "round", "tick", "ticks_in_state", *faults.READ, "model", *COUNTED)
    )
)
_OF_ALL = (*SURVEYED, "round", "tick", "agent_id")
_KEYS = {event.name: [key.name for key in event.keys] for event in EVENTS}
_ASKED = ["run", "round", "state", "chosen", "model", "source", "reason", "event"]
_TRAFFIC = ["run", "round", "chart", "from_state", "to_state", "trigger", "closes"]
_AGENT = ("chart", "agent_id")
_KEPT_WHOLE = (events.ROUND_ENDED, events.TREATMENT_APPLIED)
_FREQUENT = (events.TRANSITION, events.DECISION, events.POST_WEIGHED)
"""Nearly all lines of a long log: what is sought among the others is found at little cost."""


class Tally:
    """The counts of one run.

    Args:
        path: The log.
        label: The run's name.

    Attributes:
        ends: What ``round.ended`` says of each round, by its number.
        begins: Where each round begins in the log, in bytes, in the order of the log.
        treated: The events of treatments, in the order of the log.
        pictures: Where the picture of each round is in the log: its first byte and the one behind.
        groups: The groups of agents in the pictures, in the order in which they came.
        survey: The run of the log, and what is wrong with it.
        index: Where the lines of each agent and post are.
        end: Where the next line begins in the log, in bytes.
        tick: Tick of the last line.
    """

    def __init__(self, path: Path, label: str) -> None:
        self.ends: dict[int, Mapping[str, Any]] = {}
        self.begins: dict[int, int] = {}
        self.treated: list[Mapping[str, Any]] = []
        self.pictures: dict[int, tuple[int, int]] = {}
        self.groups: dict[str, None] = {}
        self.index: Index = Index()
        self.end: int = 0
        self.tick: int | None = None
        self._columns = [*_OF_ALL]
        self.survey: FileSurvey = FileSurvey(path, label, 0, last=last_run(path))
        self._counts: dict[str, TableMerger | faults.FaultCounts] = {
            "traffic": merge_by_sum(_TRAFFIC),
            "asked": merge_by_sum(_ASKED),
            "faults": faults.FaultCounts(),
            "own": merge_by_sum(["run", "event", "round"]),
            "joined": merge_by_sum(["state"]),
            "begun": merge_by_first(_AGENT),
        }
        self.take(Block(b"", 1, 0), 0)

    def take(self, block: Block, offset: int) -> None:
        """Add some lines.

        Args:
            block: The lines.
            offset: Where they begin in the log, in bytes.
        """
        if block.fault is not None:
            self.survey.take_fault(block.first_line, block.fault)
            return

        self.end = offset + len(block.data)
        frame = self.survey.take(block, self._parsed(block))
        lines = Lines(block, offset)

        def read(begin: int, end: int) -> bytes:
            return block.data[begin - offset : end - offset]

        rare = frame.filter(~pl.col("event").is_in(_FREQUENT))
        self._note(lines, read, frame, rare)
        self.index.add(lines, frame, rare)
        tables = pl.collect_all(self._counting(frame.lazy(), rare.lazy()))
        for counts, table in zip(self._counts.values(), tables, strict=True):
            if table.height or not offset:
                counts.add(table)

    def put_end(self, line: bytes) -> None:
        """Add the last ``round.ended`` before the lines are read that lead to it."""
        event = read_line(line) or {}
        if event.get("event") == events.ROUND_ENDED:
            self._keep(event)

    @property
    def known_run(self) -> Run | None:
        """The run, as far as the log describes it; None before its first line."""
        return self.survey.run

    def rounds(self) -> list[int]:
        """Return the rounds that have begun or ended, in order."""
        return sorted({*self.begins, *self.ends})

    def table(self, name: str) -> pl.DataFrame:
        """Return all counts of a kind.

        Args:
            name: ``traffic`` (transitions by ``round``, ``chart``, states and ``trigger``;
                ``closes`` says whether they came after the states of the round were counted),
                ``asked`` (decisions and texts by what tells them apart), ``faults`` (see
                `prism.analysis.faults`) or ``own`` (events that a world has logged, by round).
        """
        return self._counts[name].table().drop("run")

    def joined(self) -> dict[str, int]:
        """Return how many agents began in each state; one that did not join, before it moved."""
        begun = self._counts["begun"].table().group_by("from_state").agg(COUNT)
        return dict(self._counts["joined"].table().iter_rows()) or dict(begun.iter_rows())

    def events(self) -> dict[str, int]:
        """Return how many events of each name there are."""
        return dict(self.survey.events)

    def _parsed(self, block: Block) -> Parsed:
        """Parse some lines; a column that no event so far has would only take time."""
        parsed = parse(block, self._columns)
        keys = {key for event in parsed.frame["event"].unique() for key in _KEYS.get(event, ())}
        if more := keys.intersection(_COLUMNS).difference(self._columns):
            self._columns += sorted(more)
            parsed = parse(block, self._columns)

        missing = {
            name: pl.lit(None, TYPES[name]) for name in _COLUMNS if name not in self._columns
        }
        return replace(parsed, frame=parsed.frame.with_columns(**missing))

    def _counting(self, rows: pl.LazyFrame, rare: pl.LazyFrame) -> list[pl.LazyFrame]:
        """Return what is to be added to each of all counts."""
        run, event = self.known_run, pl.col("event")
        closes = closes_round(None if run is None else run.ticks_per_round)
        moves = rows.filter(event == events.TRANSITION).drop_nulls(["from_state", "to_state"])
        moves = moves.with_columns(how_closing()).with_columns(closes=closes)
        others = rows.filter(event != events.TRANSITION)
        asked = others.filter(event.is_in([events.DECISION, events.TEXT_WRITTEN]))
        own = rare.filter(event.str.starts_with(WORLD_EVENTS))
        own = own.with_columns(event.str.strip_prefix(WORLD_EVENTS))
        joined = rare.filter(event == events.AGENT_JOINED).drop_nulls("state")
        # those of a loop of one's own do not join
        begun = moves.head(0) if events.AGENT_JOINED in self.survey.events else moves
        begun = begun.drop_nulls("agent_id").unique(_AGENT, keep="first")

        return [
            moves.group_by(_TRAFFIC).agg(count=COUNT),
            asked.group_by(_ASKED).agg(asked=COUNT, **sums({name: name for name in COUNTED})),
            others.filter(faults.is_fault()),
            own.group_by("run", "event", "round").agg(events=COUNT, agents=pl.lit(0, pl.Int64)),
            joined.group_by("state").agg(agents=COUNT),
            begun.select(*_AGENT, "from_state"),
        ]

    def _note(self, lines: Lines, read: Read, frame: pl.DataFrame, rare: pl.DataFrame) -> None:
        numbered = frame.select("line", "round", "tick").drop_nulls("round")
        if numbered.height:
            self.tick = numbered["tick"][-1]

        changes = pl.col("round").ne_missing(pl.col("round").shift())
        for number, line in numbered.filter(changes).select("round", "line").iter_rows():
            if number not in self.begins:
                self.begins[number], _ = lines.find(line, read)
        pictures = rare.filter(event=events.AGENTS_PICTURED).drop_nulls("round")
        for number, line in pictures.select("round", "line").iter_rows():
            begin, text = lines.find(line, read)
            self.pictures[number] = begin, begin + len(text)
            self.groups.update(dict.fromkeys(groups_in(text)))
        for line in rare.filter(pl.col("event").is_in(_KEPT_WHOLE))["line"]:
            self._keep(read_line(lines.find(line, read)[1]) or {})

    def _keep(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == events.TREATMENT_APPLIED:
            self.treated.append(event)
        elif isinstance(event.get("round"), int):
            self.ends[event["round"]] = event
