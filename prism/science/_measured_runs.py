"""The runs of a comparison, each with its measures, from logs or from a batch."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

from prism.analysis import Log, read_log
from prism.errors import InputError
from prism.files._records import distinct_ends
from prism.runs import find_runs
from prism.runs._status import is_run
from prism.science._batch import Batch, BatchRun, read_batch
from prism.science._measure_names import MEASURES
from prism.science._plan_file import VARIED_SETTINGS

Source: TypeAlias = PathLike[str] | str
MeasureKind = Literal["own", "run", "state", "cost"]

ARM = "arm"
_COSTS = ("answers", "calls", "input_tokens", "output_tokens", "seconds")

_SHARES = """
select chart, state, round,
       sum(agents) / sum(sum(agents)) over (partition by chart, round) as share
from states where round between $first and $last
group by grouping sets ((chart, state, round), (chart, state))
order by chart nulls first, state, round
"""
"""The share of the agents in each state: in each round, and over all ticks with round null."""


@dataclass(slots=True)
class ComparedRun:
    """A run of a comparison.

    Args:
        path: Its folder or log.
        seed: Its seed; None if its log does not contain it.
        rounds: The rounds that it has completed.
        ended: Whether it is complete.
        group: The label of its group.
        setting: The values of the other parameters of a batch, such as ``friends=4``, or empty.
        kinds: The kind of each measure.
        values: The value of each measure.
        by_round: The values of measures by round.
    """

    path: Path
    seed: int | None
    rounds: int
    ended: bool = True
    group: str = ""
    setting: str = ""
    kinds: dict[str, MeasureKind] = field(default_factory=dict, repr=False)
    values: dict[str, float] = field(default_factory=dict, repr=False)
    by_round: dict[str, dict[int, float]] = field(default_factory=dict, repr=False)

    def add(self, kind: MeasureKind, name: str, value: object) -> None:
        """Add a measure; anything but a number is left out."""
        if isinstance(value, int | float):
            self.kinds[name] = kind
            self.values[name] = float(value)

    def add_round(self, name: str, number: int, value: object) -> None:
        """Add the value of a measure in one round."""
        if isinstance(value, int | float):
            self.by_round.setdefault(name, {})[number] = float(value)

    def add_own(self, name: str) -> None:
        """Add a measure of the world from its rounds: the last value, and their mean."""
        if values := [*self.by_round.get(name, {}).values()]:
            self.add("own", name, values[-1])
            self.add("own", f"{name}_mean", fmean(values))


def runs_of_batch(
    folder: Path, by: str | None, measures: Iterable[str], from_round: int, to_round: int | None
) -> tuple[list[ComparedRun], list[str]]:
    """Return the complete runs of a batch, grouped by a factor of its plan, and notes.

    Args:
        folder: The folder of the batch.
        by: The factor; by default the arms, or else the first that the plan varies.
        measures: The measures that are asked for.
        from_round: First round to include.
        to_round: Last round to include.

    Raises:
        InputError: If there is no such factor, or the batch varies nothing.
    """
    batch = read_batch(folder)
    levels = {ARM: batch.plan.data.get(ARM, ()), **batch.plan.data.get("vary", {})}
    factors = [name for name, values in levels.items() if len(values) > 1]
    if not factors:
        raise InputError("is only one group of runs: its plan varies nothing", path=folder)
    if by is not None and by not in factors:
        raise InputError(f"names {by!r}, but the runs vary {', '.join(factors)}", field="by")

    factor = by or factors[0]
    complete = [run for run in batch.runs if run.status == "complete"]
    runs = [_of_results(batch, run, from_round, to_round) for run in complete]
    known = set(chain.from_iterable(run.values for run in runs))
    if not known.issuperset(measures) and all(is_run(run.path) for run in runs):
        runs = [measured_run(run.path, from_round, to_round) for run in runs]
    for run, of_batch in zip(runs, complete, strict=True):
        others = [name for name in factors if name != factor]
        run.group = _label(of_batch, factor)
        run.setting = ", ".join(f"{name}={_level(of_batch, name)}" for name in others)

    control = _label(batch.runs[0], factor)
    if control not in {run.group for run in runs}:
        raise InputError(f"no run of {control} is complete, the first group", path=folder)
    left = len(batch.runs) - len(complete)
    notes = [f"{left} of {len(batch.runs)} runs are left out, since they are not complete"]
    return runs, notes if left else []


def runs_of_groups(
    sources: Sequence[Source | Sequence[Source]], from_round: int, to_round: int | None
) -> list[ComparedRun]:
    """Return the runs of each group, measured by their logs.

    Args:
        sources: A run, its log, a folder with runs below it, a pattern, or several of these, for
            each group. In a single one, the folders that hold runs are the groups.
        from_round: First round to include.
        to_round: Last round to include.

    Raises:
        InputError: If there is no such file, no run in it, no second group, or a run is in two.
    """
    given = [[source] if isinstance(source, PathLike | str) else [*source] for source in sources]
    found = [[run for source in group for run in _paths_of(source)] for group in given]
    names = [
        Path(group[0]) if len(group) == 1 else _common(paths)
        for group, paths in zip(given, found, strict=True)
    ]
    if len(found) == 1:
        names = [*dict.fromkeys(path.parent for path in found[0])]
        found = [[path for path in found[0] if path.parent == name] for name in names]
    if len(found) < 2:
        problem = "is only one group of runs: give two, or a folder that holds several"
        raise InputError(problem, path=_common(found[0]))

    every = [path.resolve() for path in chain(*found)]
    for path in every:
        if every.count(path) > 1:
            problem = "is given more than once: each run belongs to only one group"
            raise InputError(problem, path=path)
    runs = []
    for label, paths in zip(distinct_ends(names), found, strict=True):
        for path in paths:
            runs.append(measured_run(path, from_round, to_round))
            runs[-1].group = label
    return runs


def measured_run(path: Path, from_round: int, to_round: int | None) -> ComparedRun:
    """Measure one run by its log.

    Args:
        path: Its folder or log.
        from_round: First round to include.
        to_round: Last round to include; None for all.

    Raises:
        InputError: If it cannot be read, or its log contains no run.
    """
    log = read_log(path)
    if len(log.runs) != 1:
        problem = f"contains {len(log.runs)} runs: compare logs with one run each"
        raise InputError(problem, path=path)

    (of_run,), rows = log.runs, log.rows("measured_in", from_round, to_round)
    completed = max((row["round"] or 0 for row in rows), default=0)
    if of_run.ended:
        completed = completed or of_run.rounds or 0
    elif completed != to_round:
        # the last round of an incomplete log may be incomplete, too
        completed = max(0, completed - 1)
    run = ComparedRun(path, of_run.seed, completed, of_run.ended)
    last = to_round or completed

    own = [name for name in rows[0] if name not in ("run", "round", *MEASURES)]
    for row in rows:
        if row["round"] is not None and from_round <= row["round"] <= last:
            for name in (*own, *MEASURES):
                run.add_round(name, row["round"], row[name])
    # measures of the world come first
    for name in own:
        run.add_own(name)
    total = next(row for row in rows if row["round"] is None)
    for name in MEASURES:
        run.add("run", name, total[name])
    _add_states(run, log, from_round, last)
    _add_costs(run, log, from_round, last)
    return run


def _add_states(run: ComparedRun, log: Log, first: int, last: int) -> None:
    """Add the share of the agents in each state, over all ticks and in each round."""
    shares = log.sql(_SHARES, first=first, last=last).fetchall()
    has_charts = len({chart for chart, *_ in shares}) > 1
    for chart, state, number, share in shares:
        name = "_".join(["share", *[str(chart)] * has_charts, state])
        if number is None:
            run.add("state", name, share)
        else:
            run.add_round(name, number, share)


def _add_costs(run: ComparedRun, log: Log, first: int, last: int) -> None:
    """Add the use of models, if any was asked."""
    rows = [row for row in log.rows("costs_by", ["round"]) if first <= (row["round"] or 0) <= last]
    for name in _COSTS:
        for row in rows:
            run.add_round(f"model_{name}", row["round"], row[name])
        if values := run.by_round.get(f"model_{name}"):
            run.add("cost", f"model_{name}", sum(values.values()))


def _of_results(batch: Batch, run: BatchRun, from_round: int, to_round: int | None) -> ComparedRun:
    """Return a run of a batch with the measures in its results."""
    results: Mapping[str, Any] = run.row["results"]
    found = ComparedRun(batch.folder / run.name, run.seed, len(results["rounds"]))
    last = to_round or found.rounds
    own: dict[str, None] = {}
    for each in results["rounds"]:
        measures = each.get("measures", {})
        own |= dict.fromkeys(measures)
        for name, value in {**measures, **each}.items():
            if name != "round" and from_round <= each["round"] <= last:
                found.add_round(name, each["round"], value)
    # measures of the world come first
    for name in own:
        found.add_own(name)
    for name, by_round in found.by_round.items():
        if name not in own:
            found.add("run", name, sum(by_round.values()))
    return found


def _level(run: BatchRun, factor: str) -> Any:
    configuration = run.configuration
    if factor == ARM:
        return configuration.arm
    group = configuration.settings if factor in VARIED_SETTINGS else configuration.parameters
    return group[factor]


def _label(run: BatchRun, factor: str) -> str:
    level = _level(run, factor)
    return str(level) if factor == ARM else f"{factor}={level}"


def _paths_of(source: Source) -> list[Path]:
    """Return the runs that a path or pattern names, in the order of their names.

    Raises:
        InputError: If there is none.
    """
    path = Path(source)
    if not path.exists() and glob.has_magic(str(source)):
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural)  # noqa: PTH207
        if not matches:
            raise InputError("matches no file", path=path)
        return [run for match in matches for run in _paths_of(match)]

    if not path.is_dir() or is_run(path):
        return [path]
    if below := sorted(find_runs(path), key=_natural):
        return below
    raise InputError("holds no runs: give a run, or a folder with runs below it", path=path)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Return a key that puts ``seed-10`` after ``seed-9``."""
    parts = re.split(r"([0-9]+)", str(path))
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _common(runs: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(runs)) if len(runs) > 1 else runs[0]
