"""Compare groups of runs: what differs, by how much, and how certain that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path

from prism.errors import FieldValueError, InputError
from prism.runs._folder import SUMMARY_NAME, read_summary
from prism.science._comparison import Comparison
from prism.science._differences import Difference
from prism.science._measure_names import titles_of
from prism.science._measured_runs import (
    ComparedRun,
    MeasureKind,
    Source,
    arms_within,
    is_batch,
    kinds_of,
    paths_of,
    runs_of_batch,
    runs_of_groups,
)
from prism.science._plan import Plan
from prism.science._statistics import LEAST_RUNS, estimate, holm

SAME = "the same in every run"
FEW = f"fewer than {LEAST_RUNS} runs"


def compare(
    *groups: Source | Sequence[Source],
    by: str | None = None,
    paired: bool | None = None,
    measures: Iterable[str] | None = None,
    from_round: int = 1,
    to_round: int | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compare groups of runs with the first group, or the arms of a batch with its control.

    Given the folder of a batch, each arm is compared with the first, the control, at every setting
    of the other parameters that the plan varies. If the plan has no arms, the levels of its first
    parameter are compared. If runs have assigned posts to arms, these arms are compared, in pairs
    within each run.

    Runs with the same seed share their random numbers, so differences within a pair are due to what
    distinguishes the groups. Each measure gets the difference of the means with one interval and
    one p-value (Student's for pairs, Welch's for groups), Holm's correction over all p-values, and
    an effect size. There is no interval of fewer than three pairs, or three runs in a group.

    Args:
        groups: For each group a run's folder or log, a folder with runs below it, a pattern such as
            ``runs/warned-*``, or several of these. In a single folder that is not a batch, each
            folder that holds runs is a group.
        by: What distinguishes the groups of a batch: ``arm``, or a parameter that the plan varies.
        paired: Whether to pair runs by seed. By default they are paired if no seed occurs twice in
            a group and most runs of both groups have a partner.
        measures: Names of the measures to compare. The fewer tests, the milder the correction.
            Defaults to all; for a batch, to those that its plan names, or else the measures of the
            world.
        from_round: First round to include, such as the first after a burn-in.
        to_round: Last round to include. By default, all runs must have the same rounds.
        confidence: Coverage of the intervals, between 0 and 1.

    Returns:
        The comparison.

    Raises:
        InputError: If there is no second group, a run cannot be read or is given twice, the runs
            have different rounds, they cannot be paired as asked, or a measure or parameter is
            unknown.
    """
    _require_range(confidence, from_round, to_round)
    wanted = None if measures is None else [*dict.fromkeys(measures)]
    folder = _batch_in(groups)
    if by is not None and folder is None:
        problem = "is for a batch whose plan has arms or varies parameters, given as one folder"
        raise InputError(problem, field="by")

    notes: list[str] = []
    runs = [] if folder else _arms_in(groups)
    if folder:
        plan = Plan.from_batch(folder)
        runs, notes = runs_of_batch(folder, by, wanted or (), from_round, to_round)
        wanted = wanted or list(plan.data.get("measures", ())) or _measures_of_world(runs)
    elif not runs:
        runs = runs_of_groups(groups, from_round, to_round)

    last = to_round or _last_round(runs, same=folder is None)
    runs, short = _long_enough(runs, last, from_round, same=folder is None)
    kinds = _wanted(kinds_of(runs), wanted)
    rows = [
        row
        for pair in _pairs(runs)
        for row in _differences(*pair, kinds, paired, confidence, notes)
    ]
    corrected = holm([row.p for row in rows])
    titles = titles_of(_world_of(runs[0].path, folder))
    rows = [
        replace(row, p_holm=p, title=titles.get(row.measure, row.measure))
        for row, p in zip(rows, corrected, strict=True)
    ]
    return Comparison(
        tuple(runs),
        tuple(rows),
        tuple(dict.fromkeys([*notes, *short])),
        from_round,
        last,
        confidence,
        folder,
    )


def _require_range(confidence: float, from_round: int, to_round: int | None) -> None:
    """Refuse numbers out of range."""
    if not 0 < confidence < 1:
        raise FieldValueError(f"confidence must be between 0 and 1, got {confidence}")
    if from_round < 1:
        raise FieldValueError(f"from_round must be 1 or more, got {from_round}")
    if to_round is not None and to_round < from_round:
        raise FieldValueError(f"to_round must be {from_round} or more, got {to_round}")


def _world_of(run: Path, batch: Path | None) -> object:
    """Return the address of the world, as far as it is known."""
    if batch is not None:
        return Plan.from_batch(batch).data.get("world")
    return read_summary(run)["config"].get("world") if (run / SUMMARY_NAME).exists() else None


def _batch_in(groups: Sequence[Source | Sequence[Source]]) -> Path | None:
    """Return the folder of the batch, if that is all that is compared."""
    if len(groups) == 1 and isinstance(groups[0], PathLike | str) and is_batch(groups[0]):
        return Path(groups[0])
    return None


def _arms_in(groups: Sequence[Source | Sequence[Source]]) -> list[ComparedRun]:
    """Return the arms within the runs of a single group, if it has any."""
    if len(groups) != 1:
        return []
    (group,) = groups
    sources = [group] if isinstance(group, PathLike | str) else [*group]
    paths = [path for source in sources for path in paths_of(source)]
    are_groups = len(sources) == 1 and len({path.parent for path in paths}) > 1
    return [] if are_groups else arms_within(paths)


