"""Comparing runs: what differs between groups of them, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from prism.errors import FieldValueError, InputError
from prism.science._compared_runs import groups_of, measure_run
from prism.science._comparison import (
    ComparedGroup,
    Comparison,
    Difference,
    Measured,
    MeasureKind,
    Source,
    kinds_of,
)

if TYPE_CHECKING:
    from prism.science._statistics import Interval, Tested

RESAMPLES = 9_999
"""Bootstrap samples, unless told otherwise."""

LEVEL = 0.05
"""The level of significance that notes speak of."""

SAME = "the same in every run"
NONE = "no run of one group has it"


class _Options(TypedDict):
    confidence: float
    resamples: int
    seed: int


def compare(
    *groups: Source | Sequence[Source],
    paired: bool | None = None,
    measures: Iterable[str] | None = None,
    from_round: int = 1,
    to_round: int | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare groups of runs, each with the first.

    Pairs of runs with the same seed share their random numbers, so what differs within them is due
    to what the groups differ in. Each measure gets the difference of the means with a bootstrap
    interval (BCa), a test (Wilcoxon's signed-rank test for pairs, else Mann and Whitney's U;
    Kolmogorov and Smirnov's D for distributions), Holm's correction over all tests, and an effect
    size.

    Args:
        groups: For each group a run's folder or log, a folder with runs below it, a pattern such as
            ``runs/warned-*``, or several of these. Of a single folder, such as that of a batch, the
            folders that hold runs are the groups.
        paired: Whether to pair runs by their seeds. By default they are paired if no seed comes up
            twice in a group and two groups share at least two seeds (one, if a group has but one
            run).
        measures: The measures to compare, by name: the fewer tests, the milder the correction. None
            takes all.
        from_round: The first round that counts, such as the first after a burn-in.
        to_round: The last round that counts. By default all runs must have the same rounds.
        confidence: Coverage of the intervals, between 0 and 1.
        resamples: Bootstrap samples.
        seed: Seed of the bootstrap and of permutations.
        progress: Called with the number of runs that are measured, and that of all.

    Returns:
        The comparison.

    Raises:
        InputError: If there is no second group, a run cannot be read or is given twice, the runs
            differ in their rounds, they cannot be paired as wanted, or a measure is unknown.
    """
    _check(confidence, resamples, from_round, to_round)
    # scipy and statsmodels take a second to import, which other commands can do without
    from prism.science._compare_page import document_of
    from prism.science._statistics import holm

    found = groups_of(groups)
    measured, notes, last = _measured(found, from_round, to_round, progress)
    made = tuple(
        ComparedGroup(label, tuple(each.run for each in runs))
        for label, runs in zip(found, measured, strict=True)
    )

    kinds = _wanted(kinds_of(measured) | _distributions(measured), measures)
    options: _Options = {"confidence": confidence, "resamples": resamples, "seed": seed}
    rows: list[Difference] = []
    for group, runs in zip(made[1:], measured[1:], strict=True):
        pair = _paired(made[0], measured[0], group, runs, paired)
        notes += pair.notes
        rows += [_difference(name, kind, pair, options) for name, kind in kinds.items()]

    corrected = holm([row.p for row in rows])
    rows = [replace(row, p_holm=p) for row, p in zip(rows, corrected, strict=True)]
    notes += _what_is_possible(rows)

    return Comparison(
        made,
        tuple(rows),
        tuple(dict.fromkeys(notes)),
        from_round,
        last,
        confidence,
        tuple(tuple(runs) for runs in measured),
        document_of,
    )


