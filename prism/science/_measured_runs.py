"""The runs of a comparison, each with its measures, from logs or from a batch."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

from prism.analysis import Log, read_log
from prism.errors import InputError
from prism.files._records import distinct_ends
from prism.runlog._reader import LOG_NAMES
from prism.science._batch import Batch, BatchRun, read_batch
from prism.science._batch_folder import BatchFolder
from prism.science._measure_names import MEASURES, OF_POSTS
from prism.science._plan_file import VARIED_SETTINGS
from prism.worlds._treatments import CONTROL

Source: TypeAlias = PathLike[str] | str
MeasureKind = Literal["own", "run", "state", "cost"]

ARM = "arm"
_COSTS = ("answers", "calls", "input_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run of a comparison, or an arm within it.

    Args:
        path: Its folder or log.
        seed: Its seed; None if its log does not contain it.
        rounds: The rounds that it has completed.
        ended: Whether it is complete.
        group: The label of its group.
        setting: The values of the other parameters of a batch, such as ``friends=4``, or empty.
        pair: What it has in common with its partners in other groups.
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
    pair: Hashable = None
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
    factors = _factors(batch.plan.data)
    if not factors:
        raise InputError("is only one group of runs: its plan varies nothing", path=folder)
    if by is not None and by not in factors:
        raise InputError(f"names {by!r}, but the runs vary {', '.join(factors)}", field="by")

    factor = by or factors[0]
    complete = [run for run in batch.runs if run.status == "complete"]
    runs = [_of_results(batch, run, from_round, to_round) for run in complete]
    paths = [folder / run.name for run in complete]
    known = set(chain.from_iterable(run.values for run in runs))
    if not known.issuperset(measures) and all(
        any((path / log).exists() for log in LOG_NAMES) for path in paths
    ):
        runs = [measured_run(path, from_round, to_round) for path in paths]

    grouped = []
    for run, measured in zip(complete, runs, strict=True):
        levels = {name: _level(run, name) for name in factors}
        label = _label(factor, levels.pop(factor))
        setting = ", ".join(f"{name}={value}" for name, value in levels.items())
        grouped.append(replace(measured, group=label, setting=setting, pair=run.seed))
    control = _label(factor, _level(batch.runs[0], factor))
    if control not in {run.group for run in grouped}:
        raise InputError(f"no run of {control} is complete, the first group", path=folder)
    left = len(batch.runs) - len(complete)
    notes = [f"{left} of {len(batch.runs)} runs are left out, since they are not complete"]
    return grouped, notes if left else []


def arms_within(paths: Sequence[Path]) -> list[ComparedRun]:
    """Return the arms to which runs have assigned posts, in pairs within each run, if there are."""
    found: list[ComparedRun] = []
    for path in paths:
        log = read_log(path)
        of_run = log.runs[0]
        for row in log.rows("arms"):
            run = ComparedRun(path, of_run.seed, of_run.rounds or 0, group=row[ARM], pair=path)
            for name in OF_POSTS:
                run.add("own", name, row[name])
            found.append(run)
    # the control comes first
    return sorted(found, key=lambda run: run.group != CONTROL)


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
    found = [[run for source in group for run in paths_of(source)] for group in given]
    if len(found) == 1:
        folders: dict[Path, list[Path]] = {}
        for path in found[0]:
            folders.setdefault(path.parent, []).append(path)
        names, found = [*folders], [*folders.values()]
    else:
        names = [
            _common(paths) if len(group) > 1 else Path(group[0])
            for group, paths in zip(given, found, strict=True)
        ]
    if len(found) < 2:
        problem = "is only one group of runs: give two, or a folder that holds several"
        raise InputError(problem, path=_common(found[0]))

    every = [path.resolve() for path in chain(*found)]
    for path in every:
        if every.count(path) > 1:
            problem = "is given more than once: each run belongs to only one group"
            raise InputError(problem, path=path)
    runs = (
        replace(measured_run(path, from_round, to_round), group=label)
        for label, paths in zip(distinct_ends(names), found, strict=True)
        for path in paths
    )
    return [replace(run, pair=run.seed) for run in runs]


def measured_run(path: Path, from_round: int, to_round: int | None) -> ComparedRun:
    """Measure one run by its log.

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

    rows = log.rows("measured_in", from_round, to_round)
    numbers = [row["round"] for row in rows if row["round"] is not None]
    completed = max(numbers, default=(log.runs[0].rounds or 0) if log.runs[0].ended else 0)
    # the last round of an incomplete log may be incomplete, too
    if not log.runs[0].ended and completed != to_round:
        completed = max(0, completed - 1)
    run = ComparedRun(path, log.runs[0].seed, completed, log.runs[0].ended)
    last = to_round or completed

    own = [name for name in rows[0] if name not in ("run", "round", *MEASURES)]
    for row in rows:
        for name in (*own, *MEASURES):
            if row["round"] is not None and from_round <= row["round"] <= last:
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
    agents: dict[str, dict[tuple[str, int], int]] = {}
    for row in log.rows("states"):
        if row["round"] is not None and first <= row["round"] <= last:
            chart = str(row.get("chart", ""))
            key = "_".join(filter(None, (chart, str(row["state"])))), row["round"]
            of_chart = agents.setdefault(chart, {})
            of_chart[key] = of_chart.get(key, 0) + row["agents"]
    for counts in agents.values():
        rounds: dict[int, int] = {}
        states: dict[str, int] = {}
        for (state, number), count in counts.items():
            rounds[number] = rounds.get(number, 0) + count
            states[state] = states.get(state, 0) + count
        for state, count in states.items():
            run.add("state", f"share_{state}", count / sum(rounds.values()))
        for (state, number), count in counts.items():
            run.add_round(f"share_{state}", number, count / rounds[number])


