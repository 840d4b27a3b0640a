"""Coverage of charts: which states, transitions and guard outcomes a pytest run has exercised.

Each worker records, and the controller reports. Charts with the same name, states and transitions
are one chart here, however often they were built, also in several processes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pytest

from prism.drawing import printable, showable
from prism.statechart import Definition
from prism.statechart.names import shown_name
from prism.statechart.states import leaf_texts, state_text
from prism.statechart.transitions import target_text, trigger_text
from prism.telemetry import ChartBuilt, GuardEvaluated, Instrument, TransitionDetails, instrumented

_OUTPUT = "statechart_coverage"

KINDS = ("states", "transitions", "guards")


class CoveragePlugin:
    """Records charts until `stop`, and reports on them when the session ends.

    Args:
        fail_under: Percent below which the session fails; None for no limit.
    """

    def __init__(self, fail_under: float | None) -> None:
        self.recorder: Recorder = Recorder()
        self._fail_under = fail_under
        self._lost: list[str] = []
        self._complaint = ""
        self._recording = ExitStack()
        self._recording.enter_context(instrumented(self.recorder))

    def stop(self) -> None:
        """Stop recording."""
        self._recording.close()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002
        """Add what a worker of pytest-xdist has recorded, unless it crashed."""
        output = getattr(node, "workeroutput", {})
        if _OUTPUT in output:
            self.recorder.load(output[_OUTPUT])
        else:
            self._lost.append(str(node.gateway.id))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker, hand the record to the controller; there, judge it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OUTPUT] = self.recorder.dump()
            return

        percent, least = percent_of(self.recorder.used()), self._fail_under
        if least is not None and percent < least:
            self._complaint = (
                f"statechart coverage of {percent:g}% is below the required {least:.12g}%"
            )
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report."""
        terminalreporter.section("statechart coverage")
        for line in report_lines(self.recorder):
            terminalreporter.line(line)
        if self._lost:
            lost = ", ".join(self._lost)
            terminalreporter.line(f"workers that crashed and are not counted: {lost}")
        if self._complaint:
            terminalreporter.line(f"FAIL {self._complaint}", red=True)


class Move(NamedTuple):
    """A transition of a chart.

    Args:
        source: State that it leaves.
        target: State that it leads to.
        text: ``source --trigger--> target [guard]``.
        is_guarded: Whether it has a guard.
    """

    source: str
    target: str
    text: str
    is_guarded: bool


class Share(NamedTuple):
    """How much of something was exercised.

    Args:
        total: How many there are.
        missing: The parts that were never exercised, as text.
    """

    total: int
    missing: list[str]


@dataclass(frozen=True, slots=True)
class ChartUse:
    """A chart, and what of it was exercised.

    Args:
        name: Name of the chart.
        states: Its states, in definition order.
        moves: Its transitions, in definition order.
        visited: The states in which an agent was seen.
        counts: How often a transition, by its place, was ``made``, or its guard ``passed``,
            ``failed`` or ``raised``.
    """

    name: str
    states: tuple[str, ...]
    moves: tuple[Move, ...]
    visited: set[str] = field(default_factory=set)
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)

    def shares(self) -> dict[str, Share]:
        """Return the share of ``states``, ``transitions`` and outcomes of ``guards`` exercised."""
        unmade = [move.text for place, move in enumerate(self.moves) if not self._is(place, "made")]
        guards = 2 * sum(move.is_guarded for move in self.moves)
        return {
            "states": Share(len(self.states), [s for s in self.states if s not in self.visited]),
            "transitions": Share(len(self.moves), unmade),
            "guards": Share(guards, [*self._missing_outcomes()]),
        }

    def _is(self, place: int, outcome: str) -> bool:
        return self.counts[place, outcome] > 0

    def _missing_outcomes(self) -> Iterator[str]:
        for place, move in enumerate(self.moves):
            raised = self.counts[place, "raised"]
            note = f" (raised {raised} x)" if raised else ""
            for outcome in ("passed", "failed"):
                if move.is_guarded and not self._is(place, outcome):
                    yield f"{move.text}: never {outcome}{note}"


