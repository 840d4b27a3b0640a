"""Find the runs of a comparison, and measure each of them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from prism.analysis import Log, read_log
from prism.errors import InputError
from prism.files._records import distinct_ends
from prism.runlog._reader import LOG_NAMES
from prism.science._comparison import ComparedRun, Measured, Source
from prism.science._measure_names import MEASURES

_COSTS = ("answers", "calls", "input_tokens", "output_tokens", "seconds")


def groups_of(sources: Sequence[Source | Sequence[Source]]) -> dict[str, list[Path]]:
    """Return the runs of each group, by the group's label.

    Args:
        sources: A run, its log, a folder with runs below it, a pattern, or several of these, for
            each group. In a single one, the folders that hold runs are the groups.

    Raises:
        InputError: If there is no such file, no run in it, or no second group.
    """
    each = [[source] if isinstance(source, PathLike | str) else list(source) for source in sources]
    found = [[run for source in group for run in runs_of(source)] for group in each]
    if len(found) == 1:
        return _by_folder(found[0])

    _refuse_twice(found)
    names = [
        _common(runs) if len(group) > 1 else Path(group[0])
        for group, runs in zip(each, found, strict=True)
    ]

    return dict(zip(distinct_ends(names), found, strict=True))


def measure_run(path: Path, from_round: int, to_round: int | None) -> Measured:
    """Measure one run.

    Args:
        path: Its folder or log.
        from_round: First round to include.
        to_round: Last round to include; None for all.

    Raises:
        InputError: If it cannot be read, or its log contains several runs or none.
    """
    log = read_log(path)
    if len(log.runs) != 1:
        problem = f"contains {len(log.runs)} runs: compare logs with one run each"
        raise InputError(problem, path=path)

    run = log.runs[0]
    both = pl.DataFrame(log.table("measured_in", from_round, to_round))
    last = both["round"].max()
    # no round is left of a run that ended before the first one to include
    if last is None and run.ended:
        last = run.rounds
    completed = last if isinstance(last, int) else 0
    # the last round of an incomplete log may be incomplete, too
    if not run.ended and completed != to_round:
        completed = max(0, completed - 1)
    measured = Measured(ComparedRun(path, run.seed, completed, run.ended))

    rows = (pl.col("round") >= from_round) & (pl.col("round") <= (to_round or completed))
    total = _add_measures(measured, both, rows)
    _add_states(measured, pl.DataFrame(log.table("states")).filter(rows))
    _add_costs(measured, pl.DataFrame(log.table("costs_by", ["round"])).filter(rows))
    _add_means(measured, log, total, from_round, to_round)
    _add_agents(measured, pl.DataFrame(log.table("agent_measures")).filter(rows))

    return measured


def _add_measures(measured: Measured, both: pl.DataFrame, rows: pl.Expr) -> Mapping[str, Any]:
    """Add the measures of every run, and those of worlds, which come first."""
    (total,) = both.filter(pl.col("round").is_null()).to_dicts()
    by_round = both.filter(rows).to_dicts()
    own = [name for name in both.columns if name not in ("round", *MEASURES)]
    for name in (*own, *MEASURES):
        measured.add("own" if name in own else "run", name, total[name])
        for row in by_round:
            measured.add_round(name, row["round"], row[name])

        values = list(measured.by_round.get(name, {}).values())
        if name in own and values:
            measured.add("own", f"{name}_mean", sum(values) / len(values))

    return total


def _add_states(measured: Measured, counts: pl.DataFrame) -> None:
    """Add the share of the agents in each state, over all ticks and in each round."""
    charts = [name for name in ("chart",) if name in counts.columns]
    ticks = counts.select("round", *charts, "state", "agents")
    both = pl.concat([ticks, ticks.with_columns(round=pl.lit(None, pl.Int64))])
    agents = pl.col("agents")
    summed = both.group_by(["round", *charts, "state"], maintain_order=True).agg(agents.sum())
    shares = summed.with_columns(share=agents / agents.sum().over(["round", *charts]))

    for row in shares.to_dicts():
        name = "_".join(["share", *(str(row[key]) for key in (*charts, "state"))])
        if row["round"] is None:
            measured.add("state", name, row["share"])
        else:
            measured.add_round(name, row["round"], row["share"])


def _add_costs(measured: Measured, table: pl.DataFrame) -> None:
    """Add the use of models, if any was asked."""
    for name in _COSTS if table.height else ():
        if table[name].null_count() < table.height:
            measured.add("cost", f"model_{name}", table[name].sum())
            for number, value in table.select("round", name).iter_rows():
                measured.add_round(f"model_{name}", number, value)


# the end of a round cuts visits short
_TICKS = """
select {chart} from_state, avg(ticks_in_state) from events
where event = 'statechart.transition' and "trigger" is distinct from 'round_ends'
  and from_state <> to_state and ticks_in_state is not null
  and coalesce(round between greatest({first}, {least}) and {last}, {first} = 1)