def _measures_of_world(runs: Sequence[ComparedRun]) -> list[str] | None:
    """Return the measures to compare by default, few, since each adds a test."""
    # only the final value of a measure, not its mean over the rounds as well
    kinds = kinds_of(runs).items()
    own = [name for name, kind in kinds if kind == "own" and not name.endswith("_mean")]
    return own or None


def _last_round(runs: Sequence[ComparedRun], *, same: bool) -> int:
    """Return the last round to compare.

    Raises:
        InputError: If runs that must have the same number of rounds do not.
    """
    ended = {run.rounds: run for run in runs if run.ended}
    if same and len(ended) > 1:
        least, most = min(ended), max(ended)
        each = f"{ended[least].path} has {least}, {ended[most].path} has {most}"
        problem = (
            f"the runs have different numbers of rounds ({each}): use to_round (--to-round), at "
            f"most {least}, to compare the rounds that all have"
        )
        raise InputError(problem)

    return max(ended, default=max(run.rounds for run in runs))


def _long_enough(
    runs: Sequence[ComparedRun], last: int, from_round: int, *, same: bool
) -> tuple[list[ComparedRun], list[str]]:
    """Return the runs that have the rounds to compare, and notes on the others.

    Args:
        runs: All runs.
        last: The last round to compare.
        from_round: The first round to compare.
        same: Whether a run needs all of these rounds; else each counts with its last one.
    """
    least = last if same else from_round
    kept = [run for run in runs if run.rounds >= least]
    most = max(run.rounds for run in runs)
    if most < from_round:
        raise InputError(f"the runs have {most} rounds, so none from round {from_round} on")
    if not kept:
        problem = f"no run has completed round {last}: choose an earlier to_round (--to-round)"
        raise InputError(problem)

    notes = [
        f"{run.path} is left out: it has completed {run.rounds} of {last} rounds"
        for run in runs
        if run.rounds < least
    ]
    shortest = min(run.rounds for run in kept)
    if shortest < last:
        notes.append(
            f"the runs ended in rounds {shortest} to {last}: each counts with its last round"
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
            # imported here as it loads pydantic, which is needed only for the message
            from prism.files.declarations import meant

            close = meant(name, kinds)
            guess = "" if close is None else f" (did you mean {close!r}?)"
            problem = f"{name!r} is an unknown measure{guess}; the runs have {', '.join(kinds)}"
            raise InputError(problem)

    return {name: kinds[name] for name in names}


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
    paired: bool | None,
    confidence: float,
    notes: list[str],
) -> Iterator[Difference]:
    """Yield the difference of every measure between two groups."""
    shared = [run.pair for run in first if run.pair in {other.pair for other in second}]
    problem = _unpairable(first, second, shared, wanted=paired is True)
    if paired and problem:
        raise InputError(f"runs cannot be paired by their seeds: {problem}")
    is_paired = paired is not False and not problem
    if is_paired:
        alone = {str(run.seed): run.group for run in (*first, *second) if run.pair not in shared}
        notes += [
            f"{group} has runs with seed {seed}, which the other group lacks: left out"
            for seed, group in alone.items()
        ]
        by_pair = [{run.pair: run for run in runs} for runs in (first, second)]
        first, second = ([runs[pair] for pair in shared] for runs in by_pair)
    elif paired is None:
        notes.append(f"compared as groups, not in pairs: {problem}")

    for name, kind in kinds.items():
        yield _difference(first, second, name, kind, confidence, paired=is_paired)


def _unpairable(
    first: Sequence[ComparedRun],
    second: Sequence[ComparedRun],
    shared: Sequence[object],
    *,
    wanted: bool,
) -> str:
    """Return why the runs of two groups are no pairs; empty if they are.

    Args:
        first: The runs of the first group.
        second: The runs of the second.
        shared: What runs of both have in common.
        wanted: Whether few pairs are enough.
    """
    for runs in (first, second):
        pairs = [run.pair for run in runs]
        if len(set(pairs)) < len(pairs):
            return f"{runs[0].group} has a seed twice"
        if None in pairs:
            return f"{runs[0].group} has a run without a seed"
    if not shared:
        return f"{first[0].group} and {second[0].group} share no seeds"
    if not wanted and 2 * len(shared) <= max(len(first), len(second)):
        return f"only {len(shared)} seeds are in both {first[0].group} and {second[0].group}"
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
    lacking = {name: 0.0} if kind == "state" else {}
    if paired:
        both = [
            each
            for each in zip(first, second, strict=True)
            if all(name in {**lacking, **run.values} for run in each)
        ]
        first, second = [one for one, _ in both], [other for _, other in both]
    groups = [
        [{**lacking, **run.values}[name] for run in runs if name in {**lacking, **run.values}]
        for runs in (first, second)
    ]
    labels = [runs[0].group if runs else "" for runs in (first, second)]
    row = Difference(
        name,
        kind,
        labels[0],
        labels[1],
        paired,
        len(groups[0]),
        len(groups[1]),
        setting=first[0].setting if first else "",
    )
    if not all(groups):
        return replace(row, remark="no run of one group has it")

    found = estimate(*groups, paired=paired, confidence=confidence)
    is_same = len(set(chain(*groups))) == 1
    remark = SAME if is_same else FEW if min(map(len, groups)) < LEAST_RUNS else ""
    return replace(
        row,
        mean_first=sum(groups[0]) / len(groups[0]),
        mean_second=sum(groups[1]) / len(groups[1]),
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        effect=found.effect,
        remark=remark,
    )
