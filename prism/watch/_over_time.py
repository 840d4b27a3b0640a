"""The whole run over time: the sections of a report on the log as far as it is read."""

from __future__ import annotations

from time import monotonic
from typing import Any

from prism.report._report import report_sections
from prism.watch._view import run_charts, view
from prism.watch._watched import Watched

_OF_ROUND = ("The chart and its traffic", "The world")
"""The sections of a report that the view of a round has."""

REST = 20
"""How many times as long as it took to make the sections a running run is left alone."""


class OverTime:
    """The sections of one run, made anew when the run has gone on and a rest is over.

    Args:
        watched: The run.
        rest: The rest, for each second that making the sections took.

    Attributes:
        watched: The run.
    """

    def __init__(self, watched: Watched, rest: float = REST) -> None:
        self.watched: Watched = watched
        self._rest = rest
        self._view: dict[str, Any] = view([])
        self._read = -1
        self._due = 0.0

    def view(self) -> dict[str, Any]:
        """Return the sections, the last round in them, and the seconds until they are renewed."""
        with self.watched.reading():
            is_old = self._read != self.watched.read
            rest = self._due - monotonic() if self.watched.status.state == "running" else 0.0
            if is_old and rest <= 0:
                began = monotonic()
                self._view, self._read = self._made(), self.watched.read
                self._due = monotonic() + self._rest * (monotonic() - began)
                is_old = False
            return {**self._view, "due": max(rest, 0.0) if is_old else None}

    def _made(self) -> dict[str, Any]:
        with self.watched.reading() as log:
            charts = run_charts(self.watched)
            parts = report_sections(log, charts) if charts else []
            visible = [each for each in parts if each.title not in _OF_ROUND]
            return view(visible, round=self.watched.head()["rounds"])
