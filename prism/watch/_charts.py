"""The charts of a run with their traffic, as its log shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from markupsafe import Markup

from prism.drawing import Levels, draw_svg, showable
from prism.report._charts import Charts, Traffic
from prism.watch._html import object_in
from prism.watch._watched import Watched

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


class RunCharts(Charts):
    """The charts that a run follows, with the traffic of each of its rounds."""

    @cached_property
    def levels(self) -> dict[str | None, Levels]:
        """Each chart as it was defined, or else as far as the log shows it."""
        return {name: Levels(self.diagram(name)) for name in self.names}

    @property
    def seen(self) -> list[str]:
        """The states of all charts, those of definitions first."""
        defined = (state for each in self.levels.values() for state in each.diagram.states)
        return list(dict.fromkeys(defined))

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
        own = self.own_states(name)
        for row in self.stays:
            if (state := showable(row["state"])) in own:
                counts = rounds.setdefault(row["round"], Traffic())
                # the log of an application may have the transitions of these decisions, too
                counts[state, state] = max(row["count"], counts[state, state])

        return rounds


def charts_of(watched: Watched) -> RunCharts | None:
    """Return the charts that a run follows; None as long as its log has no event."""
    with watched.reading() as log:
        run = next(iter(log.runs), None)
        rows = [watched.rows(query) for query in (_TRAFFIC, _STAYS, _JOINED)]
    return None if run is None else RunCharts(run, watched.charts, *rows)


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
