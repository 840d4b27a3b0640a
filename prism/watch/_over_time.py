"""The whole run over time: the sections of a report on the log as far as it is read."""

from __future__ import annotations

from time import monotonic

from prism.report._charts import charts_of
from prism.report._report import report_sections
from prism.watch._html import Section, View
from prism.watch._watched import Watched

_OF_ROUND = ("the-chart-and-its-traffic", "the-world", "agents")
"""The sections of a report that the view of a round or the lists have."""

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
        self._view = View([])
        self._read = -1
        self._due = 0.0

    def view(self) -> View:
        """Return the sections, the last round in them, and the seconds until they are renewed."""
        with self.watched.reading():
            is_old = self._read != self.watched.read
            rest = self._due - monotonic() if self.watched.status.state == "running" else 0.0
            if is_old and rest <= 0:
                began = monotonic()
                self._view, self._read = self._made(), self.watched.read
                self._due = monotonic() + self._rest * (monotonic() - began)
                is_old = False
            due = max(rest, 0.0) if is_old else None
            return View(self._view.sections, self._view.figures, {**self._view.more, "due": due})

    def _made(self) -> View:
        head = self.watched.head()
        with self.watched.reading() as log:
            parts = report_sections(log, charts_of(log, self.watched.charts)) if log.runs else []
        made = [each for each in parts if each.anchor not in _OF_ROUND]
        sections = [Section(each.anchor, each.title, each.about, each.body()) for each in made]
        figures = {
            name: each
            for part in made
            for name, each in part.figures.items()
            if not isinstance(each, str)
        }
        return View(sections, figures, {"round": head["rounds"]})
