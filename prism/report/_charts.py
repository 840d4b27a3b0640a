"""The charts that a run follows, as they were defined or as far as its log shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, filterfalse
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prism import examples
from prism.analysis import Log, Run
from prism.drawing import Arrow, Box, Diagram, Levels, showable
from prism.errors import PrismError
from prism.programs.thinking import cognitive_chart
from prism.report._table import Rows, rows_of
from prism.runs._folder import read_summary
from prism.statechart import Statechart, social_feed_chart, social_media_chart
from prism.statechart.outline import to_outline

DIAGRAMS: TypeAdapter[tuple[Diagram, ...]] = TypeAdapter(tuple[Diagram, ...])
"""Reads charts as they are drawn from plain data."""

Traffic = Counter[tuple[str, str]]
"""How often agents went from one state to another."""

_Tree = dict[str, tuple[str, ...]]

_TRAFFIC = """
select run, chart, from_state, to_state, "trigger", count(*) as count from events
where event = 'statechart.transition' and from_state is not null and to_state is not null
group by all order by min(line)
"""
_STAYS = """
select run, state, count(*) filter (chosen = state) as count from events
where event = 'reasoner.decision' and state is not null group by all order by min(line)
"""
_JOINED = """
select run, chart, state, count(*) as count from events
where event = 'agent.joined' and state is not null group by all order by min(line)
"""


@dataclass(frozen=True)
class Charts:
    """The charts that a run follows.

    Args:
        run: The run.
        own: Charts of the user's, by which those of the log are drawn.
        traffic: Its transitions, by chart, states and trigger.
        stays: Its decisions to stay, by state.
        joined: The agents that joined, by chart and state.
    """

    run: Run
    own: Sequence[Diagram]
    traffic: Rows
    stays: Rows
    joined: Rows

    @cached_property
    def names(self) -> list[str | None]:
        """The charts of transitions, or before the first those of agents; None has no name."""
        names = list(dict.fromkeys(row["chart"] for row in self.traffic or self.joined))
        has_rounds_only = self.run.logged_agents == 0 and not names
        # agents of a run with a single chart join without its name
        is_of_one = has_rounds_only or (not self.traffic and names == [None])
        return [self.run.chart] if is_of_one else names

    def of(self, name: str | None) -> Rows:
        """Return the transitions of one chart."""
        return [row for row in self.traffic if row["chart"] == name]

    def states(self, name: str | None) -> list[str]:
        """Return the states of one chart in the order of the log."""
        own = self.of(name)
        met = (
            row["state"]
            for row in self.joined
            if row["chart"] == name or (row["chart"] is None and not own)
        )
        moved = chain.from_iterable((row["from_state"], row["to_state"]) for row in own)
        return list(dict.fromkeys(map(showable, chain(met, moved))))

    def counts(self, name: str | None) -> Traffic:
        """Return how often agents made the transitions of a chart, or decided to stay."""
        counts = Traffic()
        for row in self.of(name):
            counts[showable(row["from_state"]), showable(row["to_state"])] += row["count"]
        own = self.own_states(name)
        for row in self.stays:
            if (state := showable(row["state"])) in own:
                # the log of an application may have the transitions of these decisions, too
                counts[state, state] = max(row["count"], counts[state, state])

        return counts

    def own_states(self, name: str | None) -> set[str]:
        """Return the states of a chart that no other chart of the run has."""
        others = (self.states(other) for other in self.names if other != name)
        return {*self.states(name)}.difference(*others)

    def diagram(self, name: str | None) -> Diagram:
        """Return a chart as it was defined, or else as far as the log shows it."""
        seen = self.states(name)
        known = [*self.own, *charts_kept(self.run), *self._familiar()]
        if defined := [each for each in known if each.name == name]:
            return _with_states(defined[0], seen)

        began = max(self.joined, key=lambda row: row["count"], default={"state": None})["state"]
        initial = began if began in seen else None
        drawn = Diagram(tuple(seen), (), initial, name or "statechart")
        if tree := _tree(self.run.charts.get(name or "", {})):
            drawn = _boxed(drawn, tree, _arrows(self.run.arrows.get(name or "", ())))
        elif name is None:
            drawn = replace(drawn, name=self.run.label)

        return self._with_traffic(drawn, name)

    def _with_traffic(self, drawn: Diagram, name: str | None) -> Diagram:
        """Add an arrow, with its triggers, for each pair of states with transitions."""
        levels = Levels(drawn)
        labels = {
            (arrow.source or arrow.target, arrow.target): dict.fromkeys(arrow.labels)
            for arrow in drawn.arrows
        }
        for row in self.of(name):
            ends = showable(row["from_state"]), showable(row["to_state"])
            for each in filterfalse(levels.has, levels.used(*ends)):
                labels.setdefault(each, {})[showable(row["trigger"] or "")] = None
        arrows = tuple(Arrow(*ends, tuple(texts)) for ends, texts in labels.items())
        decided = frozenset(showable(row["state"]) for row in self.stays)
        return replace(drawn, arrows=arrows, decision_states=decided.intersection(drawn.states))

    def _familiar(self) -> list[Diagram]:
        """Return prism's own charts that have all transitions of the log."""
        return [chart for chart in familiar_charts([self.run]) if self._is_followed(chart)]

    def _is_followed(self, chart: Diagram) -> bool:
        ends = {(arrow.source, arrow.target) for arrow in chart.arrows}
        made = [(row["from_state"], row["to_state"]) for row in self.of(chart.name)]
        return all({(source, target), (None, target)} & ends for source, target in made)