def _check(confidence: float, resamples: int, from_round: int, to_round: int | None) -> None:
    if not 0 < confidence < 1:
        raise FieldValueError(f"confidence must be between 0 and 1, got {confidence}")
    if resamples < 1:
        raise FieldValueError(f"resamples must be 1 or more, got {resamples}")
    if from_round < 1:
        raise FieldValueError(f"from_round must be 1 or more, got {from_round}")
    if to_round is not None and to_round < from_round:
        raise FieldValueError(f"to_round must be {from_round} or more, got {to_round}")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two groups that are compared, in the order of their pairs if they are paired."""

    first: ComparedGroup
    second: ComparedGroup
    runs_first: Sequence[Measured]
    runs_second: Sequence[Measured]
    paired: bool
    notes: list[str]


def _measured(
    groups: Mapping[str, Sequence[Path]],
    from_round: int,
    to_round: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[list[Measured]], list[str], int]:
    """Measure all runs; leave out those that did not get far enough.

    Returns:
        What was measured by group, notes on what is left out, and the last round.
    """
    total, done = sum(map(len, groups.values())), 0
    measured: list[list[Measured]] = []
    for paths in groups.values():
        measured.append([])
        for path in paths:
            measured[-1].append(measure_run(path, from_round, to_round))
            done += 1
            if progress is not None:
                progress(done, total)

    last = to_round or _common_rounds(measured)
    notes: list[str] = []
    kept: list[list[Measured]] = []
    for label, runs in zip(groups, measured, strict=True):
        short = [each for each in runs if each.run.rounds < last]
        if len(short) == len(runs):
            problem = f"no run has completed round {last}: take fewer rounds with to_round"
            raise InputError(problem, path=label)

        kept.append([each for each in runs if each.run.rounds >= last])
        notes += [
            f"{each.run.path} is left out: it has completed {each.run.rounds} of {last} rounds"
            for each in short
        ]

    if last < from_round:
        raise InputError(f"the runs have {last} rounds, so none from round {from_round} on")

    return kept, notes, last


def _common_rounds(measured: Sequence[Sequence[Measured]]) -> int:
    """Return the rounds of all runs.

    Raises:
        InputError: If runs that have ended differ in them.
    """
    runs = [each.run for group in measured for each in group]
    lengths = {run.rounds: run for run in runs if run.ended}
    if len(lengths) > 1:
        told = ", ".join(f"{run.path} has {rounds}" for rounds, run in sorted(lengths.items()))
        raise InputError(
            f"the runs differ in their rounds ({told}): compare the first rounds of all with "
            f"to_round ({min(lengths)} at most)"
        )

    return next(iter(lengths), max(run.rounds for run in runs))


def _distributions(measured: Sequence[Sequence[Measured]]) -> dict[str, MeasureKind]:
    names = sorted({name for runs in measured for run in runs for name in run.distributions})
    return dict.fromkeys(names, "distribution")


def _wanted(
    kinds: Mapping[str, MeasureKind], measures: Iterable[str] | None
) -> dict[str, MeasureKind]:
    """Return the measures that are compared.

    Raises:
        InputError: If one is unknown.
    """
    if measures is None:
        return dict(kinds)

    names = list(dict.fromkeys(measures))
    unknown = [name for name in names if name not in kinds]
    if unknown:
        known = ", ".join(kinds)
        raise InputError(f"no such measure; the runs have {known}", field=unknown[0])

    return {name: kinds[name] for name in names}


def _paired(
    first: ComparedGroup,
    runs_first: Sequence[Measured],
    second: ComparedGroup,
    runs_second: Sequence[Measured],
    wanted: bool | None,
) -> _Pair:
    """Pair runs by their seeds, if they are to be paired.

    Raises:
        InputError: If they cannot be, though they are to be.
    """
    alone = _Pair(first, second, runs_first, runs_second, paired=False, notes=[])
    if wanted is False:
        return alone

    one, other = _by_seed(runs_first), _by_seed(runs_second)
    if isinstance(one, str) or isinstance(other, str):
        problem = one if isinstance(one, str) else str(other)
        if wanted:
            raise InputError(f"runs cannot be paired by their seeds: {problem}")
        return replace(alone, notes=[f"compared as groups, not in pairs: {problem}"])

    shared = [seed for seed in one if seed in other]
    if len(shared) < (1 if wanted or min(len(one), len(other)) == 1 else 2):
        problem = f"{first.label} and {second.label} share {len(shared) or 'no'} seeds"
        if wanted:
            raise InputError(f"runs cannot be paired by their seeds: {problem}")
        return replace(alone, notes=[f"compared as groups, not in pairs: {problem}"])

    notes = []
    for group, other_group, seeds in ((first, second, one), (second, first, other)):
        alone_seeds = [str(seed) for seed in seeds if seed not in shared]
        if alone_seeds:
            notes.append(
                f"left out of the pairs: runs of {group.label} with seed {', '.join(alone_seeds)}, "
                f"which {other_group.label} lacks"
            )

    return _Pair(
        first,
        second,
        [one[seed] for seed in shared],
        [other[seed] for seed in shared],
        paired=True,
        notes=notes,
    )


def _by_seed(runs: Sequence[Measured]) -> dict[int, Measured] | str:
    """Return runs by their seeds, or why that is not possible."""
    found: dict[int, Measured] = {}
    for each in runs:
        seed = each.run.seed
        if seed is None:
            return f"the log of {each.run.path} names no seed"
        if seed in found:
            return f"{found[seed].run.path} and {each.run.path} have the same seed"
        found[seed] = each

    return found


def _difference(name: str, kind: MeasureKind, pair: _Pair, options: _Options) -> Difference:
    """Compare one measure of two groups."""
    from prism.science._statistics import as_values, interval, mann_whitney, wilcoxon

    row = Difference(
        name,
        kind,
        pair.first.label,
        pair.second.label,
        pair.paired,
        len(pair.runs_first),
        len(pair.runs_second),
    )
    if kind == "distribution":
        return _of_distribution(row, pair, options)

    first, second = _values(name, kind, pair)
    lacking = row.runs_first - len(first) + (0 if pair.paired else row.runs_second - len(second))
    row = replace(row, runs_first=len(first), runs_second=len(second))
    if not first or not second:
        return replace(row, remark=NONE)

    remark = f"{lacking} {'pairs' if pair.paired else 'runs'} lack it" if lacking else ""
    values = as_values(first), as_values(second)
    found = interval(*values, paired=pair.paired, **options)
    row = replace(
        row,
        mean_first=float(values[0].mean()),
        mean_second=float(values[1].mean()),
        difference=found.difference,
        low=found.low,
        high=found.high,
        remark=remark,
    )
    row = _standardised(row, found)
    if len({*first, *second}) == 1:
        return replace(row, remark=SAME)

    tested = wilcoxon(*values) if pair.paired else mann_whitney(*values)
    return _with_test(row, tested)


def _values(name: str, kind: MeasureKind, pair: _Pair) -> tuple[list[float], list[float]]:
    """Return the values of two groups, as far as runs, or both runs of a pair, have the measure."""
    missing = 0.0 if kind == "state" else None
    one = [run.values.get(name, missing) for run in pair.runs_first]
    other = [run.values.get(name, missing) for run in pair.runs_second]
    if pair.paired:
        both = [(a, b) for a, b in zip(one, other, strict=True) if None not in (a, b)]
        one, other = [a for a, _ in both], [b for _, b in both]

    return [each for each in one if each is not None], [each for each in other if each is not None]


def _standardised(row: Difference, found: Interval) -> Difference:
    scale = found.scale
    if scale is None:
        return row

    return replace(
        row,
        standardised=found.difference / scale,
        standardised_low=None if found.low is None else found.low / scale,
        standardised_high=None if found.high is None else found.high / scale,
    )


def _of_distribution(row: Difference, pair: _Pair, options: _Options) -> Difference:
    """Compare the distributions of all that the runs of two groups hold."""
    from prism.science._statistics import (
        as_counts,
        as_values,
        kolmogorov_smirnov,
        pooled_interval,
    )

    sides = [
        [run.distributions.get(row.measure, {}) for run in runs]
        for runs in (pair.runs_first, pair.runs_second)
    ]
    values = sorted({value for side in sides for counts in side for value in counts})
    if not all(any(side) for side in sides):
        return replace(row, remark=NONE)

    tables = [as_counts(side, values) for side in sides]
    means = [float((table.sum(axis=0) * as_values(values)).sum() / table.sum()) for table in tables]
    one, other = tables
    found = pooled_interval(one, other, as_values(values), paired=pair.paired, **options)
    row = replace(
        row,
        mean_first=means[0],
        mean_second=means[1],
        difference=means[1] - means[0],
        low=found.low,
        high=found.high,
    )
    if len(values) == 1:
        return replace(row, remark=SAME)

    return _with_test(row, kolmogorov_smirnov(*tables, paired=pair.paired, seed=options["seed"]))


def _with_test(row: Difference, tested: Tested) -> Difference:
    return replace(
        row,
        test=tested.test,
        statistic=tested.statistic,
        p=tested.p,
        effect=tested.effect,
        superiority=tested.superiority,
        least_p=tested.least_p,
    )


def _what_is_possible(rows: Sequence[Difference]) -> list[str]:
    """Say where too few runs, or too many tests, leave nothing to be found."""
    tested = [row for row in rows if row.least_p is not None]
    few = [row for row in tested if (row.least_p or 0) > LEVEL]
    notes = list(dict.fromkeys(_too_few(row) for row in few))

    least = min((row.least_p or 0 for row in tested), default=0) * len(tested)
    if least > LEVEL and len(few) < len(tested):
        notes.append(
            f"{len(tested)} tests: with so few runs no p-value below {min(1.0, least):.3g} is "
            "possible after Holm's correction; compare fewer measures, or make more runs"
        )
    if any(row.kind == "distribution" and not row.least_p for row in tested):
        notes.append(
            "one run a group: the p-values of distributions take all values of a run for "
            "independent, and speak of these runs alone"
        )

    return notes


def _too_few(row: Difference) -> str:
    """Say why no difference can be significant, and how many runs it takes."""
    one, other = row.runs_first, row.runs_second
    pairs = "1 pair" if one == 1 else f"{one} pairs"
    size = pairs if row.paired else f"{one} against {other} runs"
    least = "6 pairs" if row.paired else "4 runs each"
    bound = f"below {row.least_p:.3g}" if row.least_p != 1 else "but 1"

    return (
        f"{size}: no p-value {bound} is possible, whatever the runs say; at least {least} are "
        f"needed for {LEVEL:g}"
    )
