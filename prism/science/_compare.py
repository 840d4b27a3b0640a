"""Compare groups of runs: what differs, by how much, and how certain that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from prism.errors import FieldValueError, InputError
from prism.science._batch_folder import BatchFolder
from prism.science._compared_runs import groups_of, measure_run, runs_of
from prism.science._comparison import (
    SAME,
    SINGLE,
    ComparedGroup,
    Comparison,
    Difference,
    Measured,
    MeasureKind,
    Source,
    kinds_of,
)
from prism.science._design import (
    ARM,
    Design,
    design_of_batch,
    in_arms,
    require_rounds,
    text_of,
)

LEVEL = 0.05
"""The significance level used in notes."""

NONE = "one group has no run with it"


def compare(
    *groups: Source | Sequence[Source],
    by: str | None = None,
    within: Iterable[str] | None = None,
    paired: bool | None = None,
    measures: Iterable[str] | None = None,
    from_round: int = 1,
    to_round: int | None = None,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare groups of runs with the first group, or the arms of a batch with its control.

    Given the folder of a batch, each arm is compared with the first, the control, at every setting
    of the other parameters that the plan varies, in pairs with the same parameters and seed. If the
    plan has no arms, the levels of its first parameter are compared. If runs have assigned posts to
    arms, these arms are compared, in pairs within each run.

    Runs with the same seed share their random numbers, so differences within a pair are due to what
    distinguishes the groups. Each measure gets the difference of the means with its interval
    (Student's for pairs, Welch's for groups), a test (Wilcoxon's signed-rank test for pairs, else
    Mann and Whitney's U), Holm's correction over all tests, and an effect size. One run against one
    run has neither interval nor test.

    Args:
        groups: For each group a run's folder or log, a folder with runs below it, a pattern such as
            ``runs/warned-*``, or several of these. In a single folder that is not a batch, each
            folder that holds runs is a group.
        by: What distinguishes the groups of a batch: ``arm``, or a parameter that the plan varies.
        within: Parameters of a batch that are held fixed in each comparison; by default all others.
            Runs of a seed are averaged over those that are not named.
        paired: Whether to pair runs by seed. By default they are paired if no seed occurs twice in
            a group and most runs of both groups have a partner.
        measures: Names of the measures to compare. The fewer tests, the milder the correction.
            Defaults to all; for a batch, to those that its plan names, or else the measures of the
            world.
        from_round: First round to include, such as the first after a burn-in.
        to_round: Last round to include. By default, all runs must have the same rounds.
        confidence: Coverage of the intervals, between 0 and 1.
        progress: Called with the number of runs measured so far, and the number of all runs.

    Returns:
        The comparison.

    Raises:
        InputError: If there is no second group, a run cannot be read or is given twice, the runs
            have different rounds, they cannot be paired as asked, or a measure or parameter is
            unknown.
    """
    names = None if measures is None else list(dict.fromkeys(measures))
    asked = _Asked(by, within, paired, names, from_round, to_round, confidence)
    design = _design_of(groups, asked)
    if design is not None:
        return _by_design(design, asked)
    if by is not None or within is not None:
        problem = "is for a batch whose plan has arms or varies parameters, given as one folder"
        raise InputError(problem, field="by" if within is None else "within")

    return _of_groups(_measured(groups_of(groups), asked, progress), asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of `compare`, and the notes so far."""

    by: str | None
    within: Iterable[str] | None
    paired: bool | None
    measures: Sequence[str] | None
    from_round: int
    to_round: int | None
    confidence: float
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        first, last = self.from_round, self.to_round
        for name, is_right, wanted in (
            ("confidence", 0 < self.confidence < 1, "between 0 and 1"),
            ("from_round", first >= 1, "1 or more"),
            ("to_round", last is None or last >= first, f"{first} or more"),
        ):
            if not is_right:
                raise FieldValueError(f"{name} must be {wanted}, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class _Side:
    """A group and its measured runs; in a pair, in the order of the pairs."""

    label: str
    runs: Sequence[Measured]

    @property
    def by_seed(self) -> dict[int | None, Measured]:
        return {each.run.seed: each for each in self.runs}

    def with_seeds(self, seeds: Sequence[int | None]) -> _Side:
        return replace(self, runs=[self.by_seed[seed] for seed in seeds])


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two groups that are compared."""

    first: _Side
    second: _Side
    paired: bool

    @property
    def sides(self) -> tuple[_Side, _Side]:
        return self.first, self.second


def _design_of(groups: Sequence[Source | Sequence[Source]], asked: _Asked) -> Design | None:
    """Return the design of a batch, or of the arms within the runs of one group, if any."""
    if len(groups) != 1:
        return None

    (group,) = groups
    sources = [group] if isinstance(group, PathLike | str) else list(group)
    if len(sources) > 1:
        return _in_arms(chain.from_iterable(map(runs_of, sources)))

    folder = Path(sources[0])
    if BatchFolder(folder).is_begun:
        return design_of_batch(folder, asked.measures, asked.from_round, asked.to_round)

    runs = runs_of(sources[0])
    are_groups = len({run.parent for run in runs}) > 1
    return None if are_groups else _in_arms(runs)


def _in_arms(runs: Iterable[Path]) -> Design | None:
    return in_arms([({}, run, None) for run in runs])


def _of_groups(measured: Mapping[str, Sequence[Measured]], asked: _Asked) -> Comparison:
    """Compare each group of runs with the first."""
    last = asked.to_round or _common_rounds(measured)
    require_rounds(last, asked.from_round, None)
    kept = {label: _long_enough(label, runs, last, asked) for label, runs in measured.items()}
    kinds = _wanted(kinds_of(list(kept.values())), asked.measures)
    control, *others = (_Side(label, runs) for label, runs in kept.items())
    rows = [row for side in others for row in _differences(control, side, kinds, asked)]

    return _comparison(kept, rows, asked, last)


def _by_design(design: Design, asked: _Asked) -> Comparison:
    """Compare the levels of one factor at each setting of others."""
    factor = design.factor(asked.by)
    strata = design.strata(factor, asked.within)
    measured = {
        _label(factor, level): design.with_level(factor, level, strata)
        for level in design.factors[factor]
    }
    kinds = _of_batch(kinds_of(list(measured.values())), asked.measures, design.wanted)
    asked.notes.extend(design.notes)
    rows = _contrasts(design, factor, kinds, asked, strata)
    _require_rows(rows, design, asked)
    ends = [cell.measured.run.rounds for cell in design.cells]
    last = asked.to_round or max(ends)
    asked.notes.extend(_ends_told(ends, asked.from_round, last))
    return replace(_comparison(measured, rows, asked, last), folder=design.folder)


def _require_rows(rows: Sequence[Difference], design: Design, asked: _Asked) -> None:
    if not rows:
        reasons = "; ".join(asked.notes) or "the runs have no measure in common"
        raise InputError(f"there is nothing to compare: {reasons}", path=design.folder)


def _ends_told(ends: Sequence[int], first: int, last: int) -> Iterator[str]:
    """Return a note if runs ended before the last round compared."""
    kept = [end for end in ends if end >= first]
    early = len(ends) - len(kept)
    if early:
        yield f"{early} of {len(ends)} runs are left out, since they ended before round {first}"
    if min(kept, default=last) < last:
        yield (
            f"the runs ended in rounds {min(kept)} to {max(kept)}: each counts with its last round "
            f"up to {last}"
        )


def _comparison(
    measured: Mapping[str, Sequence[Measured]],
    rows: Sequence[Difference],
    asked: _Asked,
    last: int,
) -> Comparison:
    from prism.science._compare_page import document_of
    from prism.science._statistics import holm

    corrected = [
        replace(row, p_holm=p) for row, p in zip(rows, holm([row.p for row in rows]), strict=True)
    ]
    groups = (
        ComparedGroup(label, tuple(each.run for each in runs)) for label, runs in measured.items()
    )

    return Comparison(
        tuple(groups),
        tuple(corrected),
        tuple(dict.fromkeys([*asked.notes, *_what_is_possible(corrected)])),
        asked.from_round,
        last,
        asked.confidence,
        tuple(map(tuple, measured.values())),
        document_of,
    )


def _contrasts(
    design: Design,
    factor: str,
    kinds: Mapping[str, MeasureKind],
    asked: _Asked,
    strata: Sequence[str],
) -> list[Difference]:
    """Compare every level of a factor with the first at each setting of others."""
    rows: list[Difference] = []
    for setting in design.settings(strata):
        where = text_of(setting)
        first, *levels = ({factor: level, **setting} for level in design.factors[factor])
        for second in levels:
            sides = _sides_at(design, factor, (first, second), where, asked)
            if sides is not None:
                found = _differences(*sides, kinds, asked)
                rows += [replace(row, setting=where) for row in found]

    return rows


def _sides_at(
    design: Design, factor: str, both: Sequence[Mapping[str, Any]], where: str, asked: _Asked
) -> tuple[_Side, _Side] | None:
    """Return the runs of two levels at the settings of others that both have; None without any."""
    names = [_label(factor, each[factor]) for each in both]
    others = [design.others_at(each) for each in both]
    shared = set.intersection(*others)
    if left_out := _left_out(names, others):
        asked.notes.append(f"{left_out} at {where}" if where else left_out)
    if not shared:
        return None

    control, side = (
        _Side(name, design.runs_at(each, shared)) for name, each in zip(names, both, strict=True)
    )
    return control, side


def _left_out(names: Sequence[str], others: Sequence[set[Any]]) -> str:
    """Return which settings of other factors only one of two levels has; empty if none."""
    shared, every = set.intersection(*others), set.union(*others)
    if every and shared == every:
        return ""

    both = " and ".join(names)
    if shared:
        told = f"{len(shared)} of {len(every)} settings of the other factors, which both have"
        return f"{both} are compared at {told}"

    lacking = [name for name, known in zip(names, others, strict=True) if not known]
    if lacking:
        return f"no run of {lacking[0]}"
    return f"{both} have no setting of the other factors in common"


def _label(factor: str, level: Any) -> str:
    return str(level) if factor == ARM else f"{factor}={level}"


def _of_batch(
    kinds: Mapping[str, MeasureKind], asked: Sequence[str] | None, planned: Sequence[str]
) -> dict[str, MeasureKind]:
    """Return the measures of a batch to compare, by default few, since each adds a test."""
    if asked is not None or planned:
        return _wanted(kinds, planned if asked is None else asked)

    # only the final value of a measure, not its mean over the rounds as well
    own = [name for name, kind in kinds.items() if kind == "own" and not name.endswith("_mean")]
    return {name: kinds[name] for name in own or kinds}


def _measured(
    groups: Mapping[str, Sequence[Path]],
    asked: _Asked,
    progress: Callable[[int, int], None] | None,
) -> dict[str, list[Measured]]:
    """Measure all runs of each group."""
    paths = [(label, path) for label, runs in groups.items() for path in runs]
    measured: dict[str, list[Measured]] = {label: [] for label in groups}
    for done, (label, path) in enumerate(paths, start=1):
        measured[label].append(measure_run(path, asked.from_round, asked.to_round))
        if progress is not None:
            progress(done, len(paths))

    return measured


def _long_enough(label: str, runs: Sequence[Measured], last: int, asked: _Asked) -> list[Measured]:
    """Return the runs that have completed a round, and note those that have not.

    Raises:
        InputError: If no run has completed it.
    """
    kept = [each for each in runs if each.run.rounds >= last]
    if not kept:
        problem = f"no run has completed round {last}: choose an earlier to_round (--to-round)"
        raise InputError(problem, path=label)

    asked.notes.extend(
        f"{each.run.path} is left out: it has completed {each.run.rounds} of {last} rounds"
        for each in runs
        if each.run.rounds < last
    )

    return kept


def _common_rounds(measured: Mapping[str, Sequence[Measured]]) -> int:
    """Return the rounds of all runs.

    Raises:
        InputError: If complete runs have different numbers of rounds.
    """
    runs = [each.run for each in chain(*measured.values())]
    lengths = {run.rounds: run for run in runs if run.ended}
    if len(lengths) > 1:
        least, most = min(lengths), max(lengths)
        told = f"{lengths[least].path} has {least}, {lengths[most].path} has {most}"
        raise InputError(
            f"the runs have different numbers of rounds ({told}): use to_round "
            f"(--to-round), at most {least}, to compare the rounds that all have"
        )

    return next(iter(lengths), max(run.rounds for run in runs))


def _wanted(
    kinds: Mapping[str, MeasureKind], measures: Iterable[str] | None
) -> dict[str, MeasureKind]:
    """Return the measures that are compared.

    Raises:
        InputError: If one is unknown.
    """
    names = dict.fromkeys(kinds if measures is None else measures)
    unknown = [name for name in names if name not in kinds]
    if unknown:
        # imported here as it loads pydantic, which is needed only for the message
        from prism.files.declarations import meant

        close = meant(unknown[0], kinds)
        guess = "" if close is None else f" (did you mean {close!r}?)"
        problem = f"{unknown[0]!r} is an unknown measure{guess}; the runs have {', '.join(kinds)}"
        raise InputError(problem)

    return {name: kinds[name] for name in names}


def _paired(first: _Side, second: _Side, asked: _Asked) -> _Pair:
    """Pair runs by their seeds, if they should be paired, and note what is left out.

    Raises:
        InputError: If they should be paired but cannot be.
    """
    alone = _Pair(first, second, paired=False)
    if asked.paired is False:
        return alone

    problem = _unpairable(first, second, wanted=asked.paired is True)
    if problem and asked.paired:
        raise InputError(f"runs cannot be paired by their seeds: {problem}")
    if problem:
        asked.notes.append(f"compared as groups, not in pairs: {problem}")
        return alone

    asked.notes.extend([*_alone_in(first, second), *_alone_in(second, first)])
    shared = [seed for seed in first.by_seed if seed in second.by_seed]

    return _Pair(first.with_seeds(shared), second.with_seeds(shared), paired=True)


def _alone_in(side: _Side, other: _Side) -> Iterator[str]:
    """Yield a note on runs of one side that have no partner on the other, if any."""
    alone = [str(seed) for seed in side.by_seed if seed not in other.by_seed]
    if alone:
        which = f"runs of {side.label} with seed {', '.join(alone)}"
        yield f"left out of the pairs: {which}, which {other.label} lacks"


def _unpairable(first: _Side, second: _Side, *, wanted: bool) -> str:
    """Return why runs cannot be paired by their seeds; empty if they can."""
    if problem := _seeds_unfit(first.runs) or _seeds_unfit(second.runs):
        return problem

    shared = len(first.by_seed.keys() & second.by_seed.keys())
    # pairing only a few of the runs would discard the others
    is_enough = shared > 0 if wanted else 2 * shared > max(len(first.runs), len(second.runs))

    seeds = "no seeds" if not shared else "1 seed" if shared == 1 else f"{shared} seeds"
    return "" if is_enough else f"{first.label} and {second.label} share {seeds}"


def _seeds_unfit(runs: Sequence[Measured]) -> str:
    """Return why seeds do not identify the runs; empty if they do."""
    found: dict[int, Path] = {}
    for run in (each.run for each in runs):
        if run.seed is None:
            return f"the log of {run.path} has no seed"
        if run.seed in found:
            return f"{found[run.seed]} and {run.path} have the same seed"
        found[run.seed] = run.path

    return ""


def _differences(
    first: _Side, second: _Side, kinds: Mapping[str, MeasureKind], asked: _Asked
) -> list[Difference]:
    """Compare each measure of two groups."""
    pair = _paired(first, second, asked)
    one, other = (len(side.runs) for side in pair.sides)
    rows = []
    for name, kind in kinds.items():
        row = Difference(name, kind, first.label, second.label, pair.paired, one, other)
        rows.append(_compared(row, pair, asked))

    return rows


def _compared(row: Difference, pair: _Pair, asked: _Asked) -> Difference:
    """Compare the values of a measure in two groups, in the runs that have it."""
    from prism.science._statistics import as_values, interval, mann_whitney, wilcoxon

    first, second = _values(row.measure, row.kind, pair)
    lacking = row.runs_first - len(first) + (0 if pair.paired else row.runs_second - len(second))
    row = replace(row, runs_first=len(first), runs_second=len(second))
    if not first or not second:
        return replace(row, remark=NONE)

    values = as_values(first), as_values(second)
    found = interval(*values, paired=pair.paired, confidence=asked.confidence)
    row = replace(
        row,
        mean_first=float(values[0].mean()),
        mean_second=float(values[1].mean()),
        difference=found.difference,
        low=found.low,
        high=found.high,
        standardised=_over(found.difference, found.scale),
        standardised_low=_over(found.low, found.scale),
        standardised_high=_over(found.high, found.scale),
        t_p=found.t_p,
        deviation=found.deviation,
        remark=f"{lacking} {'pairs' if pair.paired else 'runs'} lack it" if lacking else "",
    )
    if len({*first, *second}) == 1:
        return replace(row, remark=SAME)
    if len(first) == len(second) == 1:
        return replace(row, remark="; ".join(filter(None, (row.remark, SINGLE))))

    return replace(row, **asdict((wilcoxon if pair.paired else mann_whitney)(*values)))


def _values(name: str, kind: MeasureKind, pair: _Pair) -> tuple[list[float], list[float]]:
    """Return the values of two groups, from the runs, or pairs, that have the measure."""
    # a log has no share for a state without agents
    missing = 0.0 if kind == "state" else None
    one, other = ([run.values.get(name, missing) for run in side.runs] for side in pair.sides)
    if pair.paired:
        both = [(a, b) for a, b in zip(one, other, strict=True) if None not in (a, b)]
        one, other = [a for a, _ in both], [b for _, b in both]

    return _known(one), _known(other)


def _over(value: float | None, scale: float | None) -> float | None:
    return None if value is None or scale is None else value / scale


def _known(values: Sequence[float | None]) -> list[float]:
    return [each for each in values if each is not None]


def _what_is_possible(rows: Sequence[Difference]) -> list[str]:
    """Return notes if too few runs, or too many tests, rule out any significance."""
    tested = {row: row.least_p for row in rows if row.least_p is not None}
    few = [row for row, least_p in tested.items() if least_p > LEVEL]
    notes = list(dict.fromkeys(map(_too_few, few)))

    least = min(tested.values(), default=0) * len(tested)
    if least > LEVEL and len(few) < len(tested):
        notes.append(
            f"{len(tested)} tests: with so few runs no p-value below {min(1.0, least):.3g} is "
            "possible after Holm's correction; compare fewer measures, or make more runs"
        )

    return notes


def _too_few(row: Difference) -> str:
    """Return a note that no difference can be significant, and how many runs are needed."""
    one, other = row.runs_first, row.runs_second
    size = f"{one} pairs" if row.paired else f"{one} against {other} runs"
    least = "6 pairs" if row.paired else "4 runs each"
    bound = f"below {row.least_p:.3g}" if row.least_p != 1 else "but 1"

    return (
        f"{size}: no p-value {bound} is possible, whatever their results; at least {least} are "
        f"needed for {LEVEL:g}"
    )
