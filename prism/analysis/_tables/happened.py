"""What happened in runs, in one pass: posts, likes and transitions with their ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, TableMerger, merge_by_first, merge_by_sum
from prism.analysis._tables.everybody import totals_of_everybody
from prism.errors import FieldValueError
from prism.telemetry import events

IN_ALL = ["run", "round"]
"""Keys of tables by round and overall; the round is null in rows for all rounds."""

KINDS = {"post": "posts", "reply": "replies", "reshare": "reshares"}
"""Names of the kinds of posts in tables."""

Part = Literal["posts", "likes", "transitions", "decisions", "measures"]

_COUNTED = ("transitions", "decisions")
"""Parts with so many rows that equal ones become one row with a count."""

_NO_ROUND = 2**62
"""A round that no run reaches."""

_STAMP = ("run", "round", "tick")
_POST = ("agent_id", "post_id", "kind", "parent_id", "root_id")
_STEP = ("chart", "from_state", "to_state", "trigger", "ticks_in_state")
_KEYS: dict[Part, tuple[str, tuple[str, ...]]] = {
    "posts": (events.POST_PUBLISHED, _POST),
    "likes": (events.POST_LIKED, ("agent_id", "post_id", "author_id")),
    "transitions": (events.TRANSITION, _STEP),
    "decisions": (events.DECISION, ("state", "source")),
    "measures": (events.ROUND_ENDED, ("measures", "agent_ticks")),
}


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened in runs.

    Args:
        agents: ``run`` (a number) and ``agent_id`` of every agent.
        rounds: ``run``, ``round`` and ``ticks`` of every included round, and the planned ticks of a
            round (``per_round``).
        tables: The requested tables, with ``run``, ``round`` and ``tick``: ``posts`` of all
            kinds in the order of the log; ``likes``; ``transitions`` and ``decisions`` with the
            ``count`` of equal ones; ``measures`` of worlds as JSON, with the ``agent_ticks`` of
            each round.
        started: Numbers of the runs that begin with ``run.started``.
        totals: What all agents did in each round of the runs whose logs cover only a
            sample, with the measures of rounds.
        from_round: First round to include.
    """

    agents: pl.DataFrame
    rounds: pl.DataFrame
    tables: dict[Part, pl.DataFrame]
    started: tuple[int, ...]
    totals: pl.DataFrame
    from_round: int = 1

    def counting(self, part: Part) -> pl.DataFrame:
        """Return what happened in the included rounds, and not before the first."""
        # only a simulation has events before the first round; in other logs, the round may be
        # missing
        is_early = pl.col("round") < pl.when(pl.col("run").is_in(self.started)).then(1).otherwise(0)
        is_early |= (pl.col("round") < self.from_round) & (self.from_round > 1)

        return self.tables[part].filter(~is_early.fill_null(value=False))


def what_happened(
    logs: RunLogs, *parts: Part, from_round: int = 1, to_round: int | None = None
) -> Happened:
    """Read some of the events of runs.

    Args:
        logs: The logs.
        parts: The tables that are needed, besides those of agents and rounds.
        from_round: First round to include.
        to_round: Last round to include; None for all.

    Raises:
        FieldValueError: If the first is not 1 or more, or the last comes before it.
    """
    _check_rounds(from_round, to_round)
    agents = merge_by_first(["run", "agent_id"])
    rounds = TableMerger(lambda tables: tables.group_by(IN_ALL).agg(pl.col("ticks").max()))
    mergers = {part: _merger(part) for part in parts}
    of_parts = (_KEYS[part][1] for part in parts)
    read = {*_STAMP[1:], "agent_id", "state", "trigger"}.union(*of_parts)
    has_object = pl.col("event") == events.ROUND_ENDED

    is_late = pl.col("round") > (_NO_ROUND if to_round is None else to_round)
    for block in logs.blocks_where(None, columns=sorted(read), objects_where=has_object):
        frame = block.filter(~is_late.fill_null(value=False))
        moves = pl.col("event").is_in(
            [events.AGENT_JOINED, events.TRANSITION, events.POST_PUBLISHED, events.POST_LIKED]
        )
        agents.add(frame.filter(moves).select("run", "agent_id").drop_nulls().unique())
        numbered = frame.filter(pl.col("round") >= from_round)
        rounds.add(numbered.group_by(IN_ALL).agg(ticks=pl.col("tick").max()))
        for part, merger in mergers.items():
            merger.add(_found(frame, part))

    tables = {part: merger.table() for part, merger in mergers.items()}
    totals = pl.DataFrame()
    if "measures" in tables:
        totals = totals_of_everybody(logs).filter(pl.col("round") >= from_round, ~is_late)
    started = tuple(number for number, run in enumerate(logs.runs) if run.started)

    return Happened(
        agents.table().sort("run", "agent_id"),
        _with_length(rounds.table(), logs).sort(IN_ALL),
        tables,
        started,
        totals,
        from_round,
    )


def _check_rounds(first: int, last: int | None) -> None:
    if first < 1:
        raise FieldValueError(f"from_round must be 1 or more, got {first}")
    if last is not None and last < first:
        raise FieldValueError(f"to_round must be {first} or more, got {last}")


def _with_length(rounds: pl.DataFrame, logs: RunLogs) -> pl.DataFrame:
    """Add the planned ticks of a round, or else those of the longest one."""
    said = pl.Series([run.ticks_per_round for run in logs.runs], dtype=pl.Int64)
    runs = pl.DataFrame({"said": said}).with_row_index("run")
    longest = pl.col("ticks").max().over("run")
    known = rounds.join(runs, on="run", how="left")

    return known.select(*IN_ALL, "ticks", per_round=pl.coalesce("said", longest))


def acts(happened: Happened) -> pl.DataFrame:
    """Return what agents wrote and liked: agent, ``what`` it is, and the post it is ``about``."""
    kind = pl.col("kind").replace_strict(KINDS, default=None)
    columns = (*_STAMP, "agent_id", "post_id")
    written = happened.counting("posts").select(*columns, what=kind, about="parent_id")
    liked = happened.counting("likes").select(*columns, what=pl.lit("likes"), about="post_id")

    return pl.concat([written, liked])


def acts_with_authors(happened: Happened) -> pl.DataFrame:
    """Return `acts` with the author of the post that each is about, if known."""
    posts, likes = happened.tables["posts"], happened.tables["likes"]
    authors = pl.concat(
        [
            posts.select("run", about="post_id", author_id="agent_id"),
            likes.select("run", about="post_id", author_id="author_id"),
        ]
    )
    known = authors.drop_nulls().unique(["run", "about"], keep="first", maintain_order=True)

    return acts(happened).join(known, on=["run", "about"], how="left")


def count_acts(done: pl.DataFrame, keys: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Count acts by some keys, with a column for each name of what was done."""
    return done.group_by(keys).agg(
        (pl.col("what") == name).sum().cast(pl.Int64).alias(name) for name in names
    )


def and_in_all(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a table twice: for their rounds, and for all rounds (null)."""
    in_all = table.with_columns(round=pl.lit(None, table.schema["round"]))
    return pl.concat([table.drop_nulls("round"), in_all])


def _merger(part: Part) -> TableMerger:
    if part in _COUNTED:
        return merge_by_sum([*_STAMP, *_KEYS[part][1]])

    return TableMerger(lambda tables: tables)


def _found(frame: pl.DataFrame, part: Part) -> pl.DataFrame:
    event, keys = _KEYS[part]
    rows = frame.filter(pl.col("event") == event).select(*_STAMP, *keys)

    return rows.group_by(rows.columns).agg(count=COUNT) if part in _COUNTED else rows
