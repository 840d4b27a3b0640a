"""The content of the page, as HTML and figures: a report's sections, and one round or agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic
from typing import Any

import polars as pl
from markupsafe import Markup

from prism.drawing import Levels, draw_svg, showable
from prism.report._facts.run_facts import RunFacts, with_tables
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._figures.timeline import are_many
from prism.report._sections import KINDS, sections_of
from prism.report._sections.diagram import diagram_of, traffic_of
from prism.report._sections.faults import FAULTS
from prism.report._sections.kinds import Section
from prism.report._sections.picture import draw_picture
from prism.runlog._words import in_words
from prism.watch import _facts
from prism.watch import _looking as looking
from prism.watch._agent_page import AgentPage, happened_list, link, thread_page, with_links
from prism.watch._agents import AgentTable
from prism.watch._tally import Tally
from prism.watch._watched import MOST_READ_WHOLE, Watched

_OVER_TIME = tuple(kind for kind in (FAULTS, *KINDS) if kind.anchor not in ("chart", "picture"))
"""The sections of a report that the view of a round does not have."""

_OF_COUNTS = ("faults", "measures", "states", "decisions", "costs", "treatments", "events")
"""The sections for which counts are enough."""

_SECONDS_TO_READ = 1e-7
"""About the CPU time that making all tables of a report takes for each byte of a log."""


@dataclass
class View:
    """A part of the page.

    Args:
        sections: Its sections.
        figures: The figures that are drawn in them.
        more: What else the page's script needs.
    """

    sections: Sequence[Section]
    figures: PageFigures
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, which holds nothing that a page would run."""
        return {
            "sections": [
                {
                    **{name: getattr(each, name) for name in ("anchor", "heading", "explanation")},
                    "html": showable(str(Markup("").join(each.parts))),
                }
                for each in self.sections
            ],
            "figures": {name: figure.on_page() for name, figure in self.figures.charts.items()},
            "dark": self.figures.dark_rules(),
            **self.more,
        }


class Views:
    """The views of one run.

    Args:
        watched: The run.
        rest: Seconds before the whole log is read, for each second of CPU that this takes, as long
            as the run goes on: a watcher may not slow it down.

    Attributes:
        watched: The run.
        rest: The rest.
        agents: The table of its agents.
    """

    def __init__(self, watched: Watched, rest: float = 40) -> None:
        self.watched: Watched = watched
        self.rest: float = rest
        self.agents: AgentTable = AgentTable(watched, self.charts)
        self._lock = Lock()
        self._blank: dict[bool, RunFacts | None] = {}
        self._reading = Lock()
        self._whole: RunFacts | None = None
        self._read: object = None
        self._rested = monotonic()

    def over_time(self) -> View:
        """Return what a report shows, up to the present round."""
        is_long = self.watched.tail.size > MOST_READ_WHOLE
        whole, seconds = (None, 0.0) if is_long else self._as_reported()
        facts = whole or self._counted()
        if facts is None:
            return View([], PageFigures(()))

        kinds = [each for each in _OVER_TIME if whole or each.anchor in _OF_COUNTS]
        figures, more = _figures(facts), {"counted": is_long, "due": seconds}
        return View(sections_of(kinds, [facts], figures), figures, more)

    def _as_reported(self) -> tuple[RunFacts | None, float]:
        """Return what the report is made from, and the seconds until it is all up to date.

        While a run goes on, its log is read only after a rest; in between, the latest counts take
        the place of those that were read. A log that grows fast is so read when its run has ended.
        """
        with self._reading:
            tail = self.watched.tail
            read, is_running = (tail, tail.size), self.watched.status.state == "running"
            rest = self._rested + self.rest * _SECONDS_TO_READ * tail.size - monotonic()
            if read != self._read and is_running and rest > 0:
                whole = self._whole
                return whole and _facts.counted_facts(whole, self.watched, decides=False), rest

            if read != self._read:
                self._whole, self._read = _facts.whole_facts(self.watched), read
                self._rested = monotonic()
            return self._whole, 0.0

    def of_round(self, number: int | None) -> View:
        """Return how a round ended.

        Args:
            number: The round; None for a log without rounds.
        """
        facts = self._drawn()
        if facts is None:
            return View([], PageFigures(()))

        with self.watched.reading() as (tally, _):
            last = max(tally.rounds(), default=None)
            # an address may name a later round, and a log that is resumed loses some
            if number is not None and last is not None and number > last:
                said = Markup("<p>It has not begun: the last is {:,}.</p>").format(last)
                return View([Section("chart", f"Round {number:,}", "", [said])], PageFigures(()))
            states = _facts.states_at(tally, number)
            event = tally.ends.get(number) if number is not None else None
            charts = _charts(facts, _facts.in_round(facts, tally, number), states, tally)

        figures, unit = _figures(facts), self.watched.unit
        sections = [
            *self._pictured(number, figures),
            Section("chart", "The chart", _HOW_TO_READ.replace("round", unit), [charts]),
        ]
        # a long log may be read now
        self.watched.shown.set()
        return View(self._named(sections, number), figures, {"numbers": event or {}})

    def happened(self, number: int | None, kind: str) -> View:
        """Return the last events of a round, and what went wrong in it.

        Args:
            number: The round; None for a log without rounds.
            kind: The events to list; see `prism.watch._looking.happened_in`.
        """
        blank = self._described()
        if blank is None:
            return View([], PageFigures(()))

        happened, wrong = looking.happened_in(self.watched, number, kind)
        here = with_tables(blank, {"faults": wrong})
        faults = sections_of([FAULTS] if wrong.height else [], [here], PageFigures(()))
        with self.watched.reading() as (tally, _):
            kinds = ["faults", *looking.kinds_of(tally.events())]
        explanation = _HOW_MANY * (happened.height == looking.MOST_HAPPENINGS)
        listed = _happenings(happened, self.watched.unit)

        sections = [*faults, Section("happened", "What happened", explanation, [listed])]
        return View(self._named(sections, number), PageFigures(()), {"kinds": kinds})

    def _named(self, sections: Sequence[Section], number: int | None) -> list[Section]:
        """Name the round in the headings of its sections, without those that are empty."""
        when = "" if number is None else f" in {self.watched.unit} {number:,}"
        return [replace(each, heading=each.heading + when) for each in sections if each.parts[0]]

    def _pictured(self, number: int | None, figures: PageFigures) -> Iterator[Section]:
        picture = looking.picture_at(self.watched, number)
        if picture is not None:
            where = f"After {self.watched.unit} {picture.round:,}. Choose an agent for all it did."
            yield Section("picture", "The world", where, [draw_picture(picture, "now", figures)])

    def charts(self) -> list[Levels]:
        """Return the charts that the page draws."""
        facts = self._drawn()
        names = facts.chart_names if facts else ()
        return [Levels(diagram_of(chart, [facts])) for chart in names if facts]

    def of_agent(self, agent: str, number: int | None) -> View:
        """Return what an agent did in a round and in all, and what it was asked.

        Raises:
            InputError: If the log has no such agent.
        """
        doings = looking.doings_of(self.watched, agent, number)
        facts = self._counted()
        assert facts is not None  # the log has the agent
        page = AgentPage(agent, doings, facts, number, self.watched.unit)
        fields = [(showable(name), *map(_plain, both)) for name, *both in doings.fields]
        return View(page.sections(), PageFigures(()), {"fields": fields})

    def of_post(self, post: str) -> View:
        """Return the thread that a post belongs to.

        Raises:
            InputError: If the log has no such post.
        """
        tree, likers = looking.thread_of(self.watched, post)
        return View([thread_page(tree, post)], PageFigures(()), {"likers": likers})

    def _drawn(self) -> RunFacts | None:
        blank = self._described()
        return blank and _facts.drawn_facts(blank, self.watched)

    def _counted(self) -> RunFacts | None:
        blank = self._described()
        return blank and _facts.counted_facts(blank, self.watched)

    def _described(self) -> RunFacts | None:
        """Return what the first lines say of the run; None before they do."""
        with self._lock:
            # the first lines say how the agents begin, so they are read once more with all of them
            are_all = bool(self.watched.tally.begins)
            if self._blank.get(are_all) is None:
                self._blank = {are_all: _facts.blank_facts(self.watched)}
            return self._blank[are_all]


