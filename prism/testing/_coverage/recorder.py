"""Which states, transitions and guard outcomes of charts have been exercised.

Charts with the same name, states and transitions are one chart here, however often they were built,
also in several processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from weakref import WeakKeyDictionary

from prism.statechart import Definition
from prism.statechart._identity import shown_name
from prism.statechart.states import state_text
from prism.telemetry import ChartBuilt, GuardEvaluated, Instrument, TransitionDetails


@dataclass(slots=True)
class Move:
    """A transition, and how often it was exercised.

    Args:
        source: State that it leaves.
        trigger: Its event.
        target: State that it leads to.
        guard: Name of its guard; None if it has none.
        tried: How often it began; its action may have kept it from being made.
        made: How often it was made.
        passed: How often its guard passed.
        failed: How often its guard did not.
        raised: How often its guard raised.
    """

    source: str
    trigger: str
    target: str
    guard: str | None = None
    tried: int = 0
    made: int = 0
    passed: int = 0
    failed: int = 0
    raised: int = 0

    def __str__(self) -> str:
        """Return ``source --trigger--> target [guard]``."""
        return f"{self.source} --{self.trigger}--> {self.target}" + (
            f" [{self.guard}]" if self.guard else ""
        )

    def asked(self) -> int:
        """Return how often its guard was asked."""
        return self.passed + self.failed + self.raised


@dataclass(frozen=True, slots=True)
class Share:
    """How much of something was exercised.

    Args:
        total: How many there are.
        missing: The parts that were never exercised, as text.
    """

    total: int
    missing: tuple[str, ...]

    @property
    def covered(self) -> int:
        """How many were exercised."""
        return self.total - len(self.missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the share as plain data."""
        share = percent(self.covered, self.total)
        return {
            "total": self.total,
            "covered": self.covered,
            "percent": share,
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class ChartUse:
    """A chart, and what of it was exercised.

    Args:
        name: Name of the chart.
        states: Its states, in definition order.
        moves: Its transitions, in definition order.
    """

    name: str
    states: tuple[str, ...]
    moves: tuple[Move, ...]

    def is_used(self) -> bool:
        """Return whether anything of it was exercised."""
        return any(move.tried or move.asked() for move in self.moves)

    def shares(self) -> dict[str, Share]:
        """Return the share of ``states``, ``transitions`` and outcomes of ``guards`` exercised."""
        seen = {end for move in self.moves if move.made for end in (move.source, move.target)}
        seen |= {move.source for move in self.moves if move.tried or move.asked()}
        guarded = [move for move in self.moves if move.guard is not None]

        return {
            "states": Share(
                len(self.states), tuple(state for state in self.states if state not in seen)
            ),
            "transitions": Share(
                len(self.moves), tuple(str(move) for move in self.moves if not move.made)
            ),
            "guards": Share(2 * len(guarded), tuple(_missing_outcomes(guarded))),
        }

    def add(self, others: Iterable[Mapping[str, Any]]) -> None:
        """Add the counts of the same moves, as plain data, from another process."""
        for move, other in zip(self.moves, others, strict=True):
            for count in ("tried", "made", "passed", "failed", "raised"):
                setattr(move, count, getattr(move, count) + other[count])


class Recorder(Instrument):
    """Records what is exercised of all charts while it is installed.

    Attributes:
        charts: The charts, each by a text that identifies it.
    """

    def __init__(self) -> None:
        self.charts: dict[str, ChartUse] = {}
        # a definition must not outlive its chart here: its guards may hold anything
        self._known_uses: WeakKeyDictionary[Definition[Any], ChartUse] = WeakKeyDictionary()

    def chart_built(self, details: ChartBuilt, /) -> None:
        """Take a chart in, even if it is never used."""
        self._use_of(details.chart)

    def guard(self, details: GuardEvaluated, /) -> None:
        """Count the outcome of a guard."""
        move = self._use_of(details.chart).moves[details.number]
        setattr(move, details.outcome, getattr(move, details.outcome) + 1)

    def transition_began(self, details: TransitionDetails, /) -> None:
        """Count a transition that its action may still prevent."""
        self._use_of(details.chart).moves[details.number].tried += 1

    def transition(self, details: TransitionDetails, /) -> None:
        """Count a transition that was made."""
        self._use_of(details.chart).moves[details.number].made += 1

    def used(self) -> list[ChartUse]:
        """Return the charts of which anything was exercised."""
        return [chart for chart in self.charts.values() if chart.is_used()]

    def dump(self) -> list[dict[str, Any]]:
        """Return everything as plain data, for the `load` of another process."""
        return [asdict(chart) for chart in self.charts.values()]

    def load(self, data: Iterable[Mapping[str, Any]]) -> None:
        """Add what another process has recorded."""
        for chart in data:
            moves = [
                Move(move["source"], move["trigger"], move["target"], move["guard"])
                for move in chart["moves"]
            ]
            self._known(chart["name"], chart["states"], moves).add(chart["moves"])

    def _use_of(self, chart: Definition[Any]) -> ChartUse:
        use = self._known_uses.get(chart)
        if use is None:
            moves = [
                Move(
                    state_text(item.source),
                    item.trigger,
                    state_text(item.target),
                    shown_name(item.guard, "guard"),
                )
                for item in chart.transitions
            ]
            use = self._known(chart.name, map(state_text, chart.states), moves)
            self._known_uses[chart] = use

        return use

    def _known(self, name: str, states: Iterable[str], moves: Iterable[Move]) -> ChartUse:
        found = ChartUse(name, tuple(states), tuple(moves))
        identity = json.dumps([found.name, found.states, [str(move) for move in found.moves]])
        return self.charts.setdefault(identity, found)


def percent(covered: int, total: int) -> float:
    """Return a share in percent, rounded down to a tenth, so that 100 means all."""
    # of nothing, nothing is missing
    return 100.0 if total == 0 else covered * 1000 // total / 10


def _missing_outcomes(guarded: Iterable[Move]) -> Iterator[str]:
    for move in guarded:
        raised = f" (raised {move.raised} x)" if move.raised else ""
        if not move.passed:
            yield f"{move}: never passed{raised}"
        if not move.failed:
            yield f"{move}: never failed{raised}"
