"""The charts of a run with their traffic, as its log shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, filterfalse
from typing import Any

from markupsafe import Markup

from prism.analysis import Run
from prism.drawing import Arrow, Diagram, Levels, draw_svg, showable
from prism.report._facts.run_facts import charts_kept
from prism.report._page import familiar_charts
from prism.report._sections.diagram import _boxed, _told_arrows, _tree, _with_states
from prism.watch._html import object_in
from prism.watch._watched import Watched

Traffic = Counter[tuple[str, str]]

# What closes a round counts in the next one; see `steps` in the tables of prism.analysis.
CLOSES = """
("trigger" = 'round_ends' or "trigger" in ('compose_done', 'action_done') and ticks_in_state = 0
 and tick = (select max(ticks_per_round) from runs))
"""
MOVES = f"""
with moves as (
    select line, coalesce(round, -1) as round, tick, agent_id,
           coalesce(chart, (select max(first_chart) from runs)) as chart,
           case event when 'agent.joined' then '' when 'agent.left' then state else from_state end
           as source,
           case event when 'agent.joined' then state when 'agent.left' then '' else to_state end
           as target, coalesce({CLOSES}, false) as closes
    from events where event in ('statechart.transition', 'agent.joined', 'agent.left')
                  and agent_id is not null
)
"""
"""Steps of agents, the round of a log without rounds being -1."""

_TRAFFIC = """
select round, chart, from_state, to_state, "trigger", count(*) as count from events
where event = 'statechart.transition' and from_state is not null and to_state is not null
group by all order by min(line)
"""
_STAYS = """
select round, state, count(*) filter (chosen = state) as count from events
where event = 'reasoner.decision' and state is not null group by all order by min(line)
"""
_JOINED = """
select chart, state, count(*) as count from events
where event = 'agent.joined' and state is not null group by all order by min(line)
"""
_ENDED = """
select round, states from events
where event = 'round.ended' and states is not null and round <= $number
order by round desc, line desc limit 1
"""
_SINCE = f"""
{MOVES}
select source, target, count(*) as count from moves
where round between $before + 1 and $number or round = $before and closes group by all
"""
_COUNTED = """
select state, sum(agents)::bigint as count from (
    select * from states where $number is null or round <= $number
    qualify dense_rank() over (order by round desc, tick desc, time desc) = 1)
