"""Everything that a report shows about each run; its log is parsed only once."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from pydantic import TypeAdapter, ValidationError

from prism.analysis._reading.logs import COLUMNS, STAMP, RunLogs
from prism.analysis._reading.runs import Note, Run
from prism.analysis._reading.survey import SURVEYED
from prism.analysis._tables.cascades import (
    OF_TEXTS,
    TreePost,
    cascades,
    grow,
    posts_below,
)
from prism.analysis._tables.decisions import costs, decisions
from prism.analysis._tables.dwelling import dwell_times
from prism.analysis._tables.engagement import may_have_feed
from prism.analysis._tables.faults import READ as OF_FAULTS
from prism.analysis._tables.faults import faults
from prism.analysis._tables.states import state_counts
from prism.analysis._tables.transitions import transition_counts
from prism.analysis._tables.worlds import measures, treatments, world_event_counts
from prism.drawing import UNSHOWABLE, Arrow, Diagram
from prism.errors import PrismError
from prism.report._facts.counts import (
    OF_CYCLES,
    OF_STEPS,
    agent_table,
    cycle_counts,
    latency_counts,
    states_met,
    stay_counts,
    step_counts,
    traffic_counts,
)
from prism.report._facts.pictures import Picture, last_picture
from prism.report._facts.thinking import (
    OF_THINKING,
    action_counts,
    cycle_sizes,
    paging_sizes,
)
from prism.report._facts.turns import OF_TURNS, call_counts, refusal_counts
from prism.runlog._prompts import Asked, asked_in, prompts_of
from prism.runs._folder import read_summary
from prism.runs._journal import JOURNAL_NAME, find_answers
from prism.telemetry.events import DECISION, TRANSITION

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
    if not (prompts_of(folder).is_file() or (folder / JOURNAL_NAME).is_file()):
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
    """The tables of one run. Texts are shortened for display; numbers are exact.

    Args:
        run: The run as a whole.
        states: From `state_counts`.
        transitions: From `transition_counts`.
        dwelling: From `dwell_times`.
        decisions: From `decisions`, by state and model.
        by_round: From `decisions`, by round.
        chosen: From `decisions`, by round and chosen state.
        reasons: From `decisions`, by reason, only fallbacks.
        latencies: From `latency_counts`.
        costs: From `costs`, by model.
        cascades: From `cascades`.
        agents: From `agent_table`.
        met: From `states_met`.
        traffic: From `traffic_counts`.
        stays: From `stay_counts`.
        faults: From `faults`.
        steps: From `step_counts`.
        refused: From `refusal_counts`.
        calls: From `call_counts`.
        cycles: From `cycle_counts`.
        thinking: From `cycle_sizes`.
        pagings: From `paging_sizes`.
        actions: From `action_counts`.
        measures: From `measures`.
        treatments: From `treatments`.
        own_events: From `world_event_counts`.
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
        is_of_feed = not self._is_of_others and may_have_feed(self.run)
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
    logs: RunLogs, charts: Sequence[Diagram] = (), familiar: Sequence[Diagram] = ()
) -> tuple[tuple[RunFacts, ...], tuple[Note, ...]]:
    """Make every table of a report, with the logs parsed only once.

    Args:
        logs: The logs, from `read_log`.
        charts: The charts that the runs are known to have, by name.
        familiar: Charts that a run has if they contain all of its transitions.

    Returns:
        The facts of each run, and the notes on the logs.
    """
    with parsed_once(logs, MOST_BYTES_IN_MEMORY) as parsed:
        tables = _tables(parsed)
        # a page about worlds has no section on posts, so it needs no note on their absence
        runs, notes = parsed.runs, [note for note in parsed.notes if note.kind != "no_feed"]
        most = max(1, _MOST_TREES // max(1, len(runs)))
        roots = {run.label: _largest(_of(tables["cascades"], run.label), most) for run in runs}
        posts = posts_below(parsed, [root for found in roots.values() for root in found])

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

    return tuple(map(facts_of_run, runs)), tuple(notes)


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


def _tables(logs: RunLogs) -> dict[str, pl.DataFrame]:
    return {
        "states": state_counts(logs),
        "transitions": transition_counts(logs),
        "dwelling": dwell_times(logs),
        "decisions": decisions(logs, by=["state", "model"]),
        "by_round": decisions(logs, by=["round"]),
        "chosen": decisions(logs, by=["round", "chosen"]),
        "reasons": decisions(logs, by=["source", "reason"]).filter(pl.col("source") == "fallback"),
        "latencies": latency_counts(logs),
        "costs": costs(logs),
        "cascades": cascades(logs),
        "agents": agent_table(logs),
        "met": states_met(logs),
        "traffic": traffic_counts(logs),
        "stays": stay_counts(logs),
        "faults": faults(logs),
        **_tables_of_turns(logs),
        **_tables_of_thinking(logs),
        "measures": measures(logs),
        "treatments": treatments(logs),
        "own_events": world_event_counts(logs),
    }


def _tables_of_turns(logs: RunLogs) -> dict[str, pl.DataFrame]:
    steps = step_counts(logs)
    if steps.is_empty():
        return {"steps": steps}
    return {"steps": steps, "refused": refusal_counts(logs), "calls": call_counts(logs)}


def _tables_of_thinking(logs: RunLogs) -> dict[str, pl.DataFrame]:
    cycles = cycle_counts(logs)
    if cycles.is_empty():
        return {"cycles": cycles}
    return {
        "cycles": cycles,
        "thinking": cycle_sizes(logs),
        "pagings": paging_sizes(logs),
        "actions": action_counts(logs),
    }


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


MOST_BYTES_IN_MEMORY = 24 << 20
"""Parsed events beyond these bytes, about 50,000 lines, are stored in files.

In memory they take three times as much as polars reports, and in files a thirtieth of the log.
"""

_NOT_SHOWN = (
    *("host", "traceback", "exception"),
    *("prompt_hash", "unknown_variables", "timeouts", "fallbacks"),
    *("measure", "values", "quantiles"),
)
_SHOWN = tuple(
    dict.fromkeys(
        name
        for names in (
            STAMP,
            *COLUMNS.values(),
            OF_FAULTS,
            OF_STEPS,
            OF_TURNS,
            OF_CYCLES,
            OF_THINKING,
            OF_TEXTS,
        )
        for name in names
        if name not in _NOT_SHOWN
    )
)


@contextmanager
def parsed_once(logs: RunLogs, most_bytes: int) -> Iterator[RunLogs]:
    """Return the same logs, which only the first table parses.

    Args:
        logs: The logs, from `read_log`.
        most_bytes: Most bytes to keep in memory. The rest goes to a temporary folder, which is
            deleted at the end.
    """
    with TemporaryDirectory(prefix="prism-") as folder:
        yield _ParsedLogs(logs, Path(folder), most_bytes)


class _ParsedLogs(RunLogs):
    """The events of logs as frames, with the keys that a report needs."""

    # a report shows the parameters separately
    _with_parameters = False

    def __init__(self, logs: RunLogs, folder: Path, most_bytes: int) -> None:
        super().__init__(logs._paths, logs._unreadable, logs._copies)
        self._folder = folder
        self._bytes_left = most_bytes
        self._parts: list[pl.DataFrame | Path] | None = None

    def blocks_where(
        self,
        condition: pl.Expr | None,
        *,
        columns: Iterable[str],
        objects_where: pl.Expr | None = None,  # noqa: ARG002 - what is parsed once is all there
    ) -> Iterator[pl.DataFrame]:
        """Read all logs as `RunLogs.blocks_where` does, parsing them at the first call."""
        if self._parts is None:
            # a report needs no contexts of transitions
            needed = pl.col("event") != TRANSITION
            frames = super().blocks_where(None, columns=_SHOWN, objects_where=needed)
            self._parts = [self._kept(frame, number) for number, frame in enumerate(frames)]

        wanted = ["run", "line", *dict.fromkeys((*SURVEYED, *columns))]
        for part in self._parts:
            frame = pl.read_ipc(part, columns=wanted) if isinstance(part, Path) else part
            yield (frame if condition is None else frame.filter(condition)).select(wanted)

    def _kept(self, frame: pl.DataFrame, number: int) -> pl.DataFrame | Path:
        self._bytes_left -= int(frame.estimated_size())
        if self._bytes_left >= 0:
            return frame

        path = self._folder / f"{number}.arrow"
        frame.write_ipc(path, compression="lz4")

        return path
