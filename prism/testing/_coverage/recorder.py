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
class TransitionUse:
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
        transitions: These, in definition order.
    """

    name: str
    states: tuple[str, ...]
    transitions: tuple[TransitionUse, ...]

    def is_used(self) -> bool:
        """Return whether anything of it was exercised."""
        return any(use.tried or use.asked() for use in self.transitions)

    def shares(self) -> dict[str, Share]:
        """Return the share of ``states``, ``transitions`` and outcomes of ``guards`` exercised."""
        seen = {end for use in self.transitions if use.made for end in (use.source, use.target)}
        seen |= {use.source for use in self.transitions if use.tried or use.asked()}
        guarded = [use for use in self.transitions if use.guard is not None]

        return {
            "states": Share(
                len(self.states), tuple(state for state in self.states if state not in seen)
            ),
            "transitions": Share(
                len(self.transitions), tuple(str(use) for use in self.transitions if not use.made)
            ),
            "guards": Share(2 * len(guarded), tuple(_missing_outcomes(guarded))),
        }

    def add(self, others: Iterable[Mapping[str, Any]]) -> None:
        """Add the counts of the same transitions, as plain data, from another process."""
        for use, other in zip(self.transitions, others, strict=True):
            for count in ("tried", "made", "passed", "failed", "raised"):
                setattr(use, count, getattr(use, count) + other[count])


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
        use = self._use_of(details.chart).transitions[details.number]
        setattr(use, details.outcome, getattr(use, details.outcome) + 1)

    def transition_began(self, details: TransitionDetails, /) -> None:
        """Count a transition that its action may still prevent."""
        self._use_of(details.chart).transitions[details.number].tried += 1

    def transition(self, details: TransitionDetails, /) -> None:
        """Count a transition that was made."""
        self._use_of(details.chart).transitions[details.number].made += 1

    def used(self) -> list[ChartUse]:
        """Return the charts of which anything was exercised."""
        return [chart for chart in self.charts.values() if chart.is_used()]

    def dump(self) -> list[dict[str, Any]]:
        """Return everything as plain data, for the `load` of another process."""
        return [asdict(chart) for chart in self.charts.values()]

    def load(self, data: Iterable[Mapping[str, Any]]) -> None:
        """Add what another process has recorded."""
        for chart in data:
            uses = [
                TransitionUse(use["source"], use["trigger"], use["target"], use["guard"])
                for use in chart["transitions"]
            ]
            self._known(chart["name"], chart["states"], uses).add(chart["transitions"])

    def _use_of(self, chart: Definition[Any]) -> ChartUse:
        use = self._known_uses.get(chart)
        if use is None:
            uses = [
                TransitionUse(
                    state_text(item.source),
                    item.trigger,
                    state_text(item.target),
                    shown_name(item.guard, "guard"),
                )
                for item in chart.transitions
            ]
            use = self._known(chart.name, map(state_text, chart.states), uses)
            self._known_uses[chart] = use

        return use

    def _known(self, name: str, states: Iterable[str], uses: Iterable[TransitionUse]) -> ChartUse:
        found = ChartUse(name, tuple(states), tuple(uses))
        identity = json.dumps([found.name, found.states, [str(use) for use in found.transitions]])
        return self.charts.setdefault(identity, found)


def percent(covered: int, total: int) -> float:
    """Return a share in percent, rounded down to a tenth, so that 100 means all."""
    # of nothing, nothing is missing
    return 100.0 if total == 0 else covered * 1000 // total / 10


def _missing_outcomes(guarded: Iterable[TransitionUse]) -> Iterator[str]:
    for use in guarded:
        raised = f" (raised {use.raised} x)" if use.raised else ""
        if not use.passed:
            yield f"{use}: never passed{raised}"
        if not use.failed:
            yield f"{use}: never failed{raised}"
