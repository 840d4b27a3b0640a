"""A report on one run: the sections of its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from prism.analysis import Log, rows_of
from prism.errors import InputError
from prism.files.records import printable_path
from prism.reasoner.positions import position_effect
from prism.reasoner.prompts import in_words
from prism.report._run_sections import AFTER, CASCADES, CHART, FIRST, section_of
from prism.report.charts import Charts, charts_of
from prism.report.conversations import prompts, threads, transcript
from prism.report.html import Page, Section
from prism.report.picture import picture
from prism.report.table import short, with_values
from prism.statechart import Statechart
from prism.statechart.outline import to_outline

MOST_AGENTS = 2_000
"""Most agents in the table; of more, the least active are left out."""

_HIDDEN = ("interests", "following", "weighed", "fallbacks", "parent")

_SUBTITLE = """
select concat_ws(', ', coalesce(format('{:,} of {:,} agents', logged_agents, agents), known),
    if(rounds_seen = 1, '1 round', format('{:,} rounds', rounds_seen)),
    if(ticks_per_round > 1, format('{:,} ticks in each', ticks_per_round), null),
    format('seed {}', seed))
from runs,
    (select count(*) as number, if(number = 1, '1 agent', format('{:,} agents', number)) ||
            if(number > any_value(agents), format(', {:,} at the beginning', any_value(agents)), '')
            as known from everyone, runs)
"""
_HAS_POSTS = "select count(*) > 0 from events where event = 'post.published'"
_MESSAGES = "select round, tick, sender, receiver, content from messages limit 50"


def make_report(log: Log, charts: Iterable[Statechart[Any]] = ()) -> Page:
    """Make a report on a run.

    Args:
        log: Its log, from `read_log`.
        charts: Your own charts that the run follows. Each is drawn as defined if the log has
            transitions of a chart with its name. Of charts that are neither here nor in
            ``run.json``, only the transitions that were made are drawn.

    Returns:
        The report, to be saved as a page or as figures.

    Raises:
        InputError: If the log holds no event of prism, or several runs were read, or there is no
            transition by one of the charts.
    """
    if len(log.paths) > 1:
        raise InputError("a report is on one run: `prism compare` has several")
    if not log.runs:
        raise InputError("; ".join(str(note) for note in log.notes))

    (run,) = log.runs
    outlines = [to_outline(chart.definition) for chart in charts]
    followed = charts_of(log, outlines)
    for chart in outlines:
        if chart.name not in followed.names:
            raise InputError(f"the run has no transition by the chart {chart.name}", field="charts")
    sections = report_sections(log, followed)
    notes = [printable_path(str(note)) for note in log.notes]
    if effect := _position_effect(sections):
        notes.insert(0, f"Beware: {effect}.")

    ((subtitle,),) = log.sql(_SUBTITLE).fetchall()
    source = printable_path(run.path)
    return Page(run.label, sections, subtitle, notes, [source])


def report_sections(log: Log, charts: Charts) -> list[Section]:
    """Return the sections of a report that have something to show.

    Args:
        log: The log.
        charts: The charts that the run follows.
    """
    return [each for each in _sections(log, charts) if each]


def _sections(log: Log, charts: Charts) -> Iterator[Section]:
    states = [short(state) for state in charts.all_states]
    drawn = picture(log, states)
    about = "The agents after the last round, in the colours of their states or those of the world."
    yield Section("The world", about, {"picture": drawn} if drawn else {})
    yield from (section_of(kind, log, states) for kind in FIRST)
    yield replace(section_of(CHART, log, states), figures=charts.drawings())
    yield from (section_of(kind, log, states) for kind in AFTER)
    if log.sql(_HAS_POSTS).fetchall() == [(True,)]:
        yield replace(section_of(CASCADES, log, states), more=threads(log))
    messages = transcript(rows_of(log.sql(_MESSAGES)))
    yield Section("Messages", "The first that agents said to each other.", more=messages)
    yield Section(
        "Prompts worth a look",
        "Prompts and replies of the first fallbacks, and of decisions against the model's own "
        "preference. They contain what agents were told, so keep this page as private as they are. "
        "prism log decision ID RUN shows one in full.",
        more=prompts(log),
    )
    values = log.runs[0].parameters.items()
    parameters = [{"parameter": name, "value": in_words(value)} for name, value in values]
    yield Section("Parameters", "As the run began.", rows=parameters, most=200)
    yield _agents(log)


def _agents(log: Log) -> Section:
    """Return a table of agents, only the most active if there are many."""
    table = log.table("agents").order("transitions + decisions desc").limit(MOST_AGENTS)
    rows = with_values(rows_of(table))
    used = [name for name in table.columns if any(row.get(name) for row in rows)]
    about = (
        f"The {MOST_AGENTS:,} most active at most; prism log agents RUN has all. Press a heading "
        "to sort by it. The state is the last, but fields are as agents joined. The story of one "
        "agent:  prism log \"from agent('ID')\" RUN"
    )
    kept = [{name: row[name] for name in used if name not in _HIDDEN} for row in rows]
    headings = {"agent_id": "agent", "display_name": "name"}
    return Section("Agents", about, rows=kept, headings=headings, most=MOST_AGENTS, searchable=True)


def _position_effect(sections: Iterable[Section]) -> str | None:
    """Return in words how many choices the position in the list explains; None if by chance."""
    counts: dict[str, list[int]] = {}
    for row in next((each.rows for each in sections if each.title == "Positions in the list"), ()):
        size = row["options"]
        counts.setdefault(str(size), [0] * size)[row["position"] - 1] = row["times"]
    return position_effect(counts)
