"""Everything that a report shows about each run; its log is parsed only once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from duckdb import DuckDBPyRelation
from pydantic import TypeAdapter, ValidationError

from prism.analysis import Log, Note, Run
from prism.analysis._tables.cascades import TreePost, grow
from prism.drawing import UNSHOWABLE, Arrow, Diagram
from prism.errors import PrismError
from prism.report._facts.pictures import Picture, last_picture
from prism.report._facts.queries import QUERIES, TABLES, THREADS
from prism.runlog._prompts import ANSWERS_NAME, Asked, asked_in, find_answers
from prism.runs._folder import read_summary
from prism.telemetry.events import DECISION

DIAGRAMS: TypeAdapter[tuple[Diagram, ...]] = TypeAdapter(tuple[Diagram, ...])
"""Reads charts as they are drawn from plain data."""

MOST_OF_A_KIND = 6
"""Most fallbacks to show, and most unlikely choices."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision and its record.

    Args:
        id: Its id.
        why: The reason for showing it, in a few words.
        event: Its event in the log.
        record: The recorded prompt and reply.
        folder: The folder of its run.
    """

    id: str
    why: str
    event: Mapping[str, Any]
    record: Mapping[str, Any]
    folder: Path


def recorded_of(log: Path) -> tuple[Recorded, ...]:
    """Return the first decisions by fallback, and those with the lowest probabilities.

    Args:
        log: The log of a run.

    Returns:
        At most twice `MOST_OF_A_KIND`; none if the run recorded no prompts.
    """
    folder = log.parent
    if not (folder / ANSWERS_NAME).is_file():
        return ()

    chosen = _notable(asked for asked in asked_in(log, _ignore) if asked.event["event"] == DECISION)
    records = find_answers(folder, chosen, _ignore)

    return tuple(
        Recorded(record_id, why, asked.event, records[record_id], folder)
        for record_id, (why, asked) in chosen.items()
        if record_id in records
    )


def _notable(decisions: Iterable[Asked]) -> dict[str, tuple[str, Asked]]:
    fallbacks: list[Asked] = []
    # a heap with the likeliest first, which a less likely one replaces
    rare: list[tuple[float, int, Asked]] = []
    for asked in decisions:
        if asked.id is None:
            continue
        if asked.event.get("source") == "fallback":
            if len(fallbacks) < MOST_OF_A_KIND:
                fallbacks.append(asked)
            continue

        chance = _chance(asked.event)
        if chance is not None:
            add = heapq.heappush if len(rare) < MOST_OF_A_KIND else heapq.heappushpop
            add(rare, (-chance, -asked.line, asked))

    least = sorted(rare, reverse=True)
    found = [("it fell back", asked) for asked in fallbacks]
    found += [(f"its probability was {-chance:.3f}", asked) for chance, _, asked in least]

    return {str(asked.id): (why, asked) for why, asked in found}


def _chance(event: Mapping[str, Any]) -> float | None:
    """Return the probability of the chosen option, if another option had a greater one."""
    given = event.get("probabilities")
    chances = {
        option: chance
        for option, chance in (given if isinstance(given, dict) else {}).items()
        # a log may hold anything
        if isinstance(chance, (int, float))
    }
    chance = chances.get(str(event.get("chosen")))
    if chance is None or chance >= max(chances.values()):
        return None

    return float(chance)


def _ignore(_fault: str) -> None:
    """Ignore it, since the notes on the logs report unreadable parts."""


MOST_CHARACTERS = 200
"""Most characters to show of a text, such as a post or a name."""

_MOST_TREES = 6


@dataclass(frozen=True)
class RunFacts:
    """The tables of one run, by the names in `prism.report._facts.queries`.

    Texts are shortened for display; numbers are exact.

    Args:
        run: The run as a whole.
        trees: The largest cascades of more than one post.
        charts: The known charts, as diagrams by name.
        recorded: Decisions worth a look, with their prompts, if those were recorded.
        picture: The agents' positions after the last round, if logged.
    """

    run: Run
    states: pl.DataFrame
    transitions: pl.DataFrame
    dwelling: pl.DataFrame
    decisions: pl.DataFrame
    by_round: pl.DataFrame
    chosen: pl.DataFrame
    reasons: pl.DataFrame
    latencies: pl.DataFrame
    costs: pl.DataFrame
    cascades: pl.DataFrame
    agents: pl.DataFrame
    met: pl.DataFrame
    traffic: pl.DataFrame
    stays: pl.DataFrame
    faults: pl.DataFrame
    steps: pl.DataFrame
    cycles: pl.DataFrame
    measures: pl.DataFrame
    treatments: pl.DataFrame
    own_events: pl.DataFrame
    trees: tuple[tuple[TreePost, ...], ...]
    refused: pl.DataFrame = field(default_factory=pl.DataFrame)
    calls: pl.DataFrame = field(default_factory=pl.DataFrame)
    thinking: pl.DataFrame = field(default_factory=pl.DataFrame)
    pagings: pl.DataFrame = field(default_factory=pl.DataFrame)
    actions: pl.DataFrame = field(default_factory=pl.DataFrame)
    charts: Mapping[str, Diagram] = field(default_factory=dict)
    recorded: tuple[Recorded, ...] = ()
    picture: Picture | None = None

    @cached_property
    def chart_names(self) -> list[str | None]:
        """The charts of the run's transitions, in the order of the log; None for a nameless one.

        Before the first transition, those of its agents.
        """
        found = self.met if self.traffic.is_empty() else self.traffic
        names: list[str | None] = found["chart"].unique(maintain_order=True).to_list()
        # agents of a run with a single chart join without its name
        has_rounds_only = self.run.logged_agents == 0 and not names
        is_of_one = has_rounds_only or (found is self.met and names == [None])
        return [self.run.chart] if is_of_one else names

    @property
    def has_feed(self) -> bool:
        """Whether the run may have posts, even if there were none."""
        is_of_feed = not self._is_of_others and _may_have_feed(self.run)
        return is_of_feed or bool(self.cascades.height)

    @property
    def has_decisions(self) -> bool:
        """Whether the run may have decisions, even if there were none."""
        return not self._is_of_others or not self.decisions.is_empty()

    @property
    def has_steps(self) -> bool:
        """Whether the run has steps of workflows."""
        return not self.steps.is_empty()

    @property
    def has_cycles(self) -> bool:
        """Whether the run has cycles of thinking."""
        return not self.cycles.is_empty()

    @property
    def is_of_turns(self) -> bool:
        """Whether the run has a single agent with a workflow, whose turns are the rounds."""
        # the log of an application has no rounds
        has_rounds = "round" in self.states.columns
        return self.run.world is None and self.has_steps and has_rounds

    @property
    def is_of_thinking(self) -> bool:
        """Whether the run has a single thinking agent."""
        return self.run.world is None and self.has_cycles

    @property
    def unit(self) -> str:
        """The name of a round: a single agent has turns or cycles."""
        if self.is_of_turns:
            return "turn"
        return "cycle" if self.is_of_thinking else "round"

    @property
    def _is_of_others(self) -> bool:
        """Whether the run belongs to a world, a workflow or a thinking agent."""
        return self.has_steps or self.has_cycles or self.run.world is not None

    @property
    def initial(self) -> str | None:
        """The state in which most agents began, if known."""
        first: list[str] = (
            self.met.sort("began", descending=True, maintain_order=True)["state"].head(1).to_list()
        )
        return first[0] if first else None

    @cached_property
    def state_names(self) -> list[str]:
        """All states of the run, in the order of their definition or of their first appearance.

        The initial state is the first if no chart is known.
        """
        defined = self._states_defined()
        initial = [self.initial] if self.initial is not None and not defined else []

        # states on other levels, which are also drawn
        trees = [pair for inside in self.run.charts.values() for pair in inside.items()]
        around = [name for composite, inside in trees for name in (composite, *inside)]

        return list(dict.fromkeys([*defined, *initial, *self._states_seen(), *around]))

    def _states_defined(self) -> list[str]:
        known = [self.charts[name] for name in self.chart_names if name and name in self.charts]
        # in a chart with nested states, only the log shows where agents are
        return [state for chart in known if not chart.boxes for state in chart.states]

    def _states_seen(self) -> list[str]:
        columns = (
            self.met["state"],
            self.transitions["from_state"],
            self.transitions["to_state"],
            self.states["state"],
            self.chosen["chosen"],
        )
        seen: list[str] = pl.concat(columns).drop_nulls().unique(maintain_order=True).to_list()
        return seen

    def in_order(self, table: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Sort a table by the order of states, keeping the order of rows with the same state.

        Args:
            table: The table.
            columns: Its columns of states, the most important first.
        """
        places = {name: place for place, name in enumerate(self.state_names)}
        keys = [
            pl.col(name).replace_strict(places, default=None, return_dtype=pl.Int64)
            for name in columns
        ]
        return table.sort(*keys, nulls_last=True, maintain_order=True)