group by all order by all
"""


def _add_means(
    measured: Measured, log: Log, total: Mapping[str, Any], first: int, last: int | None
) -> None:
    """Add how large cascades were, how much agents wrote, and how long they stayed in states."""
    if total["cascades"]:
        measured.add("mean", "posts_of_cascade", total["cascade_size"])
        measured.add("mean", "posts_of_agent", total["written"] / total["agents"])

    several = log.sql("select count(distinct chart) > 1 from events where to_state is not null")
    chart = "chart," if several.fetchall()[0][0] else ""
    least = int(log.runs[0].started)
    query = _TICKS.format(chart=chart, first=first, least=least, last=last or 1 << 40)
    for *key, ticks in log.sql(query).fetchall():
        measured.add("mean", "_".join(["ticks_in", *map(str, key)]), ticks)


def _add_agents(measured: Measured, table: pl.DataFrame) -> None:
    """Add the means of the measures of agents in the last round, of many by their quantiles."""
    last = table.filter(pl.col("round") == pl.col("round").max())
    for (kind, name), rows in last.group_by(["kind", "measure"], maintain_order=True):
        found = rows.drop_nulls("quantile").sort("quantile")
        values = (found if found.height else rows)["value"].drop_nulls()
        # the outermost quantiles stand for half as many agents as each of the others
        inner = values.slice(1) + values.slice(0, values.len() - 1) if found.height else 2 * values
        mean = (inner / 2).mean()
        measured.add("mean", f"{name}_of_{str(kind).lower()}", mean)


def _runs_matching(pattern: Path) -> list[Path]:
    matches = map(Path, glob.glob(str(pattern), recursive=True))  # noqa: PTH207
    found = [run for match in sorted(matches, key=_natural) for run in runs_of(match)]
    if not found:
        raise InputError("matches no file", path=pattern)

    return found


def runs_of(source: Source) -> list[Path]:
    """Return the runs that a path or pattern names, in the order of their names.

    Raises:
        InputError: If there is none.
    """
    path = Path(source)
    if not path.exists() and glob.has_magic(str(source)):
        return _runs_matching(path)

    if not path.is_dir():
        read_log(path)  # says what is wrong
    if not path.is_dir() or any((path / name).is_file() for name in LOG_NAMES):
        return [path]

    # a set, since a folder may hold a log both plain and compressed
    below = {log.parent for name in LOG_NAMES for log in path.rglob(name)}
    if not below:
        raise InputError("holds no runs: give a run, or a folder with runs below it", path=path)

    return sorted(below, key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Return a key that puts ``seed-10`` after ``seed-9``."""
    parts = re.split(r"([0-9]+)", str(path))
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _by_folder(runs: Sequence[Path]) -> dict[str, list[Path]]:
    """Return runs by the folders that hold them."""
    folders: dict[Path, list[Path]] = {}
    for run in runs:
        folders.setdefault(run.parent, []).append(run)
    if len(folders) < 2:
        problem = "is only one group of runs: give two, or a folder that holds several"
        raise InputError(problem, path=_common(runs))

    return dict(zip(distinct_ends(list(folders)), folders.values(), strict=True))


def _common(runs: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(runs)) if len(runs) > 1 else runs[0]


def _refuse_twice(groups: Sequence[Sequence[Path]]) -> None:
    seen: set[Path] = set()
    for run in (run.resolve() for group in groups for run in group):
        if run in seen:
            raise InputError(
                "is given more than once: each run belongs to only one group", path=run
            )
        seen.add(run)
