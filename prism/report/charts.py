"""The charts that a run follows, as they were defined or as far as its log shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, filterfalse
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prism.analysis import Log, Run, rows_of
from prism.drawing import Arrow, Diagram, Levels, draw_svg, showable
from prism.errors import PrismError
from prism.report.table import Rows
from prism.runs.folder import read_summary

DIAGRAMS: TypeAdapter[tuple[Diagram, ...]] = TypeAdapter(tuple[Diagram, ...])
"""Reads charts as they are drawn from plain data."""

_TITLES: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])

Traffic = Counter[tuple[str, str]]
"""How often agents went from one state to another."""

_TRAFFIC = """
select round, chart, from_state, to_state, "trigger", count(*) as count from events
where event = 'statechart.transition' and from_state is not null and to_state is not null
group by all order by min(line)
"""
_JOINED = """
select chart, state, count(*) as count from events
where event = 'agent.joined' and state is not null group by all order by min(line)
"""


@dataclass(frozen=True)
class Charts:
    """The charts that a run follows.

    Args:
        run: The run.
        outlines: Charts of the user's, by which those of the log are drawn.
        traffic: Its transitions, by round, chart, states and trigger.
        joined: The agents that joined, by chart and state.
    """

    run: Run
    outlines: Sequence[Diagram]
    traffic: Rows
    joined: Rows

    @cached_property
    def names(self) -> list[str | None]:
        """The charts of transitions and of agents that have made none; None has no name."""
        moved = dict.fromkeys(row["chart"] for row in self.traffic)
        # agents of a run with a single chart join without its name
        joined = dict.fromkeys(row["chart"] for row in self.joined if row["chart"])
        return [*(moved | joined)] or [self.run.chart]

    @cached_property
    def levels(self) -> dict[str | None, Levels]:
        """Each chart as it was defined, with all that the log shows of it."""
        return {name: Levels(self._diagram(name)) for name in self.names}

    @cached_property
    def all_states(self) -> list[str]:
        """The states of all charts, those of definitions first."""
        # in a chart with nested states, only the log shows where agents are
        plain = (each.diagram for each in self.levels.values() if not each.diagram.boxes)
        defined = chain.from_iterable(each.states for each in plain)
        entered = chain.from_iterable(map(self.states, self.names))
        around = chain.from_iterable(each.diagram.states for each in self.levels.values())
        return list(dict.fromkeys([*defined, *entered, *around]))

    def states(self, name: str | None) -> list[str]:
        """Return the states of one chart in the order of the log."""
        rows = self._of(name)
        joined = (
            row["state"]
            for row in self.joined
            if row["chart"] == name or (row["chart"] is None and not rows)
        )
        moved = chain.from_iterable((row["from_state"], row["to_state"]) for row in rows)
        return list(dict.fromkeys(map(showable, chain(joined, moved))))

    def traffic_of(self, name: str | None) -> dict[int | None, Traffic]:
        """Return how often agents made the transitions of a chart, by round."""
        rounds: dict[int | None, Traffic] = {}
        for row in self._of(name):
            ends = showable(row["from_state"]), showable(row["to_state"])
            rounds.setdefault(row["round"], Traffic())[ends] += row["count"]
        return rounds

    def drawings(self) -> dict[str, str]:
        """Return the charts with the traffic of the whole run."""
        counts = {name: self.traffic_of(name).values() for name in self.names if self.states(name)}
        return {
            f"chart-{number}": draw_svg(self.levels[name].diagram, sum(each, Traffic()))
            for number, (name, each) in enumerate(counts.items(), start=1)
        }

    def _of(self, name: str | None) -> Rows:
        return [row for row in self.traffic if row["chart"] == name]

    def _diagram(self, name: str | None) -> Diagram:
        states = self.states(name)
        began = max(self.joined, key=lambda row: row["count"], default={"state": None})["state"]
        diagram = Diagram((), (), began if began in states else None, name or self.run.label)
        defined = [each for each in (*self.outlines, *charts_kept(self.run)) if each.name == name]
        drawn = defined[0] if defined else diagram
        if drawn.boxes:
            levels = Levels(drawn)
            states = [each for state in states for each in levels.active(state)]
        return self._with_traffic(
            replace(drawn, states=tuple(dict.fromkeys([*drawn.states, *states]))), name
        )

    def _with_traffic(self, drawn: Diagram, name: str | None) -> Diagram:
        """Add an arrow, with its triggers, for transitions that the diagram lacks."""
        levels, labels = Levels(drawn), dict[tuple[str, str], dict[str, None]]()
        for row in self._of(name):
            ends = showable(row["from_state"]), showable(row["to_state"])
            for each in filterfalse(levels.has, levels.used(*ends)):
                if (None, each[1]) not in levels.arrows.get(levels.level_of(each[1]), {}):
                    labels.setdefault(each, {})[showable(row["trigger"] or "")] = None
        arrows = tuple(Arrow(*ends, tuple(texts)) for ends, texts in labels.items())
        return replace(drawn, arrows=(*drawn.arrows, *arrows))


def charts_of(log: Log, outlines: Sequence[Diagram] = ()) -> Charts:
    """Return the charts that the run of a log follows.

    Args:
        log: The log, of one run.
        outlines: Charts of the user's, by which those of the log are drawn.
    """
    tables = (rows_of(log.sql(query)) for query in (_TRAFFIC, _JOINED))
    return Charts(log.runs[0], outlines, *tables)


def charts_kept(run: Run) -> tuple[Diagram, ...]:
    """Return the charts in ``run.json``; none if it is damaged."""
    charts: tuple[Diagram, ...] = _kept(run, "charts", DIAGRAMS, ())
    return charts


def titles_kept(run: Run) -> dict[str, str]:
    """Return the measures in words that ``run.json`` has; none if it is damaged."""
    titles: dict[str, str] = _kept(run, "titles", _TITLES, {})
    return titles


def _kept(run: Run, name: str, reader: TypeAdapter[Any], otherwise: Any) -> Any:
    with suppress(PrismError, ValidationError):
        summary = {} if run.world is None else read_summary(run.path.parent)
        return reader.validate_python(summary.get(name, otherwise))
    return otherwise
