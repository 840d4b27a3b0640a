"""Coverage of charts: which states, transitions and guard outcomes a pytest run has exercised.

Each worker records, and the controller reports. Charts with the same name, states and transitions
are one chart here, however often they were built, also in several processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pytest

from prism.drawing import printable, showable
from prism.statechart import Definition
from prism.statechart.names import function_label
from prism.statechart.states import leaf_texts, state_text
from prism.statechart.transitions import target_text, trigger_text
from prism.telemetry import Instrument, instrumented

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
        self._complaint = ""
        self._runs_tests = False
        self._recording = ExitStack()
        self._recording.enter_context(instrumented(self.recorder))

    def stop(self) -> None:
        """Stop recording."""
        self._recording.close()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002
        """Add what a worker of pytest-xdist has recorded, if it has not crashed."""
        if recorded := getattr(node, "workeroutput", {}).get(_OUTPUT):
            self.recorder.load(recorded)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that tests are run: with options such as ``--setup-plan`` there are none."""
        self._runs_tests |= report.when == "call" or report.skipped

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker, hand the record to the controller; there, judge it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OUTPUT] = self.recorder.dump()
            return

        percent, least = _percent(self.recorder.used(), KINDS), self._fail_under
        if self._runs_tests and least is not None and percent < least:
            required = f"below the required {least:.12g}%"
            self._complaint = f"statechart coverage of {percent:g}% is {required}"
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report."""
        if not self._runs_tests:
            return

        terminalreporter.section("statechart coverage")
        for line in self.recorder.report():
            # control characters in names and states would reach the terminal
            terminalreporter.line(printable(showable(line)))
        if self._complaint:
            terminalreporter.line(f"FAIL {self._complaint}", red=True)


class Move(NamedTuple):
    """A transition of a chart, with its text ``source --trigger--> target [guard]``."""

    source: str
    target: str
    text: str
    is_guarded: bool


@dataclass(slots=True)
class ChartUse:
    """A chart, and what of it was exercised.

    Args:
        name: Name of the chart.
        states: Its states, in definition order.
        moves: Its transitions, in definition order.
        exercised: The states in which an agent was; pairs of the place of a transition and what
            became of it: ``made``, or its guard ``passed``, ``failed`` or ``raised``.
    """

    name: str
    states: tuple[str, ...]
    moves: tuple[Move, ...]
    exercised: set[str | tuple[int, str]] = field(default_factory=set)

    def totals(self) -> dict[str, int]:
        """Return how many states, transitions and outcomes of guards there are."""
        guards = sum(move.is_guarded for move in self.moves)
        return dict(zip(KINDS, (len(self.states), len(self.moves), 2 * guards), strict=True))

    def missing(self) -> dict[str, list[str]]:
        """Return the states, transitions and outcomes of guards that were never exercised."""
        moves = list(enumerate(self.moves))
        return {
            "states": [text for text in self.states if text not in self.exercised],
            "transitions": [move.text for at, move in moves if (at, "made") not in self.exercised],
            "guards": [
                f"{move.text}: never {outcome}"
                for at, move in moves
                for outcome in ("passed", "failed")
                if move.is_guarded and (at, outcome) not in self.exercised
            ],
        }


class Recorder(Instrument):
    """Records what is exercised of all charts while it is installed.

    Attributes:
        charts: The charts, each by a text that identifies it.
    """

    def __init__(self) -> None:
        self.charts: dict[str, ChartUse] = {}
        # a definition must not outlive its chart here: its guards may hold anything
        self._uses: WeakKeyDictionary[Definition[Any], ChartUse] = WeakKeyDictionary()

    def chart_built(self, chart: Any, /) -> None:
        """Take a chart in, even if it is never used."""
        self._use_of(chart)

    def guard(self, chart: Any, number: Any, _agent: Any, _context: Any, outcome: Any, /) -> None:
        """Note the outcome of a guard."""
        use = self._use_of(chart)
        text = outcome if isinstance(outcome, str) else "raised"
        for each in _numbers(number):
            use.exercised |= {use.moves[each].source, (each, text)}

    def transition(self, chart: Any, number: Any, agent: Any, _context: Any, /) -> None:
        """Note a transition that was made."""
        use = self._use_of(chart)
        for each in _numbers(number):
            use.exercised |= {*use.moves[each][:2], (each, "made")}

        # a target names only one of the states that a chart with composites enters
        if chart.is_nested:
            around = map(chart.hierarchy.around, leaf_texts(agent.state))
            use.exercised.update(state_text(each) for states in around for each in states)

    def used(self) -> list[ChartUse]:
        """Return the charts of which anything was exercised."""
        return [chart for chart in self.charts.values() if chart.exercised]

    def dump(self) -> str:
        """Return everything as a text, for the `load` of another process."""
        return json.dumps(
            [(use.name, use.states, use.moves, [*use.exercised]) for use in self.charts.values()]
        )

    def load(self, text: str) -> None:
        """Add what another process has recorded."""
        for name, states, moves, entries in json.loads(text):
            use = self._merged(ChartUse(name, tuple(states), tuple(Move(*move) for move in moves)))
            use.exercised.update(each if isinstance(each, str) else tuple(each) for each in entries)

    def report(self) -> Iterator[str]:
        """Yield the lines of the report: a table of the charts, then what was never exercised."""
        used = self.used()
        rows = [("chart", *KINDS, "total"), *(_row(chart.name, [chart]) for chart in used)]
        if len(used) > 1:
            rows.append(_row("all", used))
        width = max(len(row[0]) for row in rows)
        for name, *cells in rows if used else ():
            yield name.ljust(width) + "".join(cell.rjust(16) for cell in cells)
        if not used:
            yield "no chart was used"

        for chart in used:
            missing = [(kind, text) for kind in KINDS for text in chart.missing()[kind]]
            if missing:
                yield f"never exercised in {chart.name}:"
            for kind, text in missing:
                yield f"  {kind.removesuffix('s'):<10}  {text}"

        if unused := sorted({chart.name for chart in self.charts.values() if not chart.exercised}):
            yield f"built but never used: {', '.join(unused)}"

    def _use_of(self, chart: Definition[Any]) -> ChartUse:
        use = self._uses.get(chart)
        if use is None:
            moves = tuple(map(_move, chart.transitions))
            use = self._merged(ChartUse(chart.name, tuple(chart.hierarchy.texts[1:]), moves))
            self._uses[chart] = use

        return use

    def _merged(self, use: ChartUse) -> ChartUse:
        # by what it is, as the workers of pytest-xdist build charts of their own
        return self.charts.setdefault(json.dumps([use.name, use.states, use.moves]), use)


def _move(item: Any) -> Move:
    source, target = state_text(item.source), target_text(item.target)
    guard = function_label(item.guard, "guard")
    text = f"{source} --{trigger_text(item.trigger)}--> {target}"
    return Move(source, target, text + (f" [{guard}]" if guard else ""), guard is not None)


def _numbers(number: int | tuple[int, ...]) -> tuple[int, ...]:
    return number if isinstance(number, tuple) else (number,)


def _row(name: str, charts: Sequence[ChartUse]) -> tuple[str, ...]:
    cells = []
    for kind in KINDS:
        used, total = _counted(charts, [kind])
        cells.append(f"{used}/{total} {_percent(charts, [kind]):4.0f}%")

    return name, *cells, f"{_percent(charts, KINDS):g}%"


def _percent(charts: Sequence[ChartUse], kinds: Sequence[str]) -> float:
    """Return the percent exercised, rounded to a tenth; 100 means all.

    Of nothing, nothing is missing; but without any chart it is 0.
    """
    used, total = _counted(charts, kinds)
    if used == total:
        return 100.0 * bool(charts)
    return min(round(100 * used / total, 1), 99.9)


def _counted(charts: Sequence[ChartUse], kinds: Sequence[str]) -> tuple[int, int]:
    total = sum(chart.totals()[kind] for chart in charts for kind in kinds)
    return total - sum(len(chart.missing()[kind]) for chart in charts for kind in kinds), total
