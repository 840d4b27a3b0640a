"""Tables of ``prism log`` that are rearranged for drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from prism.cli._screen import evenly
from prism.errors import InputError

_MOST_MOMENTS = 8
_MOST_TIMES = 4
_RUN = "run"

_SHOWN_OF_FEED = (
    *("arm", "agent_id", "archetype", "state", "weighed", "decisions", "fallbacks"),
    *("posts", "replies", "reshares", "likes"),
)


def in_chart_order(table: Any, runs: Sequence[Path]) -> Any:
    """Return a table with a row per state in the order of the chart, as far as the log has it.

    Args:
        table: The table, in the order of the alphabet.
        runs: The runs whose table it is.
    """
    if not isinstance(table, pl.DataFrame) or "state" not in table.columns:
        return table
    if {"round", _RUN, "agent_id"} & {*table.columns}:
        return table

    places = {state: place for place, state in enumerate(_states_of(runs[0]))}
    order = pl.col("state").replace_strict(places, default=len(places), return_dtype=pl.Int64)
    return table.sort(order, maintain_order=True)


def _states_of(run: Path) -> Iterable[str]:
    """Return the states of a run's first round, which have the order of the charts."""
    from prism.files import parse_json
    from prism.runlog._reader import locate_log, read_blocks

    path = locate_log(run)
    if not path.is_file():  # a pipe has been read
        return ()

    inside: list[str] = []
    for block in read_blocks(path):
        for line in bytes(block.data).splitlines():
            if b'"event":"run.started"' in line[:80]:
                charts = parse_json(line.decode()).get("charts", {}).values()
                pairs = [pair for states in charts for pair in states.items()]
                inside = [name for around, states in pairs for name in (around, *states)]
            if b'"event":"round.ended"' in line[:80]:
                return (*inside, *parse_json(line.decode()).get("states", ()))

    return ()


def side_by_side(
    counts: pl.DataFrame, _given: Mapping[str, Any]
) -> tuple[pl.DataFrame, str | None]:
    """Put several times side by side: the ends of rounds, or the ticks of a single round.

    Returns:
        The table, and a hint if something is left out.
    """
    moment = [name for name in ("round", "tick", "time") if name in counts.columns]
    # Runs of different shape do not fit beside each other.
    if not counts.height or sum(counts.select(moment).null_count().row(0)):
        return counts, None

    ends, what = _last_ticks(counts) if moment == ["round", "tick"] else (counts, moment[-1])
    moments = ends[what].unique().sort()
    some = moments[evenly(moments.len(), _MOST_TIMES if what == "time" else _MOST_MOMENTS)]
    shown = ends.filter(pl.col(what).is_in(some.implode()))
    # Nor do runs of different times.
    if _RUN in counts.columns and shown[_RUN].n_unique() < counts[_RUN].n_unique():
        return counts, None

    places = f"{some.len()} of {moments.len()} {what}s"
    hint = f"Agents at the end of {places}; --format csv has them all"
    return _in_columns(shown, some, [what, *moment]), hint


def _in_columns(counts: pl.DataFrame, moments: pl.Series, times: list[str]) -> pl.DataFrame:
    """Return a column for each moment, which is a time of the first of these kinds."""
    what = times[0]
    title = pl.col(what).dt.strftime("%F %T") if what == "time" else pl.format(f"{what} {{}}", what)
    index = [name for name in counts.columns if name not in (*times, "agents", "share")]
    wide = counts.with_columns(moment=title).pivot(
        "moment", index=index, values="agents", maintain_order=True
    )
    return wide.select(*index, *moments.to_frame().select(title).to_series())


def _last_ticks(counts: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the last tick of each round of every run, if there are several rounds."""
    if counts["round"].n_unique() == 1:
        return counts, "tick"

    each = [name for name in (_RUN, "round") if name in counts.columns]
    return counts.filter(pl.col("tick") == pl.col("tick").max().over(each)), "round"


def upright(table: pl.DataFrame, given: Mapping[str, Any]) -> tuple[pl.DataFrame, None]:
    """Return a row for each measure and a column for each run, unless there are rounds."""
    if given["by_round"]:
        return table, None

    labels = table[_RUN].to_list() if _RUN in table.columns else ["value"]
    numbers = table.select(name for name in table.columns if name != _RUN)
    rows = [[name, *(_short(value) for value in numbers[name])] for name in numbers.columns]

    return pl.DataFrame(rows, schema=["measure", *labels], orient="row"), None


def _short(value: object) -> str | None:
    return f"{value:.4g}" if isinstance(value, float) else None if value is None else str(value)


def of_round(table: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return the rows of a round.

    Raises:
        InputError: If the table has none.
    """
    found = table.filter(round=number) if "round" in table.columns else table.clear()
    if not found.height:
        raise InputError(f"there is no round {number} in the log")

    return found


def sorted_by(table: pl.DataFrame, column: str, usual: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Return a table with the largest values of a column first.

    Args:
        table: The table.
        column: The column, which is added if it is one of the usual table alone.
        usual: Makes the table that a command shows without its options.

    Raises:
        InputError: If neither has such a column.
    """
    if column not in table.columns:
        whole = usual()
        if column not in whole.columns:
            known = ", ".join(dict.fromkeys([*table.columns, *whole.columns]))
            raise InputError(f"no column {column!r} to sort by: use one of {known}")
        keys = [name for name in ("run", "agent_id") if name in table.columns]
        table = table.join(whole.select(*keys, column), on=keys, how="left")

    return table.sort(column, descending=True, nulls_last=True, maintain_order=True)


def fields_at_first(
    table: pl.DataFrame, given: Mapping[str, Any]
) -> tuple[pl.DataFrame, str | None]:
    """Say which columns of a table of agents are as they were when the agents joined."""
    from prism.analysis._tables.agents import fields_in

    own = [] if given["entered"] else fields_in(table.columns)
    return table.rename({name: f"{name}_at_first" for name in own}), None


def columns_of_agents(table: pl.DataFrame, given: Mapping[str, Any]) -> Sequence[str]:
    """Return the columns of agents to draw, since a feed has more than fit."""
    if "archetype" in table.columns:
        return _SHOWN_OF_FEED

    drawn, _ = fields_at_first(table, given)
    return [each.name for each in drawn if each.name != "display_name" and each.count()]


def columns_of_decisions(_table: Any, given: Mapping[str, Any]) -> Sequence[str]:
    """Return the columns of decisions to draw: what they are grouped by, and those that fit."""
    figures = ("asked", "fallback_share", "latency_p50", "latency_p99", "latency_max", "entropy")
    return (*given["by"], *figures)
