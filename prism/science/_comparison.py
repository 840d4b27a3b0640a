"""The results of a comparison: differences, and means by round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from prism.errors import FieldValueError
from prism.files._records import shown_path
from prism.science._arrays import columns_of
from prism.science._batch import read_batch
from prism.science._batch_tables import table_of

if TYPE_CHECKING:
    from prism.report import FigureFormat
    from prism.report._document import Document
    from prism.science._statistics import TestName


MeasureKind: TypeAlias = Literal["own", "run", "state", "cost", "mean"]
Source: TypeAlias = PathLike[str] | str

SAME = "the same in every run"
"""The remark on a measure that has only one value."""

SINGLE = "one run against one run: no test"

IS_SHOWN = pl.col("difference").is_not_null() & (pl.col("remark") != SAME)
"""Which rows of `Comparison.table` are shown: those in which runs differ."""

_PRINTED = (
    *("measure", "setting", "first", "second", "mean_first", "mean_second", "difference"),
    *("low", "high", "test", "p", "p_holm", "effect"),
)
_ROUNDS = {
    **dict.fromkeys(("measure", "group", "setting"), pl.String()),
    **dict.fromkeys(("round", "runs"), pl.Int64()),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64()),
}


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison.

    Args:
        path: Its folder or log.
        seed: Its seed, if the log has it.
        rounds: The number of rounds it has completed.
        ended: Whether its log is complete.
        setting: The values of other parameters of a batch, such as ``friends=4``, or empty.
    """

    path: Path
    seed: int | None
    rounds: int
    ended: bool
    setting: str = ""


@dataclass(slots=True)
class Measured:
    """The measures of a run.

    Args:
        run: The run.
        kinds: The kind of every measure, in their order.
        values: The value of each measure over the whole run.
        by_round: The value of each measure in each round, by round number.
    """

    run: ComparedRun
    kinds: dict[str, MeasureKind] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    by_round: dict[str, dict[int, float]] = field(default_factory=dict)

    def at(self, setting: str) -> Measured:
        """Return the same measures of the run at a setting."""
        return replace(self, run=replace(self.run, setting=setting))

    def add(self, kind: MeasureKind, name: str, value: object) -> None:
        """Add a measure; anything but a number is left out."""
        if isinstance(value, int | float):
            self.kinds[name] = kind
            self.values[name] = float(value)

    def add_round(self, name: str, number: int, value: object) -> None:
        """Add the value of a measure in one round."""
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
        """The seeds of its runs, where their logs contain them."""
        return tuple(run.seed for run in self.runs if run.seed is not None)


