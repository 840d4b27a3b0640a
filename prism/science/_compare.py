"""Compare groups of runs: what differs, by how much, and how certain that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from prism.errors import FieldValueError, InputError, PrismError
from prism.runs.folder import read_summary
from prism.science._batch_folder import BatchFolder
from prism.science._differences import Difference, Differences
from prism.science._measured_runs import (
    ComparedRun,
    MeasureKind,
    Source,
    runs_of_batch,
    runs_of_groups,
)
from prism.science._paper import latex_of, write_paper
from prism.science._plan import Plan
from prism.science._statistics import LEAST_RUNS, estimate, holm
from prism.worlds.addresses import class_of
from prism.worlds.fields import titles_of

if TYPE_CHECKING:
    from prism.report import FigureFormat, Page

SAME = "the same in every run"
FEW = f"fewer than {LEAST_RUNS} runs"


class Comparison(Differences):
    """The results of a comparison, from `compare`.

    Args:
        runs: The runs, each with its group; the first group is the control.
        differences: A row for each measure, setting and group except the first.
        notes: Remarks on the runs and the tests.
        from_round: The first round included.
        to_round: The last round included.
        confidence: Confidence level of the intervals.
        folder: The folder of the batch, if it is one.
    """

    def __repr__(self) -> str:
        """Show the groups and the number of differences."""
        return f"<Comparison of {', '.join(self.groups)}: {len(self.differences)} differences>"

    def html(self) -> str:
        """Return the comparison as one HTML page that works offline."""
        return self._page.html()

    def save_figures(self, folder: Path, format: FigureFormat = "svg") -> list[Path]:  # noqa: A002
        """Save every figure as a file; see `prism.report.Page.save_figures`."""
        return self._page.save_figures(folder, format)

    def latex(self) -> str:
        """Return the differences that were tested as a LaTeX table of six columns."""
        return latex_of(self)

    def save_paper(self, folder: Path) -> list[Path]:
        """Write figures as PDF, the table as LaTeX and CSV, and a methods paragraph.

        Args:
            folder: The folder, made if it does not exist. Files of the same names are replaced.

        Returns:
            The paths of the files: ``differences`` as ``.tex`` and ``.csv``, ``methods.md``, and
            the figures.

        Raises:
            OSError: If a file cannot be written.
        """
        return [*write_paper(folder, self), *self.save_figures(folder, "pdf")]

    @cached_property
    def _page(self) -> Page:
        from prism.science._compare_page import page_of

        return page_of(self)


def compare(
    *groups: Source | Sequence[Source],
    by: str | None = None,
    paired: bool = True,
    measures: Iterable[str] | str | None = None,
    from_round: int = 1,
    to_round: int | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compare groups of runs with the first group, or the arms of a batch with its control.

    Given the folder of a batch, each arm is compared with the first, the control, at every setting
    of the other parameters that the plan varies. If the plan has no arms, the levels of its first
    parameter are compared.

    Runs with the same seed share their random numbers, so differences within a pair are due to what
    distinguishes the groups. Each measure gets the difference of the means with one interval and
    one p-value (Student's for pairs, Welch's for groups), Holm's correction over all p-values, and
    an effect size. With fewer than three pairs, or runs in a group, there is no interval.

    Args:
        groups: For each group a run's folder, a folder with runs below it, a pattern such as
            ``runs/warned-*``, or several of these. In a single folder that is not a batch, each
            folder that holds runs is a group.
        by: What distinguishes the groups of a batch: ``arm``, or a parameter that the plan varies.
        paired: Whether to pair runs by seed, if no seed occurs twice in a group and most runs of
            both groups have a partner. A note says why runs are no pairs.
        measures: Names of the measures to compare. The fewer tests, the milder the correction.
            Defaults to all; for a batch, to those that its plan names, or else the measures of the
            world.
        from_round: First round to include, such as the first after a burn-in.
        to_round: Last round to include; by default the last of all. A run that ended earlier counts
            with its last round, which a note says.
        confidence: Coverage of the intervals, between 0 and 1.

    Returns:
        The comparison.

    Raises:
        InputError: If there is no second group, a run cannot be read or is given twice, no run has
            the rounds, or a measure or parameter is unknown.
    """
    if not 0 < confidence < 1:
        raise FieldValueError(f"confidence must be between 0 and 1, got {confidence}")
    if from_round < 1 or (to_round is not None and to_round < from_round):
        bounds = f"{from_round} to {to_round}"
        raise FieldValueError(f"from_round and to_round must be rounds in order, got {bounds}")

    folder, notes = _batch_in(groups), list[str]()
    measures = [measures] if isinstance(measures, str) else measures
    wanted = None if measures is None else [*dict.fromkeys(measures)]
    if folder is not None:
        plan = Plan(BatchFolder(folder).read()["plan"])
        runs, notes = runs_of_batch(folder, by, from_round, to_round)
        wanted = wanted or list(plan.data.get("measures", ())) or _measures_of_world(runs)
        world = plan.data.get("world")
    elif by is not None:
        problem = "is for a batch whose plan has arms or varies parameters, given as one folder"
        raise InputError(problem, field="by")
    else:
        runs = runs_of_groups(groups, from_round, to_round)
        world = read_summary(runs[0].path)["config"].get("world")

    last = to_round or max(run.rounds for run in runs)
    runs, short = _long_enough(runs, from_round, last)
    pairs = [*_pairs(runs)]
    if short and not pairs:
        raise InputError(f"no two groups are left to compare: {'; '.join(short)}")
    kinds = _wanted(_kinds_of(runs), wanted)
    rows = [
        row
        for pair in pairs
        for row in _differences(*pair, kinds, notes, confidence, paired=paired)
    ]
    corrected, titles = holm([row.p for row in rows]), _titles_of(world)
    rows = [
        replace(row, p_holm=p, title=titles.get(row.measure, row.measure))
        for row, p in zip(rows, corrected, strict=True)
    ]
    every_note = tuple(dict.fromkeys([*notes, *short, *_versions(runs), *_fallbacks(runs)]))
    return Comparison(tuple(runs), tuple(rows), every_note, from_round, last, confidence, folder)