def charts_of(log: Log, own: Sequence[Diagram] = ()) -> list[Charts]:
    """Return the charts that each run of a log follows.

    Args:
        log: The log.
        own: Charts of the user's, by which those of the log are drawn.
    """
    tables = [rows_of(log.sql(query)) for query in (_TRAFFIC, _STAYS, _JOINED)]
    return [
        Charts(run, own, *([row for row in rows if row["run"] == run.label] for rows in tables))
        for run in log.runs
    ]


def charts_kept(run: Run) -> tuple[Diagram, ...]:
    """Return the charts in ``run.json``, which has those of a user's world; none if damaged."""
    with suppress(PrismError, ValidationError):
        summary = {} if run.world is None else read_summary(run.path.parent)
        return DIAGRAMS.validate_python(summary.get("charts", ()))
    return ()


def familiar_charts(runs: Iterable[Run] = ()) -> tuple[Diagram, ...]:
    """Return prism's own charts, which logs name without their definitions.

    Args:
        runs: The runs; those of example worlds, of which ``run.json`` tells, have their charts.
    """
    named = (run for run in runs if run.world in examples.__all__)
    worlds = sorted({_world_of(run) for run in named})
    return *_charts_of_feeds(), *(chart for world in worlds for chart in _of_example(world))


def _world_of(run: Run) -> str:
    with suppress(PrismError):
        return str(read_summary(run.path.parent)["config"].get("world"))
    return ""


@cache
def _of_example(world: str) -> tuple[Diagram, ...]:
    """Return the charts of an example; those of others are not prism's."""
    module, _, name = world.partition(":")
    if module.rpartition(".")[0] != examples.__name__ or name not in examples.__all__:
        return ()

    from prism.worlds._world import outlines_of

    return tuple(outlines_of(getattr(examples, name)))


@cache
def _charts_of_feeds() -> tuple[Diagram, ...]:
    charts: tuple[Statechart[Any], ...] = (
        *(social_media_chart(acts=acts) for acts in (False, True)),
        *(social_feed_chart(acts=acts) for acts in (False, True)),
    )
    thinking = to_outline(cognitive_chart().definition)
    # the actions depend on the agent
    arrows = (
        replace(arrow, labels=tuple(dict.fromkeys(label.split(" ")[0] for label in arrow.labels)))
        for arrow in thinking.arrows
    )
    return *(to_outline(chart.definition) for chart in charts), replace(
        thinking, arrows=tuple(arrows)
    )


def _with_states(diagram: Diagram, seen: Sequence[str]) -> Diagram:
    """Add states of agents that a diagram lacks."""
    if diagram.boxes:
        levels = Levels(diagram)
        seen = [each for state in seen for each in levels.active(state)]

    return replace(diagram, states=tuple(dict.fromkeys([*diagram.states, *seen])))


def _arrows(listed: Sequence[Sequence[str]]) -> tuple[Arrow, ...]:
    """Return the arrows of a chart that a log describes, used or not."""
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for source, target, trigger in listed:
        labels.setdefault((showable(source), showable(target)), {})[showable(trigger)] = None

    return tuple(Arrow(*ends, tuple(texts)) for ends, texts in labels.items())


def _boxed(plain: Diagram, tree: _Tree, arrows: Sequence[Arrow]) -> Diagram:
    """Nest states, given the contents of composite states in a log and the states of agents."""
    ends = (end for arrow in arrows for end in (arrow.source, arrow.target) if end is not None)
    named = tuple(dict.fromkeys([*plain.states, *ends]))
    states = tuple(dict.fromkeys(each for state in tree for each in (state, *tree[state])))
    boxes = {state: Box(each) for state, each in tree.items()}
    levels = Levels(Diagram(states, (), name=plain.name, boxes=boxes))
    begun = {} if plain.initial is None else levels.active(plain.initial)
    together = [levels.active(state).keys() for state in named]

    def box_of(inside: tuple[str, ...]) -> Box:
        is_parallel = any(len(active & {*inside}) > 1 for active in together)
        first = () if is_parallel else tuple(each for each in inside if each in begun)
        return Box(inside, first, is_parallel)

    boxes = {state: box_of(inside) for state, inside in tree.items()}
    nested = _with_states(replace(levels.diagram, boxes=boxes), named)
    return replace(nested, arrows=tuple(arrows), initial=next(iter(begun), None))


def _tree(inside: Mapping[str, Sequence[str]]) -> _Tree:
    """Return the states inside each composite state, outermost first, each state only once."""
    shown = {showable(state): [*map(showable, states)] for state, states in inside.items()}
    children = {each for states in shown.values() for each in states}
    waiting = [state for state in shown if state not in children]
    tree = {}
    # a log may list a state in two places
    for state in waiting:
        own = dict.fromkeys(each for each in shown.get(state, ()) if each not in waiting)
        waiting += own
        if own:
            tree[state] = tuple(own)

    return tree
