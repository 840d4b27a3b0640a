-- What a reader of the tables should know about the logs: one row for each note.
create view notes as
with facts as (
    select run, count(*) filter (event = 'statechart.guard_failed') as guards,
           min(line) filter (event = 'statechart.guard_failed') as guard,
           count(*) filter (event = 'statechart.action_failed') as actions,
           min(line) filter (event = 'statechart.action_failed') as action
    from events where event in ('statechart.guard_failed', 'statechart.action_failed') group by run
), foreign_events as (
    select run, event, count(*) as count from events
    where event not like 'world.%' and event not in (from known_events) group by all
), foreign_ones as (
    select run, sum(count) as total, list(format('{} {:,}', event, count)
           order by count desc, event) as names from foreign_events group by run
)
select run, kind, line, message, 0 as place from damage
union all
select run, 'foreign_events', null, format('{:,} event{} left out: {}{}', total::bigint,
    if(total = 1, ' that is not prism''s is', 's that are not prism''s are'),
    array_to_string(names[:5], ', '),
    if(len(names) > 5, format(', and {} kinds more', len(names) - 5), '')), 1 from foreign_ones
union all
select run, 'newer_schema', null, format('{} has events of version {}, and this prism knows version'
    ' {}: unknown parts are left out; a newer prism may read them', run, "schema",
    (select max(version) from known_version)), 4
from runs where "schema" > (select max(version) from known_version)
union all
select run, 'sampled', null, if(logged_agents = 0,
    format('has only the rounds, and none of {:,} agents: `prism log states`, `measures` and '
           '`run_measures` have what all of them did', agents),
    format('has only {:,} of {:,} agents: states, measures and totals of rounds are of all, and '
           'all other tables of these alone', logged_agents, agents)), 5
from runs where logged_agents is not null and agents is not null
union all
select run, 'no_beginning', null, format('{} begins in round {}: the lines that say who joined '
    'are missing', run, (select min(round) from events e where e.run = runs.run)), 6
from runs where not started and run in (select run from events where event = 'round.ended')
union all
select run, 'unfinished', null, format('{} has not ended: it is still running, or was stopped', run), 6
from runs where started and not ended
union all
select run, 'guard_failed', guard, format('a guard raised an exception {}, and counted as false; '
    '`prism log faults` has more', if(guards = 1, 'once', format('{:,} times', guards))), 7
from facts where guards > 0
union all
select run, 'action_failed', action, format('an action raised an exception {}, but its transition '
    'took place; `prism log faults` has more', if(actions = 1, 'once', format('{:,} times', actions))), 8
from facts where actions > 0
union all
select run, 'empty', null, if(run in (select run from damage union select run from events),
    'contains no events of prism, one JSON object a line in UTF-8',
    'is empty: nothing has been written to it'), 9
from logs where run not in (select run from runs)
order by run, place, line;

-- Of the tables on a level: logs that do not say which states contain others, or who there is.
create view level_notes as
select run, 'no_levels' as kind, 'has no chart with states inside states: on each level, they are '
    'as the transitions name them' as message
from runs where run not in (select run from inside)
union all
select run, 'unjoined', 'has no agent.joined: agents that made no transition are not counted'
from events where event in ('statechart.transition', 'agent.joined')
group by run having count(*) filter (event = 'agent.joined') = 0;

-- Of the tables that follow agents: steps that do not follow from one another.
create view path_notes as
with broken as (
    select run, count(*) as count, min(line) as line from steps
    where begin is not null and begin <> before group by run
), early_ones as (
    select run, count(*) as count, min(line) as line from steps
    where begin is not null and early group by run
)
select run, 'broken_chain' as kind, format('{:,} transition{} not start where the agent''s last one '
    'ended (the first in line {:,}): lines are missing, or the state was set outside the chart',
    count, if(count = 1, ' does', 's do'), line) as message from broken
union all
select run, 'out_of_order', format('{:,} transition{} not follow the agent''s last one in round, tick '
    'or time (the first in line {:,}): they count together with that', count,
    if(count = 1, ' does', 's do'), line) from early_ones
order by run, kind;
