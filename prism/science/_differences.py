"""What differs between groups of runs, as tables and in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism.science._measured_runs import ComparedRun, MeasureKind
from prism.science._statistics import band
from prism.science.batch_tables import table_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


@dataclass(frozen=True, slots=True)
class Difference:
    """How one measure differs between two groups.

    Args:
        measure: The measure.
        kind: ``own`` for a measure of the world (its last round, and its mean over the rounds),
            ``run`` for those of the table ``run_measures``, ``state`` for shares of the agents
            in a state, ``cost`` for what models cost.
        first: Label of the first group.
        second: Label of the second.
        paired: Whether runs of the same seed were compared with each other.
        runs_first: Runs of the first group that have the measure; the number of pairs if paired.
        runs_second: Runs of the second group that have the measure.
        mean_first: Mean of the first group.
        mean_second: Mean of the second.
        difference: The second mean minus the first.
        low: Lower end of Student's interval of the difference for pairs, or Welch's for groups;
            None of fewer than three pairs or runs, and if nothing varies.
        high: Its upper end.
        p: Two-sided p-value of no difference, from the same distribution as the interval.
        p_holm: The p-value, corrected for all tests of the comparison.
        effect: The difference in units of the runs' standard deviation (Cohen's d_av); None if that
            is 0 or unknown.
        setting: The values of other parameters of a batch, such as ``friends=4``, or empty.
        title: The measure in words with its unit, as its world has them; else its name.
        remark: Why there is no test; empty if there is one.
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
    p: float | None = None
    p_holm: float | None = None
    effect: float | None = None
    setting: str = ""
    title: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Differences:
    """What differs between groups of runs; `Comparison` documents the fields."""

    runs: tuple[ComparedRun, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    from_round: int
    to_round: int
    confidence: float
    folder: Path | None = None

    @property
    def groups(self) -> dict[str, tuple[ComparedRun, ...]]:
        """The runs of each group by its label, the control first."""
        labels = dict.fromkeys(run.group for run in self.runs)
        return {each: tuple(run for run in self.runs if run.group == each) for each in labels}

    def table(self) -> DuckDBPyRelation:
        """Return the differences as a table, with a column for each field of `Difference`."""
        return table_of([asdict(row) for row in self.differences])

    def rounds(self, measures: Iterable[str] | None = None) -> DuckDBPyRelation:
        """Return the mean of each group in each round.

        Args:
            measures: The measures. Defaults to all that have rounds.

        Returns:
            ``measure``, ``group``, ``setting``, ``round``, ``runs``, ``mean``, ``low`` and
            ``high``: Student's interval of the mean, missing below three runs.
        """
        return table_of(self.round_rows(measures))

    def round_rows(self, measures: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of `rounds` as plain data."""
        names = dict.fromkeys(name for run in self.runs for name in run.kinds)
        rows = []
        for name in names if measures is None else measures:
            for (group, setting), runs in groupby(self.runs, lambda run: (run.group, run.setting)):
                cell = [*runs]
                for number in range(self.from_round, self.to_round + 1):
                    if values := [*_in_round(cell, name, number)]:
                        head = {"measure": name, "group": group, "setting": setting}
                        counts = {"round": number, "runs": len(values)}
                        mean, low, high = band(values, self.confidence)
                        rows.append({**head, **counts, "mean": mean, "low": low, "high": high})
        return rows

    @property
    def intervals(self) -> str:
        """Whose intervals the differences have: Student's for pairs, Welch's for groups."""
        names = ("Student's" if row.paired else "Welch's" for row in self.differences)
        return " or ".join(dict.fromkeys(names))

    @property
    def pairing(self) -> str:
        """How runs were compared, in words: in pairs of the same seed, as groups, or both."""
        pairs = max((row.runs_first for row in self.differences if row.paired), default=0)
        if not pairs:
            return "as groups"
        text = f"in {pairs} pair{'s' * (pairs > 1)} of the same seed"
        text += " at each setting" * any(row.setting for row in self.differences)
        is_all = all(row.paired for row in self.differences)
        return text if is_all else f"{text} where there are any, else as groups"

    @property
    def title(self) -> str:
        """The groups in words."""
        control, *others = self.groups
        return f"{' and '.join(others)} against {control}"

    @property
    def seeds(self) -> list[int]:
        """The seeds of all runs."""
        return sorted({run.seed for run in self.runs})


def _in_round(runs: Iterable[ComparedRun], name: str, number: int) -> Iterator[float]:
    """Yield the value of a measure in one round, for each run that has it."""
    for run in runs:
        by_round = run.by_round.get(name, {})
        # a state that no agent was in has no share there: it is 0
        if number in by_round or run.kinds.get(name) == "state":
            yield by_round.get(number, 0.0)
