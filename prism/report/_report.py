"""A report on one run, or on several: the sections of its page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from prism.analysis import Log, Run
from prism.drawing import Diagram, draw_svg
from prism.errors import InputError
from prism.files._records import shown_path
from prism.reasoner._order import place_effect
from prism.report._charts import Charts, charts_of
from prism.report._conversations import prompts, threads
from prism.report._html import Figure, Page, Section, library, page
from prism.report._picture import GROUPS, PICTURES, draw_picture, picture_of
from prism.report._run_sections import (
    CASCADES,
    FIRST,
    MESSAGES,
    OF_DECISIONS,
    OF_STATES,
    OF_WORLDS_AND_PROGRAMS,
    Kind,
    Scope,
    levels,
    section_of,
    with_values,
)
from prism.report._table import rows_of, short, turned
from prism.statechart import Statechart
from prism.statechart.outline import to_outline

MOST_AGENTS = 2_000
"""Most agents in the table; of more, the least active are left out."""

_MOST_PARAMETERS_AHEAD = 12
_NOTHING_TO_SHOW = ("empty", "unreadable")
_HIDDEN = ("interests", "following", "weighed", "fallbacks", "parent")

_UNIT = """
select any_value(case event when 'workflow.step' then 'turn' else 'cycle' end)
from events join runs using (run)
where event in ('workflow.step', 'cognition.cycle') and runs.world is null and round is not null
"""

_HAS_POSTS = "select count(*) > 0 from events where event = 'post.published'"


def make_report(log: Log, charts: Iterable[Statechart[Any]] = ()) -> Page:
    """Make a report on one run, or on several side by side.

    Args:
        log: The logs, from `read_log`.
        charts: Your own charts that the runs follow. Each is drawn as defined if the logs have
            transitions of a chart with its name. For other charts that do not come with prism, only
            the transitions that were made are drawn.

    Returns:
        The report, to be saved as a page or as figures.

    Raises:
        InputError: If the logs hold no event of prism, or no transition by one of the charts.
    """
    library()  # takes a second or two, while the logs are read
    runs = log.runs
    if not runs:
        problems = (str(note) for note in log.notes if note.kind in _NOTHING_TO_SHOW)
        raise InputError("; ".join(problems))

    own = [to_outline(chart.definition) for chart in charts]
    followed = charts_of(log, own)
    _require_followed(own, followed)
    sections = report_sections(log, followed)
    notes = [shown_path(str(note)) for note in log.notes]
    if effect := _place_effect(sections):
        notes.insert(0, f"Beware: {effect}.")

    return page(
        " and ".join(run.label for run in runs),
        sections,
        subtitle=_subtitle(log),
        notes=notes,
        sources=list(dict.fromkeys(shown_path(run.path) for run in runs)),
    )


def report_sections(log: Log, charts: Sequence[Charts]) -> list[Section]:
    """Return the sections of a report that have something to show.

    Args:
        log: The logs.
        charts: The charts that their runs follow.
    """
    ((unit,),) = log.sql(_UNIT).fetchall()
    made = _sections(log, charts, Scope(_states_of(charts), unit or "round"))
    return [each for each in made if each.figures or each.rows or each.more]


def _sections(log: Log, charts: Sequence[Charts], scope: Scope) -> Iterable[Section]:
    parameters = _parameters(log.runs)
    # many parameters would hide the sections after them
    is_ahead = len(parameters.rows) <= _MOST_PARAMETERS_AHEAD
    depth = max((_depth(run) for run in log.runs), default=0)

    def made(kinds: Iterable[Kind]) -> Iterable[Section]:
        return (section_of(kind, log, scope) for kind in kinds)

    yield from made(FIRST)
    if is_ahead:
        yield parameters
    yield _picture(log, scope)
    yield from made(OF_WORLDS_AND_PROGRAMS)
    yield _chart(log, charts)
    yield from made([*OF_STATES[:1], *levels(depth), *OF_STATES[1:]])
    yield from made(OF_DECISIONS)
    if log.sql(_HAS_POSTS).fetchall() == [(True,)]:
        yield replace(section_of(CASCADES, log, scope), more=threads(log))
    yield section_of(MESSAGES, log, scope)
    yield Section(
        "Prompts worth a look",
        "Prompts and replies of the first fallbacks, and of decisions against the model's own "
        "preference. They contain what agents were told, so keep this page as private as they are. "
        "The command shows a decision in full.",
        more=prompts(log),
    )
    if not is_ahead:
        yield parameters
    yield _agents(log)


def _parameters(runs: Sequence[Run]) -> Section:
    rows = [
        {
            "run": run.label,
            "world": run.world,
            **{key: _value(each) for key, each in run.parameters.items()},
        }
        for run in runs
        if run.parameters
    ]
    about = "The initial parameters of the worlds. Treatments may change them later."
    return Section("Parameters", about, rows=turned(rows), most=200)


def _value(value: Any) -> Any:
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_plain or value is None else str(value)


def _picture(log: Log, scope: Scope) -> Section:
    pictures: dict[str, list[dict[str, Any]]] = {}
    for row in rows_of(log.sql(PICTURES)):
        pictures.setdefault(row["run"], []).append(row)
    groups = rows_of(log.sql(GROUPS)) if pictures else []
    figures: dict[str, Figure] = {}
    for number, (run, rows) in enumerate(pictures.items(), start=1):
        own = [row["colour"] for row in groups if row["run"] == run]
        if picture := picture_of(rows[0], rows[-1], own):
            figures[f"picture-{number}"] = draw_picture(picture, scope.states)
    about = "The agents after the last round, in the colours of their states or those of the world."
    return Section("The world", about, figures)


def _chart(log: Log, charts: Sequence[Charts]) -> Section:
    figures: dict[str, Figure] = {}
    for name in dict.fromkeys(name for each in charts for name in each.names):
        sharing = [each for each in charts if name in each.names]
        diagram = _shared(sharing).diagram(name)
        for each in sharing:
            others = [other.counts(name) for other in sharing if other is not each]
            caption = each.run.label if len(charts) > 1 else ""
            drawn = draw_svg(diagram, each.counts(name), beside=others, caption=caption)
            figures[f"chart-{len(figures) + 1}"] = drawn

    query = (
        'select run, chart, from_state, to_state, "trigger", count, probability from transitions'
    )
    kind = Kind(
        "The chart and its traffic",
        "The wider an arrow, the more often its transitions were made. A faint arrow was never "
        "used. The report knows prism's own charts, those in run.json and those named with "
        "--chart. Of other charts, it draws the transitions that were made.",
        query,
        headings={"from_state": "from", "to_state": "to"},
    )
    section = section_of(kind, log, Scope(()))
    return replace(
        section,
        figures=figures if any(each.states(name) for each in charts for name in each.names) else {},
    )


def _shared(charts: Sequence[Charts]) -> Charts:
    """Return the first of some charts with what all of them show."""
    return replace(
        charts[0],
        traffic=[row for each in charts for row in each.traffic],
        stays=[row for each in charts for row in each.stays],
        joined=[row for each in charts for row in each.joined],
    )


def _agents(log: Log) -> Section:
    """Return a table of agents, only the most active if there are many."""
    ((total,),) = log.sql("select count(*) from everyone").fetchall()
    table = log.table("agents", parameters=False)
    if total > MOST_AGENTS:
        acts = [name for name in ("transitions", "decisions", "posts") if name in table.columns]
        table = table.order(f"{' + '.join(acts)} desc").limit(MOST_AGENTS)
    rows = with_values(table, log)
    idle = {
        name for name in (rows[0] if rows else ()) if all(row[name] in (0, None) for row in rows)
    }
    if all(row.get("display_name") == row["agent_id"] for row in rows):
        idle.add("display_name")
    about = (
        "Press a heading to sort by it. The state is the last, but fields are as agents joined. "
        "The story of one agent:  prism log \"from agent('ID')\" RUN"
    )
    if total > len(rows):
        about = f"The {len(rows):,} most active of {total:,}; prism log agents RUN has all. {about}"
    kept = [
        {name: value for name, value in row.items() if name not in {*idle, *_HIDDEN}}
        for row in rows
    ]
    return Section(
        "Agents",
        about,
        rows=kept,
        headings={"display_name": "name"},
        most=MOST_AGENTS,
        searchable=True,
    )


def _states_of(charts: Sequence[Charts]) -> list[str]:
    """Return all states, in the order of their definition or of their first appearance."""
    diagrams = [(each, name, each.diagram(name)) for each in charts for name in each.names]
    # in a chart with nested states, only the log shows where agents are
    defined = [state for _, _, chart in diagrams if not chart.boxes for state in chart.states]
    entered = [state for each, name, _ in diagrams for state in each.states(name)]
    around = [state for _, _, chart in diagrams for state in chart.states]
    return list(dict.fromkeys(map(short, [*defined, *entered, *around])))


def _depth(run: Run) -> int:
    """Return how many levels of a run's charts are drawn beside its states."""

    def below(state: str, inside: Any) -> int:
        return 1 + max((below(each, inside) for each in inside.get(state, ())), default=0)

    return max(
        (below(state, inside) - 1 for inside in run.charts.values() for state in inside), default=0
    )


