"""Which states, transitions and guard outcomes of charts have been exercised.

A chart that is built while a `Recorder` records gets rows whose guards and actions count what
becomes of them. Charts with the same name, states and moves are one chart here, however often they
were built, also in several processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any

from prism.statechart.formats._document import own_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge
from prism.telemetry._watching import watching


@dataclass(slots=True)
class Move:
    """A transition, and how often it was exercised.

    Args:
        source: State that it leaves.
        trigger: Its event.
        target: State that it leads to.
        guard: Name of its guard; None if it has none.
        tried: How often it was begun, its guard having passed; its action may have kept it from
            being made.
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
        """Return the move as ``source --trigger--> target [guard]``."""
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
        missing: Those that were never exercised, as text.
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
        moves: Its transitions, by source and event.
    """

    name: str
    states: tuple[str, ...]
    moves: tuple[Move, ...]

    def is_used(self) -> bool:
        """Return whether anything of it was exercised."""
        return any(move.tried or move.asked() for move in self.moves)

    def shares(self) -> dict[str, Share]:
        """Return how much was exercised of the ``states``, ``transitions`` and ``guards`` (each has two outcomes)."""
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


@dataclass
class Recorder:
    """Records what is exercised of every chart that is built while it is `recording`.

    Attributes:
        charts: The charts, by what tells them apart.
    """

    charts: dict[str, ChartUse] = field(default_factory=dict)

    def recording(self) -> AbstractContextManager[None]:
        """Record the charts that are built meanwhile; they go on counting afterwards."""
        return watching(self._watch)

    def used(self) -> list[ChartUse]:
        """List the charts of which anything was exercised."""
        return [chart for chart in self.charts.values() if chart.is_used()]

    def dump(self) -> list[dict[str, Any]]:
        """Return everything as plain data, to be taken over by the `load` of another process."""
        return [asdict(chart) for chart in self.charts.values()]

    def load(self, data: Iterable[Mapping[str, Any]]) -> None:
        """Add what another process has recorded."""
        for chart in data:
            moves = [
                Move(move["source"], move["trigger"], move["target"], move["guard"])
                for move in chart["moves"]
            ]
            self._known(chart["name"], chart["states"], moves).add(chart["moves"])

    def _known(self, name: str, states: Iterable[str], moves: Iterable[Move]) -> ChartUse:
        found = ChartUse(name, tuple(states), tuple(moves))
        identity = json.dumps([found.name, found.states, [str(move) for move in found.moves]])
        return self.charts.setdefault(identity, found)

    def _watch(self, name: str, rows: Any) -> Any:
        moves = [
            Move(
                edge.from_text,
                edge.trigger,
                edge.to_text,
                None if guard is None else own_name(guard) or "guard",
            )
            for row in rows.values()
            for candidates in row.values()
            for guard, _, _, edge in candidates
        ]
        counting = iter(self._known(name, map(state_text, rows), moves).moves)
        return {
            state: {
                trigger: tuple(_counted(candidate, next(counting)) for candidate in candidates)
                for trigger, candidates in row.items()
            }
            for state, row in rows.items()
        }


def percent(covered: int, total: int) -> float:
    """Return a share in percent, rounded down to a tenth, so that 100 means all; nothing of nothing is 100."""
    return 100.0 if total == 0 else covered * 1000 // total / 10


def _missing_outcomes(guarded: Iterable[Move]) -> Iterator[str]:
    for move in guarded:
        raised = f" (raised {move.raised} x)" if move.raised else ""
        if not move.passed:
            yield f"{move}: never passed{raised}"
        if not move.failed:
            yield f"{move}: never failed{raised}"


class _CountedEdge(Edge):
    """An edge that counts the moves that are made along it."""

    __slots__ = ("_move", "_watched")

    def __init__(self, edge: Edge, move: Move) -> None:
        super().__init__(edge.from_state, edge.to_state, edge.trigger)
        self._watched = edge
        self._move = move

    def made(self) -> None:
        self._move.made += 1
        self._watched.made()


def _counted(candidate: Any, move: Move) -> Any:
    guard, action, target, edge = candidate
    asked = None if guard is None else _counting_guard(guard, move)
    return asked, _counting_action(action, move), target, _CountedEdge(edge, move)


def _counting_guard(guard: Callable[[Any, Any], object], move: Move) -> Callable[[Any, Any], bool]:
    def asked(agent: Any, context: Any) -> bool:
        try:
            passes = bool(guard(agent, context))
        except Exception:
            move.raised += 1
            raise

        if passes:
            move.passed += 1
        else:
            move.failed += 1

        return passes

    # for another recorder, around this one
    asked.__name__ = asked.__qualname__ = own_name(guard) or "<lambda>"
    return asked


def _counting_action(
    action: Callable[[Any, Any], object] | None, move: Move
) -> Callable[[Any, Any], None]:
    def tried(agent: Any, context: Any) -> None:
        move.tried += 1
        if action is not None:
            action(agent, context)

    return tried
