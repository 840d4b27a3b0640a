"""All agents of a run as one table: where each is, and how often it did what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from threading import Lock
from time import monotonic
from typing import Any

import polars as pl
import polars.selectors as cs

from prism.analysis._reading.merging import TableMerger
from prism.analysis._reading.parsing import empty, objects_of, parse
from prism.analysis._reading.scanning import read_object
from prism.analysis._tables.happened import KINDS
from prism.drawing import Levels, showable
from prism.errors import InputError
from prism.runlog._reader import BLOCK_BYTES, Block
from prism.telemetry import events
from prism.watch import _looking as looking
from prism.watch._watched import Watched

MOST_ROWS = 100
"""Agents on one page of the table."""

_MOST_STATES = 40
_SECONDS = 1.5
_READ = ("event", "round", "agent_id", "state", "from_state", "to_state", "kind", "measure")


class AgentTable:
    """Counts of what every agent of a run did, brought up to date when they are asked for.

    Args:
        watched: The run.
        charts: Returns the charts of the run.
    """

    def __init__(self, watched: Watched, charts: Callable[[], Sequence[Levels]]) -> None:
        self._watched = watched
        self._charts = charts
        self._lock = Lock()
        self._begin(None, {})

    def page(
        self, words: str = "", sort: str = "", first: int | None = 0, number: int | None = None
    ) -> dict[str, Any]:
        """Return some of the agents, as far as the log could be counted in a short time.

        Args:
            words: Parts of their ids and states; each must be there.
            sort: The column to sort by, the lowest first, or after ``-`` the highest first.
            first: Agents to pass over.
            number: The round at whose end the states are told, once all of it was counted.

        Returns:
            ``columns``, ``rows``, the number of agents ``found``, and ``read``, the share of the
            log that was counted.

        Raises:
            InputError: If there is no such column.
        """
        with self._lock:
            read = self._count()
            table = self._table()
            if read == 1.0 and number is not None:
                places = looking.places_at(self._watched, number)
                states = pl.Series(map(places.get, table["agent"]), dtype=pl.String)
                table = table.with_columns(state=states)

        columns = {showable(name): name for name in table.columns}
        column = columns.get(sort.removeprefix("-"))
        # the columns of states come with the part of the log that names them
        if sort and column is None and read == 1.0:
            raise InputError(f"the table of agents has no column {sort[:80]!r}")
        named = pl.concat_str("agent", "state", separator=" ", ignore_nulls=True)
        for word in words.lower().split():
            table = table.filter(named.str.to_lowercase().str.contains(word, literal=True))
        if column is not None:
            is_falling = sort.startswith("-")
            table = table.sort(column, descending=is_falling, nulls_last=True, maintain_order=True)

        rows = table.slice(first or 0, MOST_ROWS)
        names = rows.with_columns(cs.string().map_elements(showable, return_dtype=pl.String))
        return {
            "columns": list(map(showable, table.columns)),
            "rows": names.rows(),
            "found": table.height,
            "read": read,
        }

    def _begin(self, tail: object, states: Mapping[str, Sequence[str]]) -> None:
        self._tail = tail
        self._states = states
        self._position = 0
        self._counts = TableMerger(_merged)
        self._counts.add(_counted(empty(_READ), states))
        self._measures: dict[str, dict[str, Any]] = {}

    def _count(self) -> float:
        """Count for a short time; return the share of the log that is counted then."""
        with self._watched.reading() as (tally, tail):
            places = sorted({*tally.joined(), *tally.table("traffic")["to_state"]})
            end, size = tally.end, tail.size
        states = self._states_of(places)
        if (tail, states) != (self._tail, self._states):
            self._begin(tail, states)

        until = monotonic() + _SECONDS
        for block, position in looking.blocks(self._watched, self._position, end):
            self._add(block)
            self._position = position
            if monotonic() > until:
                break

        is_all = self._position == end and size - end < BLOCK_BYTES
        return 1.0 if is_all else self._position / size

    def _states_of(self, places: Sequence[str]) -> dict[str, list[str]]:
        """Return where agents in each state are: there itself, or where it lies around them."""
        places = places[:_MOST_STATES]
        states = {place: [place] for place in places}
        nested = [chart for chart in self._charts() if chart.diagram.boxes]
        for chart, place in product(nested, places):
            for state in chart.active(place):
                states.setdefault(state, []).append(place)

        return states

    def _add(self, block: Block) -> None:
        frame = parse(block, _READ).frame
        self._counts.add(_counted(frame, self._states))
        measured = frame.filter(pl.col("event") == events.AGENTS_MEASURED).drop_nulls("measure")
        values = objects_of(block, measured["line"], ["values"])["values"]
        for measure, text in zip(measured["measure"], values, strict=True):
            self._measures.setdefault(measure, {}).update(read_object(text))

    def _table(self) -> pl.DataFrame:
        """Return the counts of all agents, without those that are zero for all of them."""
        counts = self._counts.table()
        table = counts.drop(name for name in _ACTS if not counts[name].sum())
        return table.with_columns(
            pl.Series(measure, map(values.get, table["agent"]), dtype=pl.Float64, strict=False)
            for measure, values in self._measures.items()
            if measure not in table.columns
        )


_ACTS = (*KINDS.values(), "likes", "decisions")


def _counted(frame: pl.DataFrame, states: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Count what each agent did in a part of the log."""
    event, source, target = (pl.col(name) for name in ("event", "from_state", "to_state"))
    moved = event == events.TRANSITION

    def enters(places: Sequence[str]) -> pl.Expr:
        was_there = source.is_in(places) & (source != target)
        return moved & target.is_in(places) & ~was_there.fill_null(value=False)

    # as in all tables, what is published before the first round is none of the run's
    published = (event == events.POST_PUBLISHED) & (pl.col("round").fill_null(1) > 0)
    counts = {
        "transitions": moved,
        **{f"entered {state}": enters(places) for state, places in states.items()},
        **{name: published & (pl.col("kind") == kind) for kind, name in KINDS.items()},
        "likes": event == events.POST_LIKED,
        "decisions": event == events.DECISION,
    }
    state = pl.when(event == events.AGENT_JOINED).then("state").otherwise(target)

    return (
        frame.drop_nulls("agent_id")
        .group_by(agent="agent_id", maintain_order=True)
        .agg(
            state.drop_nulls().last().alias("state"),
            *(found.sum().cast(pl.Int32).alias(name) for name, found in counts.items()),
        )
    )


def _merged(tables: pl.DataFrame) -> pl.DataFrame:
    by_agent = tables.group_by("agent", maintain_order=True)
    return by_agent.agg(pl.col("state").drop_nulls().last(), cs.numeric().sum())
