"""The design of an experiment: the factors that a batch varies, and which runs are pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from prism.analysis import read_log
from prism.errors import InputError
from prism.runlog._reader import LOG_NAMES
from prism.science._batch import Batch, read_batch
from prism.science._batch_child import COMPLETE
from prism.science._batch_door import BatchRun
from prism.science._batch_folder import BatchFolder
from prism.science._batch_tables import all_results
from prism.science._compared_runs import measure_run
from prism.science._comparison import ComparedRun, Measured
from prism.science._measure_names import OF_POSTS
from prism.science._plan_file import VARIED_SETTINGS
from prism.worlds._treatments import CONTROL

ARM = "arm"
KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of a design, or an arm in it.

    Args:
        levels: The level of each factor.
        measured: Its measures.
    """

    levels: Mapping[str, Any]
    measured: Measured


@dataclass(frozen=True, slots=True)
class Design:
    """The factors that a plan varies between runs.

    Args:
        factors: The levels of each factor, in the order of the plan; the first is the control.
        cells: The runs.
        wanted: The measures that the plan names.
        notes: Remarks on the runs.
        folder: The folder of the batch, if it is one.
    """

    factors: Mapping[str, tuple[Any, ...]]
    cells: tuple[Cell, ...]
    wanted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folder: Path | None = None

    def factor(self, by: str | None) -> str:
        """Return the factor whose levels are compared.

        Raises:
            InputError: If there is no such factor.
        """
        return self._known("by", [by])[0] if by else next(iter(self.factors))

    def strata(self, by: str, within: Iterable[str] | None) -> list[str]:
        """Return the factors that are held fixed in each comparison; others are averaged over.

        Raises:
            InputError: If there is no such factor.
        """
        if within is not None:
            return self._known("within", [name for name in within if name != by])

        return [name for name in self.factors if name != by]

    def settings(self, strata: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield each combination of levels of some factors."""
        for levels in product(*(self.factors[name] for name in strata)):
            yield dict(zip(strata, levels, strict=True))

    def with_level(self, factor: str, level: Any, strata: Sequence[str]) -> list[Measured]:
        """Return all runs at a level of one factor, each with its setting of fixed factors."""
        return [
            cell.measured.at(text_of({name: cell.levels[name] for name in strata}))
            for cell in self.cells
            if cell.levels[factor] == level
        ]

    def others_at(self, levels: Mapping[str, Any]) -> set[tuple[Any, ...]]:
        """Return the settings of all other factors that have a run at some levels."""
        return {self._others(cell, levels) for cell in self._cells_at(levels)}

    def runs_at(
        self, levels: Mapping[str, Any], others: Collection[tuple[Any, ...]]
    ) -> list[Measured]:
        """Return the runs at some levels, averaged by seed over settings of all other factors."""
        found: dict[int | None, list[Measured]] = {}
        for cell in self._cells_at(levels):
            if self._others(cell, levels) in others:
                found.setdefault(cell.measured.run.seed, []).append(cell.measured)

        # runs that lack a partner at some level would get another weight than the rest
        most = max(map(len, found.values()), default=0)
        return [averaged(runs) for runs in found.values() if len(runs) == most]

    def _cells_at(self, levels: Mapping[str, Any]) -> Iterator[Cell]:
        for cell in self.cells:
            if all(cell.levels[name] == level for name, level in levels.items()):
                yield cell

    def _others(self, cell: Cell, levels: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(cell.levels[name] for name in self.factors if name not in levels)

    def _known(self, option: str, names: Sequence[str]) -> list[str]:
        unknown = [name for name in names if name not in self.factors]
        if unknown:
            known = ", ".join(self.factors)
            raise InputError(f"names {unknown[0]!r}, but the runs vary {known}", field=option)

        return list(names)


def design_of_batch(
    folder: Path, measures: Sequence[str] | None, from_round: int, to_round: int | None
) -> Design | None:
    """Return the design of a batch; None if it varies nothing.

    Args:
        folder: The folder of the batch.
        measures: The measures to read; None for all.
        from_round: First round to include.
        to_round: Last round to include.

    Raises:
        InputError: If the batch is damaged.
    """
    if "samples" in BatchFolder(folder).read():
        return None

    batch = read_batch(folder)
    runs = [each for each in batch.runs if each.status == COMPLETE]
    if not runs:
        return None

    names = _factors(batch.plan.data)
    levels = [{name: _level(run, name) for name in names} for run in runs]
    if not names:
        return None

    measured = _measured(folder, runs, measures, from_round, to_round)
    wanted = tuple(batch.plan.data.get("measures", ()))

    return Design(names, tuple(map(Cell, levels, measured)), wanted, _left_out(batch), folder)


def _left_out(batch: Batch) -> tuple[str, ...]:
    """Return a note on incomplete runs, if there are any."""
    left = sum(each.status != COMPLETE for each in batch.runs)
    note = f"{left} of {len(batch.runs)} runs are left out, since they are not complete"
    return (note,) if left else ()


def _measured(
    folder: Path,
    runs: Sequence[BatchRun],
    measures: Sequence[str] | None,
    from_round: int,
    to_round: int | None,
) -> list[Measured]:
    """Measure runs from the tables of their batch, or from logs if these lack a measure."""
    paths = [folder / run.name for run in runs]
    summaries = BatchFolder(folder).summaries([run.name for run in runs])
    found = [
        _of_summary(folder, run, summary or {}, from_round, to_round)
        for run, summary in zip(runs, summaries, strict=True)
    ]
    require_rounds(max(each.run.rounds for each in found), from_round, to_round)
    has_all = set(measures or ()).issubset(chain.from_iterable(each.values for each in found))
    if has_all or not all(map(_has_log, paths)):
        return found

    return [measure_run(path, from_round, to_round) for path in paths]


def require_rounds(rounds: int, from_round: int, to_round: int | None) -> None:
    """Refuse rounds that no run has.

    Args:
        rounds: The rounds of the longest run.
        from_round: First round to include.
        to_round: The last round that counts, if it is given.

    Raises:
        InputError: If there is no such round.
    """
    if rounds < from_round:
        raise InputError(f"the runs have {rounds} rounds, so none from round {from_round} on")
    if to_round is not None and rounds < to_round:
        problem = f"the runs have {rounds} rounds, so none has completed round {to_round}"
        raise InputError(f"{problem}: use a smaller to_round")


def _of_summary(
    folder: Path, run: BatchRun, summary: Mapping[str, Any], from_round: int, to_round: int | None
) -> Measured:
    """Return the measures of a complete run."""
    results = all_results(folder, run.name, summary["results"])
    head = ComparedRun(folder / run.name, run.seed, len(results["rounds"]), ended=True)
    return _of_results(head, results, from_round, to_round)


def in_arms(runs: Sequence[tuple[Mapping[str, Any], Path, int | None]]) -> Design | None:
    """Return the arms in runs that have assigned posts as a design; None if none has.

    The arms of a run differ only in their treatment, so they are paired by run.

    Args:
        runs: Levels of other factors, path and seed of each run.
    """
    cells: list[Cell] = []
    levels = {CONTROL: None}
    for others, path, seed in runs:
        logs = read_log(path)
        of_run = logs.runs[0]
        own = of_run.seed if seed is None else seed
        run = ComparedRun(path, own, of_run.rounds or 0, of_run.ended)
        for row in logs.rows("arms"):
            arm = row["arm"]
            levels[arm] = None
            measured = Measured(run)
            for name in OF_POSTS:
                measured.add("own", name, row[name])
            cells.append(Cell({ARM: arm, **others}, measured))

    return Design({ARM: tuple(levels)}, tuple(cells)) if cells else None


def averaged(runs: Sequence[Measured]) -> Measured:
    """Return the mean measures of several runs of one seed."""
    if len(runs) == 1:
        return runs[0]

    first = runs[0]
    found = replace(first, values={}, by_round={})
    found.values.update(_means([run.values for run in runs]))
    for name in first.by_round:
        found.by_round[name] = _means([run.by_round.get(name, {}) for run in runs])

    return found


def _means(rows: Sequence[Mapping[KeyT, float]]) -> dict[KeyT, float]:
    """Return the means of the keys that all rows have."""
    shared = [key for key in rows[0] if all(key in row for row in rows)]
    return {key: fmean(row[key] for row in rows) for key in shared}


def text_of(setting: Mapping[str, Any]) -> str:
    """Return levels as a text, such as ``friends=4, tiring=0.2``."""
    return ", ".join(f"{name}={level}" for name, level in setting.items())


def _has_log(run: Path) -> bool:
    return any((run / name).exists() for name in LOG_NAMES)


def _factors(plan: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the factors of a plan with their levels, arms first."""
    named = tuple(each["name"] for each in plan.get(ARM, ()))
    found: dict[str, tuple[Any, ...]] = {ARM: named}
    for name, values in plan.get("vary", {}).items():
        found[name] = tuple(map(_plain, values))

    return {name: levels for name, levels in found.items() if len(levels) > 1}


def _level(run: BatchRun, factor: str) -> Any:
    configuration = run.configuration
    if factor == ARM:
        return configuration.arm

    group = configuration.settings if factor in VARIED_SETTINGS else configuration.parameters
    return _plain(group[factor])


def _plain(level: Any) -> Any:
    return str(level) if isinstance(level, (list, tuple)) else level


def _of_results(
    run: ComparedRun, results: Mapping[str, Any], from_round: int, to_round: int | None
) -> Measured:
    """Return the measures of a run in the rounds to include, from its results."""
    found = Measured(run)
    last = to_round or run.rounds
    rounds = [each for each in results["rounds"] if from_round <= each["round"] <= last]
    own: dict[str, None] = {}
    for each in rounds:
        measures = each.get("measures", {})
        own |= dict.fromkeys(measures)
        for name, value in {**each, **measures}.items():
            if name != "round":
                found.add_round(name, each["round"], value)

    # measures of the world come first
    for name, by_round in sorted(found.by_round.items(), key=lambda item: item[0] not in own):
        values = list(by_round.values())
        if name not in own:
            found.add("run", name, sum(values))
        elif rounds[-1]["round"] in by_round:
            found.add("own", name, values[-1])
            found.add("own", f"{name}_mean", fmean(values))

    return found