def _add_costs(run: ComparedRun, log: Log, first: int, last: int) -> None:
    """Add the use of models, if any was asked."""
    rows = [row for row in log.rows("costs_by", ["round"]) if first <= (row["round"] or 0) <= last]
    for name in _COSTS:
        values = {row["round"]: row[name] for row in rows if row[name] is not None}
        if values:
            run.add("cost", f"model_{name}", sum(values.values()))
        for number, value in values.items():
            run.add_round(f"model_{name}", number, value)


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


def _factors(plan: Mapping[str, Any]) -> list[str]:
    """Return what a plan varies, arms first."""
    levels = {ARM: plan.get(ARM, ()), **plan.get("vary", {})}
    return [name for name, values in levels.items() if len(values) > 1]


def _level(run: BatchRun, factor: str) -> Any:
    configuration = run.configuration
    if factor == ARM:
        return configuration.arm

    group = configuration.settings if factor in VARIED_SETTINGS else configuration.parameters
    return group[factor]


def _label(factor: str, level: Any) -> str:
    return str(level) if factor == ARM else f"{factor}={level}"


def paths_of(source: Source) -> list[Path]:
    """Return the runs that a path or pattern names, in the order of their names.

    Raises:
        InputError: If there is none.
    """
    path = Path(source)
    if not path.exists() and glob.has_magic(str(source)):
        matches = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207
        found = [run for match in sorted(matches, key=_natural) for run in paths_of(match)]
        if not found:
            raise InputError("matches no file", path=path)
        return found

    if not path.is_dir():
        read_log(path)  # says what is wrong
    if not path.is_dir() or any((path / name).is_file() for name in LOG_NAMES):
        return [path]

    # a set, since a folder may hold a log both plain and compressed
    below = {log.parent for name in LOG_NAMES for log in path.rglob(name)}
    if not below:
        raise InputError("holds no runs: give a run, or a folder with runs below it", path=path)

    return sorted(below, key=_natural)


def is_batch(source: Source) -> bool:
    """Return whether a path is the folder of a batch."""
    return BatchFolder(Path(source)).is_begun


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Return a key that puts ``seed-10`` after ``seed-9``."""
    parts = re.split(r"([0-9]+)", str(path))
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _common(runs: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(runs)) if len(runs) > 1 else runs[0]


def kinds_of(runs: Iterable[ComparedRun]) -> dict[str, MeasureKind]:
    """Return the measures of all runs with their kinds; the first run with one decides."""
    found: dict[str, MeasureKind] = {}
    for run in runs:
        found |= {name: kind for name, kind in run.kinds.items() if name not in found}
    return found
