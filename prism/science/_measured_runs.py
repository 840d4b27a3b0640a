"""The runs of a comparison, each with its measures, from their folders or from a batch."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

from prism.errors import InputError
from prism.files.records import distinct_ends
from prism.runs import find_runs
from prism.runs.folder import read_summary
from prism.science._batch import read_batch
from prism.science._plan_file import VARIED_SETTINGS
from prism.science.batch_tables import BatchRun, is_of_a_feed, with_log_measures

Source: TypeAlias = PathLike[str] | str
MeasureKind = Literal["own", "run", "state", "cost"]

ARM = "arm"
_STATES = "states"


@dataclass(slots=True)
class ComparedRun:
    """A run of a comparison.

    Args:
        path: Its folder.
        seed: Its seed.
        rounds: The rounds that it has completed; 0 if it has not ended.
        group: The label of its group.
        setting: The values of the other parameters of a batch, such as ``friends=4``, or empty.
        kinds: The kind of each measure.
        values: The value of each measure.
        by_round: The values of measures by round.
        inputs: The digests of the files that it reads.
    """

    path: Path
    seed: int
    rounds: int
    group: str = ""
    setting: str = ""
    kinds: dict[str, MeasureKind] = field(default_factory=dict, repr=False)
    values: dict[str, float] = field(default_factory=dict, repr=False)
    by_round: dict[str, dict[int, float]] = field(default_factory=dict, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)

    def add(self, kind: MeasureKind, name: str, value: object) -> None:
        """Add a measure; anything but a number is left out."""
        if isinstance(value, int | float):
            self.kinds[name] = kind
            self.values[name] = float(value)

    def add_round(self, name: str, number: int, value: object) -> None:
        """Add the value of a measure in one round."""
        if isinstance(value, int | float):
            self.by_round.setdefault(name, {})[number] = float(value)


def runs_of_batch(
    folder: Path, by: str | None, from_round: int, to_round: int | None
) -> tuple[list[ComparedRun], list[str]]:
    """Return the complete runs of a batch, grouped by a factor of its plan, and notes.

    Args:
        folder: The folder of the batch.
        by: The factor; by default the arms, or else the first that the plan varies.
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
    runs = [
        _measured(folder / run.name, run.seed, run.row, from_round, to_round) for run in complete
    ]
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
    """Return the runs of each group, measured by their results.

    Args:
        sources: A run, a folder with runs below it, a pattern, or several of these, for
            each group. In a single one, the folders that hold runs are the groups.
        from_round: First round to include.
        to_round: Last round to include.

    Raises:
        InputError: If there is no such file, no run in it, no second group, or a run is in two.
    """
    listed = [[source] if isinstance(source, PathLike | str) else [*source] for source in sources]
    groups = [[run for source in group for run in _paths_of(source)] for group in listed]
    names = [
        Path(group[0]) if len(group) == 1 else _common(paths)
        for group, paths in zip(listed, groups, strict=True)
    ]
    if len(groups) == 1:
        names = [*dict.fromkeys(path.parent for path in groups[0])]
        groups = [[path for path in groups[0] if path.parent == name] for name in names]
    if len(groups) < 2:
        problem = "is only one group of runs: give two, or a folder that holds several"
        raise InputError(problem, path=_common(groups[0]))

    every = [path.resolve() for path in chain(*groups)]
    for path in every:
        if every.count(path) > 1:
            problem = "is given more than once: each run belongs to only one group"
            raise InputError(problem, path=path)
    runs = []
    for label, paths in zip(distinct_ends(names), groups, strict=True):
        for path in paths:
            summary = read_summary(path)
            seed = summary["config"].get("seed", 0)
            runs.append(_measured(path, seed, summary, from_round, to_round))
            runs[-1].group = label
    return runs


def _measured(
    path: Path, seed: int, row: Mapping[str, Any], from_round: int, to_round: int | None
) -> ComparedRun:
    """Measure one run by its results.

    Args:
        path: Its folder.
        seed: Its seed.
        row: ``results`` and ``spent``, as ``run.json`` and the rows of a batch have them.
        from_round: First round to include.
        to_round: Last round to include; None for all.
    """
    results = row.get("results", {})
    if is_of_a_feed(results) and find_runs(path) == [path]:
        results = with_log_measures(results, path, from_round, to_round)
    rounds = results.get("rounds", ())
    inputs = row.get("config", {}).get("inputs", {})
    run = ComparedRun(path, seed, len(rounds), inputs=inputs)
    last = to_round or len(rounds)
    included = [each for each in rounds if from_round <= each["round"] <= last]
    for each in included:
        _add_round(run, each)

    _add_whole(run, included, results.get("measures", {}))
    # a run that goes on from another has the answers of both, and the cost of its own
    goes_on = "repeats" in row.get("config", {})
    for name, value in () if goes_on else row.get("spent", {}).items():
        run.add("cost", f"model_{name}", value)
    return run


def _add_whole(
    run: ComparedRun, rounds: Sequence[Mapping[str, Any]], measures: Mapping[str, Any]
) -> None:
    """Add the measures, the counts and the shares of all rounds that are included.

    A measure of the world has its name before anything else that is called so.
    """
    # measures of the world come first
    named = dict.fromkeys(name for each in rounds for name in each.get("measures", {}))
    for name in named:
        values = run.by_round.get(name, {})
        run.add("own", name, values.get(rounds[-1]["round"]))
        if values and f"{name}_mean" not in named:
            run.add("own", f"{name}_mean", fmean(values.values()))
    for name, value in measures.items():
        if name not in named:
            run.add("run", name, value)
    others = {name: each for name, each in run.by_round.items() if name not in {*named, *run.kinds}}
    for name, by_round in others.items():
        if name.startswith("share_"):
            run.add("state", name, fmean(by_round.values()))
        else:
            run.add("run", name, sum(by_round.values()))


def _add_round(run: ComparedRun, row: Mapping[str, Any]) -> None:
    """Add the measures, the counts and the shares of the states in a round."""
    agents = sum(row.get(_STATES, {}).values())
    shares = {f"share_{state}": n / agents for state, n in row.get(_STATES, {}).items()}
    for name, value in {**shares, **row, **row.get("measures", {})}.items():
        if name != "round":
            run.add_round(name, row["round"], value)


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
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
        if not matches:
            raise InputError("matches no file", path=path)
        return [run for match in matches for run in _paths_of(match)]

    if not path.is_dir() or find_runs(path) == [path]:
        return [path]
    if below := find_runs(path):
        return below
    raise InputError("holds no runs: give a run, or a folder with runs below it", path=path)


def _common(runs: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(runs)) if len(runs) > 1 else runs[0]
