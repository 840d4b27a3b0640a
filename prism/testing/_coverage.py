"""Coverage of charts: which states, transitions and guard outcomes a pytest run has exercised.

Each worker records, and the controller reports. Charts with the same name, states and transitions
are one chart here, however often they were built, also in several processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any
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
        self._complaints: list[str] = []
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
            self.recorder.load(json.loads(output[_OUTPUT]))
        else:
            self._lost.append(str(node.gateway.id))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker, hand the record to the controller; there, judge it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OUTPUT] = json.dumps(self.recorder.dump())
            return

        self._judge()
        if self._complaints and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the report."""
        terminalreporter.section("statechart coverage")
        for line in self._lines():
            terminalreporter.line(line)

        for complaint in self._complaints:
            terminalreporter.line(f"FAIL {complaint}", red=True)

    def _lines(self) -> Iterator[str]:
        yield from report_lines(self.recorder)
        if self._lost:
            yield f"workers that crashed and are not counted: {', '.join(self._lost)}"

    def _judge(self) -> None:
        used, least = self.recorder.used(), self._fail_under
        # the limit as it was written
        if least is not None and total_share(used) * 100 < Fraction(str(least)):
            self._complaints.append(
                f"statechart coverage of {total_percent(used):g}% "
                f"is below the required {least:.12g}%"
            )


@dataclass(slots=True)
class TransitionUse:
    """A transition, and how often it was exercised.

    Args:
        source: State that it leaves.
        trigger: Its event.
        target: State that it leads to.
        guard: Name of its guard; None if it has none.
        made: How often it was made.
        passed: How often its guard passed.
        failed: How often its guard did not.
        raised: How often its guard raised.
    """

    source: str
    trigger: str
    target: str
    guard: str | None = None
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

    def seen(self) -> tuple[str, ...]:
        """Return the states in which an agent was seen by it."""
        if self.made:
            return self.source, self.target
        return (self.source,) if self.made or self.asked() else ()


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


@dataclass(frozen=True, slots=True)
class ChartUse:
    """A chart, and what of it was exercised.

    Args:
        name: Name of the chart.
        states: Its states, in definition order.
        transitions: These, in definition order.
        seen: In a chart with composites, the states that were active.
    """

    name: str
    states: tuple[str, ...]
    transitions: tuple[TransitionUse, ...]
    seen: dict[str, None] = field(default_factory=dict)

    def is_used(self) -> bool:
        """Return whether anything of it was exercised."""
        return any(use.made or use.asked() for use in self.transitions)

    def shares(self) -> dict[str, Share]:
        """Return the share of ``states``, ``transitions`` and outcomes of ``guards`` exercised."""
        unseen = dict.fromkeys(self.states)
        for use in self.transitions:
            for state in (*use.seen(), *self.seen):
                unseen.pop(state, None)
        unmade = tuple(str(use) for use in self.transitions if not use.made)
        guarded = [use for use in self.transitions if use.guard is not None]

        return {
            "states": Share(len(self.states), tuple(unseen)),
            "transitions": Share(len(self.transitions), unmade),
            "guards": Share(2 * len(guarded), tuple(_missing_outcomes(guarded))),
        }

    def add(self, others: Iterable[Mapping[str, Any]]) -> None:
        """Add the counts of the same transitions, as plain data, from another process."""
        for use, other in zip(self.transitions, others, strict=True):
            for count in ("made", "passed", "failed", "raised"):
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
        for use in self._uses_of(details):
            setattr(use, details.outcome, getattr(use, details.outcome) + 1)

    def transition(self, details: TransitionDetails, /) -> None:
        """Count a transition that was made."""
        for use in self._uses_of(details):
            use.made += 1
        self._see(details)

    def _uses_of(self, details: GuardEvaluated | TransitionDetails) -> list[TransitionUse]:
        numbers = details.number if isinstance(details.number, tuple) else (details.number,)
        uses = self._use_of(details.chart).transitions
        return [uses[number] for number in numbers]

    def _see(self, details: TransitionDetails) -> None:
        """Note all active states of a chart with composites, since a target names only one."""
        tree = details.chart.tree
        if tree is not None:
            leaves = leaf_texts(details.agent.state)
            texts = (state_text(each) for leaf in leaves for each in tree.around(leaf))
            self._use_of(details.chart).seen.update(dict.fromkeys(texts))

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
            known = self._known(chart["name"], chart["states"], uses)
            known.add(chart["transitions"])
            known.seen.update(dict.fromkeys(chart["seen"]))

    def _use_of(self, chart: Definition[Any]) -> ChartUse:
        use = self._known_uses.get(chart)
        if use is None:
            uses = [
                TransitionUse(
                    state_text(item.source),
                    trigger_text(item.trigger),
                    target_text(item.target),
                    shown_name(item.guard, "guard"),
                )
                for item in chart.written
            ]
            use = self._known(chart.name, chart.hierarchy.texts[1:], uses)
            self._known_uses[chart] = use

        return use

    def _known(self, name: str, states: Iterable[str], uses: Iterable[TransitionUse]) -> ChartUse:
        # by what it is, as the workers of pytest-xdist build charts of their own
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


def total_share(charts: Sequence[ChartUse]) -> Fraction:
    """Return how much of all charts was exercised: states, transitions and guard outcomes together.

    Returns:
        0 to 1, exactly; 0 if there are no charts.
    """
    shares = [share for chart in charts for share in chart.shares().values()]
    return Fraction(
        sum(share.covered for share in shares), sum(share.total for share in shares) or 1
    )


def total_percent(charts: Sequence[ChartUse]) -> float:
    """Return the `total_share` in percent, rounded down to a tenth."""
    return percent(*total_share(charts).as_integer_ratio())


def report_lines(recorder: Recorder) -> Iterator[str]:
    """Return the report as lines: a table of the charts, then everything never exercised.

    Control characters in names and states are not shown.
    """
    for line in _lines(recorder):
        yield printable(showable(line))


def _lines(recorder: Recorder) -> Iterator[str]:
    used = recorder.used()
    rows = [("chart", *KINDS, "total"), *map(_row, used)]
    if len(used) > 1:
        rows.append(
            ("all", *(_share_of(used, kind) for kind in KINDS), f"{total_percent(used):g}%")
        )

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if used:
        for row in rows:
            cells = zip(row[1:], widths[1:], strict=True)
            yield "  ".join(
                [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in cells)]
            )
    else:
        yield "no chart was used"

    for chart in used:
        yield from _missing_lines(chart)

    if unused := _unused(recorder):
        yield f"built but never used: {', '.join(unused)}"


def _unused(recorder: Recorder) -> list[str]:
    return sorted({chart.name for chart in recorder.charts.values() if not chart.is_used()})


def _row(chart: ChartUse) -> tuple[str, ...]:
    return chart.name, *(_share_of([chart], kind) for kind in KINDS), f"{total_percent([chart]):g}%"


def _share_of(charts: Sequence[ChartUse], kind: str) -> str:
    shares = [chart.shares()[kind] for chart in charts]
    covered, total = sum(share.covered for share in shares), sum(share.total for share in shares)
    return f"{covered}/{total} {percent(covered, total):4.0f}%"


def _missing_lines(chart: ChartUse) -> Iterator[str]:
    shares = chart.shares()
    missing = [(kind, text) for kind in KINDS for text in shares[kind].missing]
    if missing:
        yield f"never exercised in {chart.name}:"

    for kind, text in missing:
        yield f"  {kind.removesuffix('s'):<10}  {text}"