class Recorder(Instrument):
    """Records what is exercised of all charts while it is installed.

    Attributes:
        charts: The charts, each by a text that identifies it.
    """

    def __init__(self) -> None:
        self.charts: dict[str, ChartUse] = {}
        # a definition must not outlive its chart here: its guards may hold anything
        self._uses: WeakKeyDictionary[Definition[Any], ChartUse] = WeakKeyDictionary()

    def chart_built(self, details: ChartBuilt, /) -> None:
        """Take a chart in, even if it is never used."""
        self._use_of(details.chart)

    def guard(self, details: GuardEvaluated, /) -> None:
        """Count the outcome of a guard."""
        use = self._use_of(details.chart)
        for place in _places(details.number):
            use.visited.add(use.moves[place].source)
            use.counts[place, details.outcome] += 1

    def transition(self, details: TransitionDetails, /) -> None:
        """Count a transition that was made."""
        use = self._use_of(details.chart)
        for place in _places(details.number):
            use.visited.update(use.moves[place][:2])
            use.counts[place, "made"] += 1

        # a target names only one of the states that a chart with composites enters
        if (tree := details.chart.tree) is not None:
            leaves = leaf_texts(details.agent.state)
            use.visited.update(state_text(each) for leaf in leaves for each in tree.around(leaf))

    def used(self) -> list[ChartUse]:
        """Return the charts of which anything was exercised."""
        return [chart for chart in self.charts.values() if chart.counts]

    def dump(self) -> str:
        """Return everything as a text, for the `load` of another process."""
        return json.dumps(
            [
                (use.name, use.states, use.moves, [*use.visited], [*use.counts.items()])
                for use in self.charts.values()
            ]
        )

    def load(self, text: str) -> None:
        """Add what another process has recorded."""
        for name, states, moves, visited, counts in json.loads(text):
            use = self._known(ChartUse(name, tuple(states), tuple(Move(*move) for move in moves)))
            use.visited.update(visited)
            use.counts.update({(place, outcome): count for (place, outcome), count in counts})

    def _use_of(self, chart: Definition[Any]) -> ChartUse:
        use = self._uses.get(chart)
        if use is None:
            moves = (_move(each) for each in chart.written)
            use = self._known(ChartUse(chart.name, tuple(chart.hierarchy.texts[1:]), tuple(moves)))
            self._uses[chart] = use

        return use

    def _known(self, use: ChartUse) -> ChartUse:
        # by what it is, as the workers of pytest-xdist build charts of their own
        return self.charts.setdefault(json.dumps([use.name, use.states, use.moves]), use)


def _move(item: Any) -> Move:
    source, target = state_text(item.source), target_text(item.target)
    guard = shown_name(item.guard, "guard")
    text = f"{source} --{trigger_text(item.trigger)}--> {target}"
    return Move(source, target, text + (f" [{guard}]" if guard else ""), guard is not None)


def _places(number: int | tuple[int, ...]) -> tuple[int, ...]:
    return number if isinstance(number, tuple) else (number,)


def percent_of(charts: Iterable[ChartUse]) -> float:
    """Return the percent of states, transitions and guard outcomes that were exercised.

    Returns:
        The share of them all together, rounded down to a tenth, so that 100 means all; 0 if there
        are no charts.
    """
    shares = [share for chart in charts for share in chart.shares().values()]
    return _percent(shares) if shares else 0.0


def _percent(shares: Iterable[Share]) -> float:
    total, missing = _sums(shares)
    # of nothing, nothing is missing
    return (total - missing) * 1000 // total / 10 if total else 100.0


def _sums(shares: Iterable[Share]) -> tuple[int, int]:
    pairs = [(share.total, len(share.missing)) for share in shares]
    return sum(total for total, _ in pairs), sum(missing for _, missing in pairs)


def report_lines(recorder: Recorder) -> Iterator[str]:
    """Yield the report as lines: a table of the charts, then everything never exercised.

    Control characters in names and states are not shown.
    """
    for line in _lines(recorder):
        yield printable(showable(line))


def _lines(recorder: Recorder) -> Iterator[str]:
    used = recorder.used()
    rows = [("chart", *KINDS, "total"), *(_row(chart.name, [chart]) for chart in used)]
    if len(used) > 1:
        rows.append(_row("all", used))
    if used:
        width = max(len(row[0]) for row in rows)
        for name, *cells in rows:
            yield name.ljust(width) + "".join(cell.rjust(16) for cell in cells)
    else:
        yield "no chart was used"

    for chart in used:
        shares = chart.shares()
        if any(share.missing for share in shares.values()):
            yield f"never exercised in {chart.name}:"
        for kind, share in shares.items():
            for text in share.missing:
                yield f"  {kind.removesuffix('s'):<10}  {text}"

    if unused := sorted({chart.name for chart in recorder.charts.values() if not chart.counts}):
        yield f"built but never used: {', '.join(unused)}"


def _row(name: str, charts: Sequence[ChartUse]) -> tuple[str, ...]:
    cells = []
    for kind in KINDS:
        shares = [chart.shares()[kind] for chart in charts]
        total, missing = _sums(shares)
        cells.append(f"{total - missing}/{total} {_percent(shares):4.0f}%")

    return name, *cells, f"{percent_of(charts):g}%"