def facts_of(
    log: Log, charts: Sequence[Diagram] = (), familiar: Sequence[Diagram] = ()
) -> tuple[tuple[RunFacts, ...], tuple[Note, ...]]:
    """Make every table of a report.

    Args:
        log: The logs, from `read_log`.
        charts: The charts that the runs are known to have, by name.
        familiar: Charts that a run has if they contain all of its transitions.

    Returns:
        The facts of each run, and the notes on the logs.
    """
    tables = _tables(log)
    most = max(1, _MOST_TREES // max(1, len(log.runs)))
    roots = {run.label: _largest(_of(tables["cascades"], run.label), most) for run in log.runs}
    every = [root for found in roots.values() for root in found]
    posts = _frame(log.sql(THREADS, roots=every))

    def facts_of_run(run: Run) -> RunFacts:
        own = {name: _showable(_of(table, run.label)) for name, table in tables.items()}
        trees = tuple(grow(root, _of(posts, run.label)) for root in roots[run.label])
        known = _known_charts((*charts_kept(run), *charts), familiar, own["traffic"])
        return RunFacts(
            run,
            **own,
            trees=trees,
            charts=known,
            recorded=recorded_of(run.path),
            picture=None if run.world is None else last_picture(run.path),
        )

    return tuple(map(facts_of_run, log.runs)), log.notes


def _may_have_feed(run: Run) -> bool:
    """Return whether a run is of the feed, as far as its first line says: not of a loop's own."""
    return run.world is None and run.chart is not None


def with_tables(facts: RunFacts, tables: Mapping[str, pl.DataFrame]) -> RunFacts:
    """Return facts with other tables, by the names of the facts; their texts are shortened, too."""
    own: dict[str, Any] = {name: _showable(table) for name, table in tables.items()}
    return replace(facts, **own)


def with_charts(
    facts: RunFacts, charts: Sequence[Diagram], familiar: Sequence[Diagram]
) -> RunFacts:
    """Return facts with the charts that their traffic follows; see `facts_of`."""
    kept = charts_kept(facts.run)
    return replace(facts, charts=_known_charts((*kept, *charts), familiar, facts.traffic))


def charts_kept(run: Run) -> tuple[Diagram, ...]:
    """Return the charts in ``run.json``, which has those of a user's world; none if damaged."""
    with suppress(PrismError, ValidationError):
        summary = {} if run.world is None else read_summary(run.path.parent)
        return DIAGRAMS.validate_python(summary.get("charts", ()))
    return ()


def _known_charts(
    charts: Sequence[Diagram], familiar: Sequence[Diagram], traffic: pl.DataFrame
) -> dict[str, Diagram]:
    given = [_showable_chart(chart) for chart in charts]
    return {chart.name: chart for chart in (*_followed(familiar, traffic), *given)}


def _tables(log: Log) -> dict[str, pl.DataFrame]:
    tables = {
        name: _frame(log.table(table, *arguments, parameters=False))  # type: ignore[arg-type]
        for name, (table, *arguments) in TABLES.items()
    }
    return {
        **tables,
        **{name: _frame(log.sql(query)) for name, query in QUERIES.items()},
        "agents": _described(tables["agents"]),
    }


def _frame(rows: DuckDBPyRelation) -> pl.DataFrame:
    """Return rows as a frame, with labels as texts and times in UTC."""
    frame = pl.DataFrame(rows)
    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    labels = [name for name, kind in frame.schema.items() if kind == pl.Categorical]
    return frame.with_columns(
        pl.col(times).dt.replace_time_zone("UTC"), pl.col(labels).cast(pl.String)
    )


def _described(agents: pl.DataFrame) -> pl.DataFrame:
    """Return the table of agents as a page shows it."""
    hidden = ("interests", "following", "weighed", "fallbacks")
    table = agents.drop(hidden, strict=False).rename({"display_name": "name"}, strict=False)
    return table.drop("chart") if _is_lone(table) else table


def _is_lone(table: pl.DataFrame) -> bool:
    return "chart" in table.columns and table["chart"].n_unique() == 1


def _followed(charts: Sequence[Diagram], traffic: pl.DataFrame) -> list[Diagram]:
    return [chart for chart in charts if _has_all(chart, traffic)]


def _has_all(chart: Diagram, traffic: pl.DataFrame) -> bool:
    """Return True if a chart has all transitions that a run made with a chart of that name."""
    ends = {(arrow.source, arrow.target) for arrow in chart.arrows}
    made = traffic.filter(chart=chart.name).select("from_state", "to_state").iter_rows()
    return all((source, target) in ends or (None, target) in ends for source, target in made)


def _largest(found: pl.DataFrame, most: int) -> list[str]:
    roots: list[str] = found.filter(pl.col("size") > 1).head(most)["root_id"].to_list()
    return roots


def _of(table: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return the rows of one run."""
    return table.filter(pl.col("run") == label).drop("run") if "run" in table.columns else table


def _showable(table: pl.DataFrame) -> pl.DataFrame:
    """Shorten texts, and replace characters that cannot be shown."""
    text = pl.col(pl.String)
    is_long = text.str.len_chars() > MOST_CHARACTERS
    shortened = pl.when(is_long).then(text.str.slice(0, MOST_CHARACTERS) + "…").otherwise(text)
    return table.with_columns(shortened.str.replace_all(UNSHOWABLE, "\ufffd").name.keep())


def _showable_chart(chart: Diagram) -> Diagram:
    """Name the states of a chart as in the tables of a report."""
    table = _showable(pl.DataFrame({"state": chart.states}, schema={"state": pl.String}))
    names = dict(zip(chart.states, table["state"], strict=True))
    if len(set(names.values())) < len(names):
        return chart

    def named(states: Iterable[str]) -> tuple[str, ...]:
        return tuple(names[state] for state in states)

    return replace(
        chart,
        states=tuple(names.values()),
        arrows=tuple(
            Arrow(
                None if arrow.source is None else names[arrow.source],
                names[arrow.target],
                arrow.labels,
            )
            for arrow in chart.arrows
        ),
        initial=None if chart.initial is None else names[chart.initial],
        decision_states=frozenset(named(chart.decision_states)),
        final_states=frozenset(named(chart.final_states)),
        boxes={
            names[state]: replace(box, inside=named(box.inside), initial=named(box.initial))
            for state, box in chart.boxes.items()
        },
        notes={names[state]: notes for state, notes in chart.notes.items()},
        marks={names[state]: mark for state, mark in chart.marks.items()},
    )