def _place_effect(sections: Iterable[Section]) -> str | None:
    """Return in words how many choices the place in the list explains; None if by chance."""
    counts: dict[str, list[int]] = {}
    for row in next((each.rows for each in sections if each.title == "Places in the list"), ()):
        key = f"{row.get('run')} {row['options']}"
        counts.setdefault(key, [0] * row["options"])[row["place"] - 1] = row["times"]
    return place_effect(counts)


def _require_followed(own: Sequence[Diagram], charts: Sequence[Charts]) -> None:
    """Refuse a chart that no run follows."""
    followed = dict.fromkeys(name for each in charts for name in each.names)
    for chart in own:
        if chart.name not in followed:
            by = ", ".join("a chart without a name" if name is None else name for name in followed)
            raise InputError(
                f"no run has transitions by the chart {chart.name}"
                + (f", only by {by}" if by else ""),
                field="charts",
            )


def _subtitle(log: Log) -> str:
    if len(log.runs) > 1:
        return f"{len(log.runs)} runs side by side"

    (run,) = log.runs
    ((agents,),) = log.sql("select count(*) from everyone").fetchall()
    parts = [_counted(agents, "agent")]
    if run.logged_agents is not None and run.agents is not None:
        parts = [f"{run.logged_agents:,} of {_counted(run.agents, 'agent')}"]
    if run.rounds is not None and run.ticks_per_round is not None:
        parts.append(f"{_counted(run.rounds, 'round')} of {_counted(run.ticks_per_round, 'tick')}")
    if run.seed is not None:
        parts.append(f"seed {run.seed}")

    return ", ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
