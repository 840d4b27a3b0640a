"""The tables that only a report needs, as queries on the tables of `prism.analysis`."""

from __future__ import annotations

from collections.abc import Mapping

TABLES: Mapping[str, tuple[object, ...]] = {
    "states": ("states",),
    "transitions": ("transitions",),
    "dwelling": ("dwell",),
    "decisions": ("decisions",),
    "by_round": ("decisions_by", ["round"]),
    "chosen": ("decisions_by", ["round", "chosen"]),
    "costs": ("costs",),
    "cascades": ("cascades",),
    "agents": ("agents",),
    "faults": ("faults",),
    "measures": ("measures",),
}
"""Tables of `prism.analysis`, with their arguments, by the names of the facts."""

BINS_A_DECADE = 10
"""Number of steps per decade of latency."""

_TREATMENTS = "select run, round, treatment, parameters from treatments"
_OWN_EVENTS = "from world"

# 0.001 s is on the edge of a step, and a rounding error must not move it below.
_LATENCIES = f"""
select run, source, floor(log10(greatest(latency, 1e-4)) * {BINS_A_DECADE} + 1e-9)::bigint as step,
       count(*) as decisions
from decided where was_asked and source is not null group by all order by run, source, step
"""

_REASONS = """
select * exclude (source) from decisions_by(['source', 'reason']) where source = 'fallback'
"""

_TRAFFIC = """
select run, chart, from_state, to_state, "trigger", count from transitions
order by run, chart nulls first, from_state, to_state, "trigger"
"""

# Decisions to stay, in each state in which agents decided.
_STAYS = """
select run, state, count(*) filter (chosen = state) as count from events
where event = 'reasoner.decision' and state is not null group by run, state order by run, state
"""

# The states of agents in the order in which they appear, and how many agents joined in each.
_MET = """
select run, chart, state, sum(began)::bigint as began from (
    select run, chart, if(event = 'agent.joined', state, from_state) as state, line * 2 as place,
           (event = 'agent.joined')::int as began
    from events where event in ('agent.joined', 'statechart.transition')
    union all select run, chart, to_state, line * 2 + 1, 0 from events
    where event = 'statechart.transition')
where state is not null group by run, chart, state order by run, min(place)
"""

# Steps of workflows and cycles of thinking in the order in which they first ran.
_STEPS = """
select run, step, type, count(*) filter (outcome = 'done') as done,
       count(*) filter (outcome = 'skipped') as skipped,
       count(*) filter (outcome = 'failed') as failed, sum(seconds) as seconds,
       sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens
from events where event = 'workflow.step' group by run, step, type order by run, min(line)
"""

_CYCLES = """
select run, state, count(*) filter (outcome = 'done') as done,
       count(*) filter (outcome = 'refused') as refused,
       count(*) filter (outcome = 'unusable') as unusable,
       count(*) filter (outcome = 'failed') as failed, max(prompt_tokens) as largest_prompt,
       sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens
from events where event = 'cognition.cycle' group by run, state order by run, min(line)
"""

_REFUSED = """
select run, step, state, target, reason, count(*) as times from events
where event = 'workflow.step' and outcome = 'done' and reason is not null
group by all order by run, times desc, min(line)
"""

# A text of a step has a key such as "3:write" or, where it was asked for again, "3:write:again".
_CALLS = r"""
select run, step, sum(text - again)::bigint as calls, sum(attempts)::bigint as requests,
       sum(again)::bigint as asked_again, sum(failed)::bigint as failed,
       sum(1 - text)::bigint as actions, sum(succeeded)::bigint as succeeded
from (
    select run, line, 1 as text, coalesce("key" like '%:again', false)::int as again,
           nullif(regexp_extract("key", '^\d+:(.*?)(?::again)?$', 1), '') as step,
           coalesce(attempts, 0) as attempts, coalesce(source = 'failed', false)::int as failed,
           0 as succeeded
    from events where event = 'text.written'
    union all select run, line, 0, 0, step, 0, 0, coalesce(succeeded, false)::int
    from events where event = 'workflow.action')
where step is not null group by run, step order by run, min(line)
"""

_THINKING = """
select run, agent_id, cycle, state, outcome, thought, prompt_tokens, memory_tokens, soft_limit,
       hard_limit
from events where event = 'cognition.cycle' order by run, line
"""

_PAGINGS = """
select run, agent_id, cycle, why, "by", tokens_before, tokens_after,
       array_to_string(moved_out, ', ') as moved_out, array_to_string(moved_in, ', ') as moved_in
from events where event = 'cognition.paged' order by run, line
"""

_ACTIONS = """
select run, coalesce(nullif(type, ''), 'none') as action,
       count(*) filter (outcome = 'done') as done,
       count(*) filter (outcome = 'missing') as missing,
       count(*) filter (event = 'cognition.refused') as refused
from events where event in ('cognition.action', 'cognition.refused')
group by all order by run, done + missing + refused desc, action
"""

QUERIES: Mapping[str, str] = {
    "latencies": _LATENCIES,
    "reasons": _REASONS,
    "met": _MET,
    "traffic": _TRAFFIC,
    "stays": _STAYS,
    "steps": _STEPS,
    "refused": _REFUSED,
    "calls": _CALLS,
    "cycles": _CYCLES,
    "thinking": _THINKING,
    "pagings": _PAGINGS,
    "actions": _ACTIONS,
    "treatments": _TREATMENTS,
    "own_events": _OWN_EVENTS,
}
"""Queries by the names of the facts."""

THREADS = """
select p.run, p.post_id, p.parent_id, p.root_id, p.kind, p.agent_id, p.text, p.round, p.tick,
       (select count(*) from events l where l.event = 'post.liked' and l.run = p.run
            and l.post_id = p.post_id) as likes,
       exists (from events w where w.event = 'text.written' and w.cut and w.run = p.run
            and w.agent_id = p.agent_id and w.round is not distinct from p.round
            and w.tick is not distinct from p.tick and w."key" = p.kind) as cut
from posts p where p.kind is not null and (p.root_id = any($roots) or p.post_id = any($roots))
order by p.run, p.line
"""
"""The posts of some cascades, whose roots are ``$roots``."""
