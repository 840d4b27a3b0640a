"""Coverage of charts in a pytest run: recorded in each worker, reported by the controller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from prism.telemetry import instrumented
from prism.testing._coverage.recorder import Recorder
from prism.testing._coverage.report import report_data, report_lines, total_percent, total_share

_OUTPUT = "statechart_coverage"


class CoveragePlugin:
    """Records charts until `stop`, and reports on them when the session ends.

    Args:
        json_path: File to write the report to, as JSON; None to write no file.
        fail_under: Percent below which the session fails; None for no limit.
    """

    def __init__(self, json_path: Path | None, fail_under: float | None) -> None:
        self.recorder: Recorder = Recorder()
        self._json_path = None if json_path is None else json_path.absolute()
        self._is_written = False
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
        """In a worker, hand the record to the controller; there, write it and judge it."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_OUTPUT] = json.dumps(self.recorder.dump())
            return

        self._write()
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
            yield f"not counted, since they crashed: workers {', '.join(self._lost)}"
        if self._is_written:
            yield f"written to {self._json_path}"

    def _write(self) -> None:
        if self._json_path is None:
            return

        text = json.dumps(report_data(self.recorder), indent=2, ensure_ascii=False)
        try:
            self._json_path.write_text(text + "\n", encoding="utf-8", newline="\n")
            self._is_written = True
        except OSError as error:
            self._complaints.append(
                f"statechart coverage cannot be written to {self._json_path}: {error.strerror}"
            )

    def _judge(self) -> None:
        used, least = self.recorder.used(), self._fail_under
        # the limit as it was written
        if least is not None and total_share(used) * 100 < Fraction(str(least)):
            self._complaints.append(
                f"statechart coverage of {total_percent(used):g}% "
                f"is below the required {least:.12g}%"
            )
