-- States on one level of charts with states inside states: `from states_at(1)` counts the
-- outermost. A leaf is on its own level and on all deeper ones; an agent in several regions is in
-- a state of each.

-- The path to each state of agents on a level: the states that contain it, outermost first, and
-- itself.
create macro paths_at(depth) as table
with recursive up as (
    select run, chart, state as leaf, [around, state] as path from inside
    union all
    select u.run, u.chart, leaf, list_prepend(i.around, path) from up u
    join inside i on i.run = u.run and i.chart = u.chart and i.state = u.path[1]
), paths as (
    select run, chart, leaf, arg_max(path, len(path)) as path from up group by all
), used as (
    select distinct run, chart, state from (
        select run, chart, unnest([begin, "end", before]) as state from steps
        union all select run, chart, state from states)
    where state is not null and state <> ''
), leaves as (
    select u.*, unnest(if((run, chart) in (select (run, chart) from inside)
                          and (run, chart, state) not in (select (run, chart, leaf) from paths),
                          string_split(state, '+'), [state])) as leaf
    from used u
)
select distinct l.run, l.chart, l.state, coalesce(path, [l.leaf])[:depth] as path
from leaves l left join paths p
  on p.run = l.run and p.chart is not distinct from l.chart and p.leaf = l.leaf;

create macro states_at(depth) as table
select s.run, round, tick, time, s.chart, path[-1] as state, sum(agents)::bigint as agents,
       sum(share) as share
from states s join paths_at(depth) p
  on p.run = s.run and p.chart is not distinct from s.chart and p.state = s.state
group by all order by s.run, round, tick, time, s.chart nulls first, state;

-- A transition within one state of the level is left out. One that leaves or enters several
-- regions has a row for each, and each has the probability of the whole.
create macro transitions_at(depth) as table
with counted as (
    select run, coalesce(t.chart, first_chart) as chart, from_state, to_state, "trigger", count
    from transitions t join runs using (run)
), paths as (select * from paths_at(depth)),
sources as (
    select c.*, p.path from counted c join paths p
      on p.run = c.run and p.chart is not distinct from c.chart and p.state = c.from_state
    where not exists (from paths q where q.run = c.run and q.chart is not distinct from c.chart
                      and q.state = c.to_state and q.path = p.path)
), pairs as (
    select s.run, s.chart, s.from_state, s.to_state, s."trigger", s.count, s.path as source,
           p.path as target, len(list_intersect(s.path, p.path)) as shared
    from sources s join paths p
      on p.run = s.run and p.chart is not distinct from s.chart and p.state = s.to_state
    where not exists (from paths q where q.run = s.run and q.chart is not distinct from s.chart
                      and q.state = s.from_state and q.path = p.path)
), nearest as (
    select distinct run, chart, from_state, to_state, "trigger", count, source[-1] as source,
           target[-1] as target
    from pairs
    qualify shared = max(shared) over (partition by run, chart, from_state, to_state, source)
         or shared = max(shared) over (partition by run, chart, from_state, to_state, target)
), leaving as (
    select run, chart, source, sum(count) as leaving
    from (select distinct run, chart, from_state, to_state, "trigger", count, source from nearest)
    group by all
)
select n.run, n.chart, n.source as from_state, target as to_state, "trigger",
       sum(count)::bigint as count, sum(count) / any_value(leaving) as probability
from nearest n join leaving l
  on l.run = n.run and l.chart is not distinct from n.chart and l.source = n.source
group by all order by n.run, n.chart nulls first, from_state, count desc, to_state, "trigger";

-- A visit to a composite lasts while its agent is anywhere inside.
create macro dwell_at(depth) as table
with paths as (select * from paths_at(depth)),
numbered as (
    select *, row_number() over agent as number, lag(round) over agent as round_before,
           lag(tick) over agent as tick_before, lag(timestamp) over agent as time_before,
           lead(line) over agent is null as last
    from steps window agent as (partition by run, chart, agent_id order by line)
), parts as (
    select run, chart, agent_id, number, begin as state, before, "end" as next, round_before as round,
           tick_before as tick, time_before as begun, "trigger", ticks_in_state, rounds_in_state,
           if(closes or "trigger" is not distinct from 'round_ends', 'cut', 'complete') as ending
    from numbered where begin is not null
    union all
    select run, chart, agent_id, number + 1, "end", "end", null, round, tick, timestamp, null, null,
           null, 'open'
    from numbered where last and "end" <> ''
), inner_parts as (
    select x.*, p.path,
           (before, path) in (select (q.state, q.path) from paths q
                              where q.run = x.run and q.chart is not distinct from x.chart) as came,
           coalesce((next, path) in (select (q.state, q.path) from paths q
                    where q.run = x.run and q.chart is not distinct from x.chart), false) as stays
    from parts x join paths p
      on p.run = x.run and p.chart is not distinct from x.chart and p.state = x.state
), flagged as (
    select *, not coalesce(lag(number) over inside_it = number - 1 and lag(stays) over inside_it, false)
           as begins
    from inner_parts
    window inside_it as (partition by run, chart, agent_id, path order by number)
), stays as (
    select *, sum(begins::int) over (partition by run, chart, agent_id, path order by number) as stay
    from flagged
), ended as (
    select run, chart, path[-1] as state, bool_or(not stays) as is_over,
           if(count(*) filter (ticks_in_state is null and ending <> 'open') > 0, null,
              sum(ticks_in_state)) as ticks, sum(rounds_in_state) as rounds,
           arg_max(ending, number) as ending, arg_max("trigger", number) as "trigger",
           arg_min_null(if(came, round, null), number) as round,
           arg_min_null(if(came, tick, null), number) as tick,
           arg_min_null(if(came, begun, null), number) as begun
    from stays group by run, chart, agent_id, path, stay
), clocks as (
    select run, max(timestamp) as until,
           arg_max((round::double - 1) * ticks + tick, in_order(round, tick)) as clock
    from events join runs using (run) where round is not null and tick is not null group by run
), level_visits as (
    select e.run, e.chart, e.state, ending, "trigger" = 'timeout' as timed_out,
           case when ending <> 'open' then if(r.seconds_per_round is null, e.ticks::double, e.rounds)
                when r.seconds_per_round is null then
                     clock - if(e.round > 0, (e.round::double - 1) * r.ticks + e.tick, 0)
                else (epoch_us(until) - epoch_us(e.begun)) / 1e6 / r.seconds_per_round end
           as length
    from ended e join runs r using (run) left join clocks c using (run) where is_over
)
from dwell_of('level_visits');