_HOW_MANY = f"The last {looking.MOST_HAPPENINGS} events; an agent's page has all of its events."
_HOW_TO_READ = (
    "States show the agents at the end of the round, and arrows are as wide as the traffic of "
    "the round, on one scale for all rounds. Choose a state or the number of an arrow to see its "
    "agents."
)


def _figures(facts: RunFacts) -> PageFigures:
    return PageFigures(tuple(facts.state_names), by_round=are_many(facts.states), runs=(facts,))


def _charts(facts: RunFacts, here: RunFacts, states: Mapping[str, int], tally: Tally) -> Markup:
    """Draw every chart of a run, in a layout and on a scale that are those of all rounds."""
    counts = {showable(state): count for state, count in states.items()}
    parts = []
    for chart in facts.chart_names:
        diagram = diagram_of(chart, [facts])
        most = _facts.busiest(tally, chart, Levels(diagram))
        svg = draw_svg(diagram, traffic_of(chart, here, facts), beside=[most], agents=counts)
        parts.append(Markup('<div class="scroll chart" tabindex="0">{}</div>').format(Markup(svg)))

    others = {state: count for state, count in counts.items() if count and not facts.chart_names}
    if others:
        rows = pl.DataFrame([*others.items()], ["state", "agents"], orient="row")
        parts.append(html_table("states-now", rows))

    return Markup("").join(parts)


def _plain(value: Any) -> Any:
    return value if type(value) in (int, float, type(None)) else showable(in_words(value))


def _happenings(rows: pl.DataFrame, unit: str) -> Markup:
    """Write events as a list, the last first."""
    told = happened_list(
        (
            "" if row["tick"] is None else f"tick {row['tick']:,}",
            Markup("{} {}").format(
                link("agent", row["agent_id"]),
                with_links(row["what"] or row["event"], looking.post_ids(row)),
            ),
        )
        for row in rows.reverse().iter_rows(named=True)
    )
    return told or Markup('<p class="soft">Nothing of this kind in this {}.</p>').format(unit)