@dataclass(frozen=True, slots=True)
class Difference:
    """How one measure differs between two groups.

    Args:
        measure: The measure, or the distribution.
        kind: ``own`` for a measure of the world (its last round, and its mean over the rounds),
            ``run`` for those of the table ``run_measures``, ``state`` for shares of the agents
            in a state, ``cost`` for what models cost, ``distribution``.
        first: Label of the first group.
        second: Label of the second.
        paired: Whether runs of the same seed were compared with each other.
        runs_first: Runs of the first group that have the measure; the number of pairs if paired.
        runs_second: Runs of the second group that have the measure.
        mean_first: Mean of the first group; for a distribution, of all its values.
        mean_second: Mean of the second.
        difference: The second mean minus the first.
        low: Lower end of Student's interval of the difference for pairs, or Welch's for groups;
            None for groups of one run, and if nothing varies.
        high: Its upper end.
        standardised: The difference in units of the runs' standard deviation (Cohen's d_av); None
            if that is 0 or unknown.
        standardised_low: ``low`` in the same units.
        standardised_high: ``high`` in the same units.
        test: ``Wilcoxon`` or ``Mann-Whitney``; None if there was none.
        statistic: W+, or U of the second group.
        p: Two-sided p-value of the test.
        p_holm: The p-value, corrected for all tests of the comparison.
        effect: Matched-pairs rank-biserial correlation, or Cliff's delta.
        least_p: The smallest p-value that is possible with this number of runs.
        t_p: The p-value of the t-test of the interval.
        deviation: Standard deviation of the differences of pairs; of groups, that of the difference
            between two single runs.
        setting: The values of other parameters of a batch, such as ``friends=4``, or empty.
        remark: Why there is no test, or which runs lack the measure; empty if there is nothing to
            say.
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
    least_p: float | None = None
    t_p: float | None = None
    deviation: float | None = None
    setting: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison, from `compare`.

    Args:
        groups: The groups, or the arms of a batch. Each of them is compared with the first.
        differences: A row for each measure, setting and group except the first.
        notes: Remarks on the runs and the tests.
        from_round: The first round included.
        to_round: The last round included.
        confidence: Confidence level of the intervals.
        measured: The measures of each run of each group.
        page_of: Makes its page.
        folder: The folder of the batch, if it is one.
    """

    groups: tuple[ComparedGroup, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    from_round: int
    to_round: int
    confidence: float
    measured: tuple[tuple[Measured, ...], ...]
    page_of: Callable[[Comparison], Document] = field(repr=False, compare=False)
    folder: Path | None = None

    def table(self) -> pl.DataFrame:
        """Return the differences as a table, with a column for each field of `Difference`."""
        return pl.DataFrame(map(asdict, self.differences), schema=columns_of(Difference))

    def seeds_for(self, half_width: float) -> pl.DataFrame:
        """Return how many seeds intervals of the differences need to be so narrow.

        It is the smallest n for which t sd / sqrt(n) is at most the half width (Law 2015,
        Simulation Modeling and Analysis, 9.4.1), where sd is the ``deviation`` of the runs so far
        and t the quantile of Student's distribution. From few runs this is a rough estimate.

        Args:
            half_width: Half the width of the interval, in the unit of the measure.

        Returns:
            A row for each of ``differences``: ``measure``, ``setting``, ``first``, ``second``,
            ``deviation``, and ``seeds``, the number of pairs or of runs in each group; null where
            no runs differ.

        Raises:
            FieldValueError: If the half width is not above 0.
        """
        from prism.science._statistics import runs_for

        if not half_width > 0:
            raise FieldValueError(f"half_width must be above 0, got {half_width}")

        seeds = [
            runs_for(half_width, row.deviation, paired=row.paired, confidence=self.confidence)
            if row.deviation
            else None
            for row in self.differences
        ]
        table = self.table().select("measure", "setting", "first", "second", "deviation")
        return table.with_columns(seeds=pl.Series(seeds, dtype=pl.Int64()))

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
        return table_of(rows)

    def rounds(self, measures: Iterable[str] | None = None) -> pl.DataFrame:
        """Return the mean of each group in each round.

        Args:
            measures: The measures. Defaults to all that have rounds.

        Returns:
            ``measure``, ``group``, ``round``, ``runs``, ``mean``, ``low`` and ``high``: Student's
            interval of the mean, null for a group of one run. If the groups are compared at several
            settings, the rows of each have it as ``setting``.
        """
        wanted = None if measures is None else set(measures)
        settings = dict.fromkeys(run.run.setting for run in chain(*self.measured))
        parts = [
            part
            for name, kind in kinds_of(self.measured).items()
            if wanted is None or name in wanted
            for setting in settings
            for part in self._rounds_at(name, kind, setting)
        ]
        table = pl.concat([pl.DataFrame(schema=_ROUNDS), *parts]).fill_nan(None)

        return table if any(settings) else table.drop("setting")

    def _rounds_at(self, name: str, kind: MeasureKind, setting: str) -> Iterator[pl.DataFrame]:
        """Yield the rounds of a measure for each group that has it at a setting."""
        for group, runs in zip(self.groups, self.measured, strict=True):
            at_setting = [run for run in runs if run.run.setting == setting]
            if at_setting and any(name in run.by_round for run in runs):
                yield self._rounds_of(name, kind, group.label, at_setting, setting)

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

    def methods(self) -> str:
        """Return a paragraph for the methods of a paper: runs, seeds, tests, failures, versions."""
        from prism.science._paper import arranged, completed, counted, versions

        tests = dict.fromkeys(row.test for row in self.differences if row.test)
        tested = sum(row.p is not None for row in self.differences)
        said = [
            self._compared,
            self._measures,
            f"Differences of means have {100 * self.confidence:g}% intervals ({self.intervals}).",
            f"Tests: {' and '.join(tests) or 'none'}. The p-values of {counted(tested, 'test')} "
            "were corrected by Holm's method (1979).",
        ]
        if self.folder is not None:
            batch = read_batch(self.folder)
            said[1:1] = arranged(batch)
            said.append(completed(batch))
        said.append(f"Software: {versions('polars', 'scipy', 'statsmodels')}.")

        return " ".join(said)

    @property
    def _compared(self) -> str:
        """Which groups were compared, in which runs, as a sentence."""
        from prism.science._paper import seeds_of

        first, *others = self.groups
        runs = list(chain.from_iterable(group.runs for group in self.groups))
        seeds = seeds_of(list(chain.from_iterable(group.seeds for group in self.groups)))
        were = "was" if len(others) == 1 else "were"
        return (
            f"{', '.join(group.label for group in others)} {were} compared with {first.label} in "
            f"{len(runs)} runs ({seeds}), rounds {self.from_round} to {self.to_round}, "
            f"{self.pairing}."
        )

    @property
    def intervals(self) -> str:
        """Whose intervals the differences have: Student's for pairs, Welch's for groups."""
        paired = {row.paired for row in self.differences}
        names = {True: "Student's", False: "Welch's"}
        return " or ".join(name for key, name in names.items() if key in paired)

    @property
    def _measures(self) -> str:
        """What was compared, and in which rounds, as a sentence."""
        kinds = {row.measure: row.kind for row in self.differences}
        last: list[str] = []
        over: list[str] = []
        for name, kind in kinds.items():
            (last if kind == "own" and not name.endswith("_mean") else over).append(name)

        told = [f"{', '.join(last)} in round {self.to_round}"] * bool(last)
        told += [f"{', '.join(over)} over rounds {self.from_round} to {self.to_round}"] * bool(over)
        return f"Measures: {'; '.join(told)}."

    @property
    def pairing(self) -> str:
        """How runs were compared, in words: in pairs of the same seed, as groups, or both."""
        from prism.science._paper import counted

        # without a pair, nothing was compared
        pairs = sorted({row.runs_first for row in self.differences if row.paired} - {0})
        if not pairs:
            return "as groups"

        least, most = pairs[0], pairs[-1]
        said = f"in {counted(most, 'pair')} of the same seed"
        if least < most:
            said = f"in {least} to {most} pairs of the same seed"
        if any(row.setting for row in self.differences):
            said += " at each setting"

        is_all = all(row.paired for row in self.differences)
        return said if is_all else f"{said} where there are any, else as groups"

    def save_paper(self, folder: Path) -> list[Path]:
        """Write figures as PDF, the table as LaTeX and CSV, and a methods paragraph.

        Args:
            folder: The folder, made if it does not exist. Files of the same names are replaced.

        Returns:
            The paths of the files: the figures; ``differences`` as ``.tex`` and ``.csv``; and
            ``methods.md``.

        Raises:
            OSError: If a file cannot be written.
        """
        from prism.science._paper import write_paper

        tables = {"differences": self.table().filter(IS_SHOWN).select(_PRINTED)}
        written = write_paper(folder, tables, self.methods())
        return [*written, *self.save_figures(folder, "pdf")]

    @property
    def failures(self) -> Mapping[str, str]:
        """The reasons why figures could not be drawn, by name; usually empty."""
        return self._document.failures

    @cached_property
    def _document(self) -> Document:
        return self.page_of(self)

    def _rounds_of(
        self, name: str, kind: MeasureKind, label: str, runs: Sequence[Measured], setting: str
    ) -> pl.DataFrame:
        from prism.science._statistics import as_values, band

        missing = 0.0 if kind == "state" else float("nan")
        numbers = range(self.from_round, self.to_round + 1)
        values = [
            [run.by_round.get(name, {}).get(number, missing) for number in numbers] for run in runs
        ]
        columns = band(as_values(values), confidence=self.confidence)

        return pl.DataFrame(
            {
                "measure": [name] * len(numbers),
                "group": [label] * len(numbers),
                "setting": [setting] * len(numbers),
                "round": numbers,
                "runs": [len(runs)] * len(numbers),
                **dict(zip(("mean", "low", "high"), columns, strict=True)),
            },
            schema=_ROUNDS,
        )


def kinds_of(measured: Sequence[Sequence[Measured]]) -> dict[str, MeasureKind]:
    """Return the measures of all runs with their kinds."""
    found: dict[str, MeasureKind] = {}
    # the first run that has a measure determines its place and its kind
    for run in chain(*measured):
        found |= {name: kind for name, kind in run.kinds.items() if name not in found}

    return found
