"""What a comparison has found: differences, and the means of the rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from prism.files._records import shown_path

if TYPE_CHECKING:
    from prism.report import FigureFormat
    from prism.report._document import Document
    from prism.science._statistics import TestName


MeasureKind: TypeAlias = Literal["own", "run", "state", "cost", "distribution"]
Source: TypeAlias = PathLike[str] | str

_ROUNDS = ("measure", "group", "round", "runs", "mean", "low", "high")
_TEXTS = ("measure", "group", "kind", "first", "second", "test", "remark")
_COUNTS = ("runs_first", "runs_second", "round", "runs")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison.

    Args:
        path: Its folder or log.
        seed: Its seed, if its log says.
        rounds: How many rounds it has completed.
        ended: Whether its log has its end.
    """

    path: Path
    seed: int | None
    rounds: int
    ended: bool


@dataclass(slots=True)
class Measured:
    """What was measured of a run.

    Args:
        run: The run.
        kinds: The kind of every measure, in their order.
        values: What each measure came to in all.
        by_round: The same in each round, by its number.
        distributions: How often each value occurs, by the name of the distribution.
    """

    run: ComparedRun
    kinds: dict[str, MeasureKind] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    by_round: dict[str, dict[int, float]] = field(default_factory=dict)
    distributions: dict[str, dict[float, int]] = field(default_factory=dict)

    def add(self, kind: MeasureKind, name: str, value: object) -> None:
        """Add a measure; what is no number is left out."""
        if isinstance(value, int | float):
            self.kinds[name] = kind
            self.values[name] = float(value)

    def add_round(self, name: str, number: int, value: object) -> None:
        """Add what a measure came to in one round."""
        if isinstance(value, int | float):
            self.by_round.setdefault(name, {})[number] = float(value)


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """One group of runs.

    Args:
        label: Its name.
        runs: Its runs.
    """

    label: str
    runs: tuple[ComparedRun, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of its runs, as far as their logs say."""
        return tuple(run.seed for run in self.runs if run.seed is not None)


@dataclass(frozen=True, slots=True)
class Difference:
    """How one measure differs between two groups.

    Args:
        measure: The measure, or the distribution.
        kind: ``own`` for a measure of the world (its last round, and its mean over the rounds),
            ``run`` for those of `prism.analysis.run_measures`, ``state`` for shares of the agents
            in a state, ``cost`` for what models cost, ``distribution``.
        first: Label of the first group.
        second: Label of the second.
        paired: Whether runs of the same seed were compared with each other.
        runs_first: Runs of the first group that have the measure; of pairs, the number of pairs.
        runs_second: The same of the second.
        mean_first: Mean of the first group; of a distribution, of all its values.
        mean_second: Mean of the second.
        difference: The second mean minus the first.
        low: Lower end of the bootstrap interval of the difference; None of groups of one run.
        high: Its upper end.
        standardised: The difference in units of the runs' standard deviation (Cohen's d_av); None
            where that is 0 or unknown.
        standardised_low: ``low`` in the same units.
        standardised_high: ``high`` in the same units.
        test: ``Wilcoxon``, ``Mann-Whitney`` or ``Kolmogorov-Smirnov``; None if there was none.
        statistic: W+, U of the second group, or D.
        p: Two-sided p-value of the test.
        p_holm: The same, corrected for all tests of the comparison.
        effect: Matched-pairs rank-biserial correlation, Cliff's delta, or D.
        superiority: Probability that a run of the second group has more (ties are halves).
        least_p: The least p-value that so many runs allow.
        remark: Why there is no test, and which runs lack the measure; empty if all is well.
    """

    measure: str
    kind: MeasureKind
    first: str
    second: str
    paired: bool
    runs_first: int
    runs_second: int
    mean_first: float | None = None
    mean_second: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    standardised: float | None = None
    standardised_low: float | None = None
    standardised_high: float | None = None
    test: TestName | None = None
    statistic: float | None = None
    p: float | None = None
    p_holm: float | None = None
    effect: float | None = None
    superiority: float | None = None
    least_p: float | None = None
    remark: str = ""


@dataclass(frozen=True)
class Comparison:
    """What a comparison has found; made by `compare`.

    Args:
        groups: The groups; every one is compared with the first.
        differences: What differs, a row for each measure and group but the first.
        notes: What to know about the runs and the tests.
        from_round: The first round that counted.
        to_round: The last round.
        confidence: Coverage of the intervals.
        measured: What was measured in each run of each group.
        page_of: Makes its page.
    """

    groups: tuple[ComparedGroup, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    from_round: int
    to_round: int
    confidence: float
    measured: tuple[tuple[Measured, ...], ...]
    page_of: Callable[[Comparison], Document] = field(repr=False, compare=False)

    def table(self) -> pl.DataFrame:
        """Return the differences as a table, with a column for each field of `Difference`."""
        columns = [
            pl.Series(each.name, [getattr(row, each.name) for row in self.differences], kind)
            for each in fields(Difference)
            for kind in [_column_type(each.name)]
        ]
        return pl.DataFrame(columns)

    def runs(self) -> pl.DataFrame:
        """Return a row for each run: ``group``, ``run``, ``seed`` and its measures."""
        rows = [
            {
                "group": group.label,
                "run": shown_path(each.run.path),
                "seed": each.run.seed,
                **each.values,
            }
            for group, runs in zip(self.groups, self.measured, strict=True)
            for each in runs
        ]
        names = dict.fromkeys(name for row in rows for name in row)
        return pl.DataFrame(
            [{name: row.get(name) for name in names} for row in rows],
            strict=False,
            infer_schema_length=None,
        )

    def rounds(self, measures: Iterable[str] | None = None) -> pl.DataFrame:
        """Return the mean of each group in each round.

        Args:
            measures: The measures; None takes all that have rounds.

        Returns:
            ``measure``, ``group``, ``round``, ``runs``, ``mean``, ``low`` and ``high``: the
            percentiles of the bootstrap distribution of the mean, null for a group of one run.
        """
        wanted = None if measures is None else set(measures)
        kinds = kinds_of(self.measured)
        rows: list[dict[str, Any]] = []
        for name in kinds:
            if wanted is None or name in wanted:
                for group, runs in zip(self.groups, self.measured, strict=True):
                    rows += self._rounds_of(name, kinds[name], group.label, runs)

        schema = {name: _column_type(name) for name in _ROUNDS}
        return pl.DataFrame(rows, schema=schema)

    def html(self) -> str:
        """Return the comparison as one HTML page that works offline."""
        return self._document.html()

    def save_figures(self, folder: Path, format: FigureFormat = "svg") -> list[Path]:  # noqa: A002
        """Save every figure as a file; see `prism.report.Report.save_figures`.

        Args:
            folder: The folder, created if it does not exist. Files of the same names are replaced.
            format: ``svg``, ``png`` or ``pdf``.

        Returns:
            The paths of the files.

        Raises:
            InputError: If there is no such format.
            OSError: If a file cannot be written.
        """
        return self._document.save_figures(folder, format)

    @property
    def failures(self) -> Mapping[str, str]:
        """What is wrong with each figure that cannot be drawn, by name; usually nothing."""
        return self._document.failures

    @cached_property
    def _document(self) -> Document:
        return self.page_of(self)

    def _rounds_of(
        self, name: str, kind: MeasureKind, label: str, runs: Sequence[Measured]
    ) -> list[dict[str, Any]]:
        from prism.science._statistics import as_values, band

        missing = 0.0 if kind == "state" else float("nan")
        numbers = range(self.from_round, self.to_round + 1)
        if not any(name in run.by_round for run in runs):
            return []

        values = as_values(
            [
                [run.by_round.get(name, {}).get(number, missing) for number in numbers]
                for run in runs
            ]
        )
        means, lows, highs = band(values, confidence=self.confidence, seed=0)

        return [
            {
                "measure": name,
                "group": label,
                "round": number,
                "runs": len(runs),
                "mean": _known(mean),
                "low": _known(low),
                "high": _known(high),
            }
            for number, mean, low, high in zip(numbers, means, lows, highs, strict=True)
        ]


def kinds_of(measured: Sequence[Sequence[Measured]]) -> dict[str, MeasureKind]:
    """Return the measures of all runs with their kinds, without distributions."""
    found: dict[str, MeasureKind] = {}
    for runs in measured:
        for run in runs:
            found |= {name: kind for name, kind in run.kinds.items() if name not in found}

    return found


def _column_type(name: str) -> pl.DataType:
    if name in _TEXTS:
        return pl.String()
    if name == "paired":
        return pl.Boolean()
    return pl.Int64() if name in _COUNTS else pl.Float64()


def _known(value: float) -> float | None:
    return None if isnan(value) else float(value)
