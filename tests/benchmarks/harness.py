"""Time several ways to do one thing in turns, and compare the results with targets.

All columns of a table are timed in turns: once each, then again in another order. A slow moment of
the machine so falls on all of them, and the ratio of two columns within one turn is worth more than
either time. The garbage collector stays on, as in production.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median
from timeit import Timer
from typing import Any


@dataclass(frozen=True, slots=True)
class Effort:
    """Size and number of measurements.

    Args:
        repeats: Turns that every column gets.
        seconds: Duration of one turn of one column.
        agents: Agents over which memory is measured.
        starts: Interpreters started for every column of an import.
    """

    repeats: int
    seconds: float
    agents: int
    starts: int


FULL = Effort(repeats=25, seconds=0.04, agents=1_000, starts=40)
QUICK = Effort(repeats=5, seconds=0.01, agents=100, starts=5)


@dataclass(frozen=True, slots=True)
class Column:
    """One way to do the thing that a table compares.

    Args:
        name: What the reader sees.
        statement: The Python statement that is timed.
        names: What the statement's names stand for.
    """

    name: str
    statement: str
    names: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurements of one column.

    Args:
        name: The column.
        samples: One figure for every turn, in the table's unit.
    """

    name: str
    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        """The shortest time, the one least disturbed by other work on the machine."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The median time."""
        return median(self.samples)


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure with a target.

    Args:
        text: What the figure says.
        best: The figure from the best turns; this is the one that is held against the target.
        median: The figure from the middle turn.
        unit: What follows the figure, such as ``x`` or ``ms``.
        at_most: The target, if less is better.
        at_least: The target, if more is better.
    """

    text: str
    best: float
    median: float
    unit: str
    at_most: float = inf
    at_least: float = -inf

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_most < inf:
            return f"at most {self.at_most:,g} {self.unit}"
        return f"at least {self.at_least:,g} {self.unit}"

    @property
    def result(self) -> str:
        """Whether the target is ``met`` or the figure falls ``short``."""
        return "met" if self.at_least <= self.best <= self.at_most else "short"


@dataclass(frozen=True, slots=True)
class Table:
    """The results of one comparison.

    Args:
        title: What was compared.
        unit: Unit of the measurements.
        reference: The column that the others are given as a multiple of.
        measurements: One for every column.
        claims: What follows from them.
    """

    title: str
    unit: str
    reference: str
    measurements: Sequence[Measurement]
    claims: Sequence[Claim] = ()


def measure(columns: Sequence[Column], effort: Effort) -> list[Measurement]:
    """Time columns in turns.

    Returns:
        Microseconds for one execution of each column's statement, in the order of the columns.
    """
    timers = [
        Timer(column.statement, setup="import gc; gc.enable()", globals=dict(column.names))
        for column in columns
    ]
    counts = [_executions(timer, effort.seconds) for timer in timers]
    samples: list[list[float]] = [[] for _ in columns]
    for turn in range(effort.repeats):
        for index in _rotated(len(columns), turn):
            count = counts[index]
            samples[index].append(timers[index].timeit(count) / count * 1e6)
    return [
        Measurement(column.name, tuple(found))
        for column, found in zip(columns, samples, strict=True)
    ]


def ratio(text: str, above: Measurement, below: Measurement, **target: float) -> list[Claim]:
    """Return the claim that one column takes a multiple of the time of another.

    Args:
        text: What the ratio says.
        above: The numerator.
        below: The denominator.
        target: ``at_most`` or ``at_least``.
    """
    turns = (one / other for one, other in zip(above.samples, below.samples, strict=True))
    return [Claim(text, above.best / below.best, median(turns), "x", **target)]


def _executions(timer: Timer, seconds: float) -> int:
    """Return how often to execute a statement in one turn; this also warms it up."""
    count = 1
    while (taken := timer.timeit(count)) < seconds / 4:
        count *= 4
    return max(1, round(count * seconds / taken))


def _rotated(length: int, turn: int) -> list[int]:
    return [(index + turn) % length for index in range(length)]