def _batch_in(groups: Sequence[Source | Sequence[Source]]) -> Path | None:
    """Return the folder of the batch, if that is all that is compared."""
    if len(groups) == 1 and isinstance(groups[0], PathLike | str):
        folder = Path(groups[0])
        return folder if BatchFolder(folder).is_begun else None
    return None


def _kinds_of(runs: Iterable[ComparedRun]) -> dict[str, MeasureKind]:
    """Return the measures of all runs with their kinds."""
    return {name: kind for run in runs for name, kind in run.kinds.items()}


def _measures_of_world(runs: Sequence[ComparedRun]) -> list[str] | None:
    """Return the measures to compare by default, few, since each adds a test."""
    # only the final value of a measure, not its mean over the rounds as well, which has no rounds
    measured = {name for run in runs for name in run.by_round}
    names = [name for name, kind in _kinds_of(runs).items() if kind == "own" and name in measured]
    return names or None


def _long_enough(
    runs: Sequence[ComparedRun], from_round: int, last: int
) -> tuple[list[ComparedRun], list[str]]:
    """Return the runs that have the rounds to compare, and notes on the others.

    Raises:
        InputError: If there are none.
    """
    most = max(run.rounds for run in runs)
    kept = [run for run in runs if run.rounds >= from_round]
    if not kept:
        raise InputError(f"the runs have {most} rounds, so none from round {from_round} on")

    notes = [
        f"{run.path} is left out: " + ("it has no such round" if run.rounds else "it has not ended")
        for run in runs
        if run not in kept
    ]
    shortest = min(run.rounds for run in kept)
    if shortest < last:
        notes.append(
            f"the runs ended in rounds {shortest} to {min(most, last)}: each counts with its last "
            "round"
        )
    return kept, notes


def _wanted(
    kinds: Mapping[str, MeasureKind], measures: Iterable[str] | None
) -> dict[str, MeasureKind]:
    """Return the measures that are compared.

    Raises:
        InputError: If one is unknown.
    """
    names = [*(kinds if measures is None else measures)]
    for name in names:
        if name not in kinds:
            raise InputError(f"{name!r} is an unknown measure; the runs have {', '.join(kinds)}")

    return {name: kinds[name] for name in names}