group by state
"""


@dataclass(frozen=True)
class Charts:
    """The charts that a run follows.

    Args:
        run: The run.
        own: Charts of the user's, by which those of the log are drawn.
        traffic: Its transitions, by round, chart, states and trigger.
        stays: Its decisions to stay, by round and state.
        joined: The agents that joined, by chart and state.
    """

    run: Run
    own: Sequence[Diagram]
    traffic: Sequence[Mapping[str, Any]]
    stays: Sequence[Mapping[str, Any]]
    joined: Sequence[Mapping[str, Any]]

    @cached_property
    def names(self) -> list[str | None]:
        """The charts of transitions, or before the first those of agents; None has no name."""
        names = list(dict.fromkeys(row["chart"] for row in self.traffic or self.joined))
        has_rounds_only = self.run.logged_agents == 0 and not names
        # agents of a run with a single chart join without its name
        is_of_one = has_rounds_only or (not self.traffic and names == [None])
        return [self.run.chart] if is_of_one else names

    @cached_property
    def levels(self) -> dict[str | None, Levels]:
        """Each chart as it was defined, or else as far as the log shows it."""
        return {name: Levels(self._diagram(name)) for name in self.names}

    @property
    def seen(self) -> list[str]:
        """The states of all charts, those of definitions first."""
        defined = (state for each in self.levels.values() for state in each.diagram.states)
        return list(dict.fromkeys(defined))

    def of(self, name: str | None) -> list[Mapping[str, Any]]:
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

    def draw(self, number: int | None, agents: Mapping[str, int]) -> Markup:
        """Draw the charts with the traffic of a round, on the scale of the busiest.

        Args:
            number: The round; None for a log without rounds.
            agents: The agents in each state at its end.
        """
        parts = []
        for name, levels in self.levels.items():
            rounds = self._by_round(name)
            arrows = [levels.traffic(each) for each in rounds.values()]
            busiest = Counter[tuple[str, str]]()
            for each in arrows:
                busiest |= each
            shown = {ends: n for ends, n in busiest.items() if {*ends} <= {*levels.diagram.states}}
            here = rounds.get(number, Traffic())
            svg = draw_svg(levels.diagram, here, beside=[shown], agents=agents)
            parts.append(
                Markup('<div class="scroll chart" tabindex="0">{}</div>').format(Markup(svg))
            )

        return Markup("").join(parts)

    def _by_round(self, name: str | None) -> dict[int | None, Traffic]:
        rounds: dict[int | None, Traffic] = {}
        for row in self.of(name):
            ends = showable(row["from_state"]), showable(row["to_state"])
            rounds.setdefault(row["round"], Traffic())[ends] += row["count"]
        others = {state for other in self.names if other != name for state in self.states(other)}
        own = {*self.states(name)} - others
        for row in self.stays:
            if (state := showable(row["state"])) in own:
                counts = rounds.setdefault(row["round"], Traffic())
                # the log of an application may have the transitions of these decisions, too
                counts[state, state] = max(row["count"], counts[state, state])

        return rounds

    def _diagram(self, name: str | None) -> Diagram:
        seen, key = self.states(name), name or ""
        known = [*self.own, *charts_kept(self.run), *self._familiar()]
        if defined := [each for each in known if each.name == name]:
            return _with_states(defined[0], seen)

        began = max(self.joined, key=lambda row: row["count"], default={"state": None})["state"]
        initial = began if began in seen else None
        drawn = Diagram(tuple(seen), (), initial, name or "statechart")
        if tree := _tree(self.run.charts.get(key, {})):
            drawn = _boxed(drawn, tree, _told_arrows(self.run.arrows.get(key, ())))
        elif name is None:
            drawn = replace(drawn, name=self.run.label)
        levels = Levels(drawn)
        labels = {
            (arrow.source or arrow.target, arrow.target): dict.fromkeys(arrow.labels)
            for arrow in drawn.arrows
        }
        for row in self.of(name):
            used = levels.used(showable(row["from_state"]), showable(row["to_state"]))
            for ends in filterfalse(levels.has, used):
                labels.setdefault(ends, {})[showable(row["trigger"] or "")] = None
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


def charts_of(watched: Watched) -> Charts | None:
    """Return the charts that a run follows; None as long as its log has no event."""
    with watched.reading() as log:
        run = next(iter(log.runs), None)
        rows = [watched.rows(query) for query in (_TRAFFIC, _STAYS, _JOINED)]
    return None if run is None else Charts(run, watched.charts, *rows)


def states_at(watched: Watched, number: int | None) -> dict[str, int]:
    """Return how many agents are in each state at the end of a round, or now if it goes on."""
    with watched.reading():
        ended = watched.rows(_ENDED, number=number) if number is not None else []
        if not ended:
            rows = watched.rows(_COUNTED, number=number) or watched.rows(_JOINED)
            return _summed((row["state"], row["count"]) for row in rows)

        before = ended[0]["round"]
        since = [] if before == number else watched.rows(_SINCE, before=before, number=number)

    counts = _counts(ended[0])
    for row in since:
        counts[row["source"]] = counts.get(row["source"], 0) - row["count"]
        counts[row["target"]] = counts.get(row["target"], 0) + row["count"]
    counts.pop("", None)
    return {state: max(count, 0) for state, count in counts.items()}


def _counts(event: Mapping[str, Any]) -> dict[str, int]:
    states = object_in(event, "states")
    return {name: count for name, count in states.items() if type(count) is int}


def _summed(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state, count in pairs:
        counts[state] = counts.get(state, 0) + count
    return counts