def _versions(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield the files that were edited between the runs, so that they are of two programs."""
    for name in dict.fromkeys(name for run in runs for name in run.inputs):
        if len({run.inputs[name] for run in runs if name in run.inputs}) > 1:
            yield f"{name} has changed between these runs: they are not all of one version"


def _fallbacks(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield for each group how many decisions its models left to fallbacks, if they left any."""
    for group in dict.fromkeys(run.group for run in runs):
        models = [run.values for run in runs if run.group == group and "model_calls" in run.values]
        total, answered = (
            sum(each.get(f"decisions_{how}", 0) for each in models) for how in ("asked", "answered")
        )
        if answered < total:
            yield (
                f"{group}: {answered:,.0f} of {total:,.0f} decisions are by the model, and the "
                "others are fallbacks"
            )


def _pairs(runs: Sequence[ComparedRun]) -> Iterator[tuple[list[ComparedRun], list[ComparedRun]]]:
    """Yield the runs of the first group and of each other, at each setting that both have."""
    control, *others = dict.fromkeys(run.group for run in runs)
    for setting in dict.fromkeys(run.setting for run in runs):
        at_setting = [run for run in runs if run.setting == setting]
        first = [run for run in at_setting if run.group == control]
        for label in others:
            second = [run for run in at_setting if run.group == label]
            if first and second:
                yield first, second


def _differences(
    first: list[ComparedRun],
    second: list[ComparedRun],
    kinds: Mapping[str, MeasureKind],
    notes: list[str],
    confidence: float,
    *,
    paired: bool,
) -> Iterator[Difference]:
    """Yield the difference of every measure between two groups."""
    seeds = [[run.seed for run in runs] for runs in (first, second)]
    shared = [seed for seed in seeds[0] if seed in seeds[1]]
    problem = _unpairable(seeds, shared)
    is_paired = paired and not problem
    if is_paired:
        for run in (*first, *second):
            if run.seed not in shared:
                without = f"{run.group} has a run with seed {run.seed}, which the other group lacks"
                notes.append(f"{without}: left out")
        by_seed = [{run.seed: run for run in runs} for runs in (first, second)]
        first, second = ([runs[seed] for seed in shared] for runs in by_seed)
    elif paired:
        notes.append(
            f"{first[0].group} and {second[0].group} are compared as groups, not in pairs: "
            f"{problem}"
        )

    for name, kind in kinds.items():
        yield _difference(first, second, name, kind, confidence, paired=is_paired)


def _unpairable(seeds: Sequence[Sequence[int]], shared: Sequence[int]) -> str:
    """Return why the runs of two groups are no pairs; empty if they are."""
    if any(len(set(each)) < len(each) for each in seeds):
        return "a group has a seed twice"
    if 2 * len(shared) <= max(map(len, seeds)):
        return f"they share {len(shared) or 'no'} seeds"
    return ""


def _difference(
    first: Sequence[ComparedRun],
    second: Sequence[ComparedRun],
    name: str,
    kind: MeasureKind,
    confidence: float,
    *,
    paired: bool,
) -> Difference:
    """Compare one measure."""
    # a state that no agent of a run was in has no share there: it is 0
    missing = 0.0 if kind == "state" else None
    groups = [[run.values.get(name, missing) for run in runs] for runs in (first, second)]
    if paired:
        both = [pair for pair in zip(*groups, strict=True) if None not in pair]
        groups = [[pair[index] for pair in both] for index in range(2)]
    ones, others = ([value for value in group if value is not None] for group in groups)
    row = Difference(
        name,
        kind,
        first[0].group,
        second[0].group,
        paired,
        len(ones),
        len(others),
        setting=first[0].setting,
    )
    if not ones or not others:
        return replace(row, remark="no run of one group has it")

    estimated = estimate(ones, others, paired=paired, confidence=confidence)
    remark = FEW if min(len(ones), len(others)) < LEAST_RUNS else ""
    return replace(
        row,
        mean_first=sum(ones) / len(ones),
        mean_second=sum(others) / len(others),
        difference=estimated.difference,
        low=estimated.low,
        high=estimated.high,
        p=estimated.p,
        effect=estimated.effect,
        remark=SAME if len({*ones, *others}) == 1 else remark,
    )


def _titles_of(world: object) -> dict[str, str]:
    """Return the measures of a world in words with their units; empty if it cannot be loaded.

    Args:
        world: Its address, as ``run.json`` and plans have it.
    """
    try:
        cls, _ = class_of(str(world))
    except PrismError:
        return {}
    return titles_of(cls)
