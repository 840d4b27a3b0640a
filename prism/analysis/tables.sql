-- The tables of `prism log`: each is a view over `events` (see events.sql). Copy one into
-- `prism log "select ..."`, and change a line of it, to count otherwise. `run` is the label of the
-- log, `line` the number of a line in it.

-- Each run, as its first line describes it. `unit` is how its states are counted: by tick, by
-- round where the log has no ticks, or by time where it has neither.
create view runs as
with begun as (
    select run, max(line) as line, unnest(arg_max(struct_pack(
        schema, chart, agents, logged_agents, rounds, ticks_per_round, seconds_per_round, seed,
        world, parameters, charts), line))
    from events where event = 'run.started' group by run
), last as (
    select run, bool_or(event in (from known_events) or event like 'world.%') as has_events,
           max(line) filter (event = 'run.ended')
               >= coalesce(max(line) filter (event = 'run.started'), 0) as ended, max(tick) as longest, max(round) as rounds_seen,
           arg_min(chart, line) filter (event in ('run.started', 'agent.joined',
                                                  'statechart.transition')) as first_chart,
           count(*) filter (event = 'statechart.transition') as moves,
           count(tick) filter (event = 'statechart.transition') as ticked,
           count(round) filter (event = 'statechart.transition') as rounded,
           count(distinct coalesce(chart, '')) filter (
               event = 'statechart.transition' or event = 'agent.joined' and chart is not null)
           as charts_seen,
           bool_or(event = 'post.published') as has_posts
    from events group by run
)
select run, path, b.line is not null as started, coalesce(ended, false) as ended,
       b.* exclude (run, line), first_chart, charts_seen, rounds_seen,
       coalesce(ticks_per_round, longest) as ticks,
       case when coalesce(moves, 0) = 0 or ticked > 0 then 'tick'
            when rounded > 0 then 'round' else 'time' end as unit,
       -- a feed names no world; the log of an application's own loop names no chart, either
       has_posts or b.world is null and b.chart is not null as has_feed
from logs left join begun b using (run) join last using (run) where has_events order by run;

-- Every step of an agent: how it joins, moves and leaves (to no state, ''). `before` is where its
-- last step ended. A step is as late as the agent's last one if the log says that it was earlier.
-- What closes a round counts in the next tick, as `round.ended` counts before that: the trigger
-- `round_ends`, and in its last tick what ends an act begun in it.
create view steps as
with chosen as (
    select run, line, event, agent_id, coalesce(e.chart, first_chart) as chart, "trigger",
           ticks_in_state, timestamp, unit, ticks, r.seconds_per_round,
           event = 'agent.joined' and coalesce(round, 0) > 0 as comes, event = 'agent.left' as leaves,
           case when comes then '' when leaves then state
                when event = 'statechart.transition' then from_state end as begin,
           case event when 'agent.joined' then state when 'statechart.transition' then to_state
                else '' end as "end",
           coalesce(round, 0) as round,
           coalesce(if(comes or leaves, greatest(tick, 1), tick), 0) as tick,
           case when unit = 'time' then 0 when "trigger" = 'round_ends' then 2
                when "trigger" in ('compose_done', 'action_done') and ticks_in_state = 0 then 1
                else 0 end as closing
    from events e join runs r using (run)
    where event in ('agent.joined', 'statechart.transition', 'agent.left')
      and agent_id is not null
), marked as (
    select *, case unit when 'time' then coalesce(epoch_us(timestamp) // 1_000_000, 0)
                   else least(greatest(round, 0), 1 << 30) * (1 << 24)
                        + least(greatest(tick, 0), 1 << 21) * 4 + closing end as own
    from chosen where "end" is not null and (event = 'agent.joined' or begin is not null)
), ordered as (
    select *, max(own) over past as late, lag("end") over agent as before,
           lag(timestamp) over agent as since
    from marked
    window agent as (partition by run, chart, agent_id order by line),
           past as (partition by run, chart, agent_id order by line rows unbounded preceding)
)
select run, line, event, agent_id, chart, "trigger",
       ticks_in_state, begin, "end", before, unit,
       if(unit = 'time', late, late >> 24) as round,
       if(unit = 'time', 0, (late & ((1 << 24) - 1)) >> 2) as tick,
       unit <> 'time' and (late & 3 = 2 or late & 3 = 1 and tick = ticks and unit = 'tick') as closes,
       own < late as early, coalesce(before, begin) as source,
       (epoch_us(timestamp) - epoch_us(since)) / 1e6 / seconds_per_round as rounds_in_state,
       timestamp
from ordered;

-- Agents in each state at the end of every tick, from their steps; in the last tick of a round, by
-- its `round.ended`, which counts them before what the world does at the end of the round. A run of
-- which only a sample is logged is counted by its `round.ended` alone, which counts everybody.
create view states as
with places as (
    select run, round, tick, row_number() over (partition by run order by round, tick) as place
    from moments
), placed as (
    select s.run, chart, source, "end", before, place + closes::int as place
    from steps s asof join places p
      on s.run = p.run and in_order(s.round, if(unit = 'tick', s.tick, 0))
                          >= in_order(p.round, p.tick)
    where source is not null
    union all
    select run, chart, source, "end", before, 1 from steps s
    where source is not null and in_order(s.round, if(unit = 'tick', s.tick, 0))
          < (select min(in_order(p.round, p.tick)) from places p where p.run = s.run)
), changes as (
    select run, chart, "end" as state, place, count(*) as change from placed
    where "end" <> '' group by all
    union all select run, chart, source, place, -count(*) from placed group by all
    union all select run, chart, coalesce(begin, "end"), 1, count(*) from steps
              where before is null group by all
), summed as (
    select run, chart, state, place, sum(change)::bigint as change from changes group by all
), grid as (
    select run, chart, state, place, round, tick
    from places join (select distinct run, chart, state from summed where state <> '') using (run)
), counted as (
    select g.*, (sum(coalesce(change, 0)) over (
        partition by g.run, g.chart, g.state order by g.place))::bigint as agents
    from grid g left join summed s
      on s.run = g.run and s.chart is not distinct from g.chart and s.state = g.state
         and s.place = g.place
), ended as (
    select run, e.round, last(e.tick order by line) as tick, any_value(r.chart) as chart,
           any_value(r.logged_agents) is not null as is_sampled,
           last(states order by line) as states
    from events e join runs r using (run)
    where event = 'round.ended' and e.round is not null and states is not null group by all
), everybody as (
    select * exclude (value), try_cast(value as bigint) as agents
    from (select run, round, tick, chart, is_sampled, unnest(entries(states), recursive := true)
          from ended)
    where json_type(value) in ('UBIGINT', 'BIGINT')
), sampled as (
    select run, round, tick, chart, state, coalesce(agents, 0) as agents
    from (select run, round, tick, chart from ended where is_sampled)
    join (select distinct run, "key" as state from everybody) using (run)
    left join (select run, round, "key" as state, agents from everybody) using (run, round, state)
), whole as (
    -- a state that several charts have cannot be told apart in `round.ended`
    select c.run, c.round, c.tick, c.chart, c.state,
           if(d.run is null or count(*) over (partition by c.run, c.round, c.tick, c.state) > 1,
              c.agents, coalesce(e.agents, 0)) as agents
    from counted c left join ended d using (run, round, tick)
    left join everybody e on e.run = c.run and e.round = d.round and e.tick = d.tick
                         and e."key" = c.state
    where c.run not in (select run from runs where logged_agents is not null)
    union all select * from sampled
)
select run, if(unit = 'time', null, round) as round, if(unit = 'tick', tick, null) as tick,
       if(unit = 'time' and round <> 0, make_timestamp(round * 1_000_000), null) as time,
       w.chart, state, w.agents,
       w.agents / nullif(sum(w.agents) over (partition by run, w.chart, round, tick), 0) as share
from whole w join runs using (run)
order by run, w.round, w.tick, w.chart nulls first, state;

-- Every kind of transition, and its share of those that leave the state: the maximum-likelihood
-- estimate in a Markov chain (Anderson and Goodman 1957). Deciding to stay is no transition.
create view transitions as
with counted as (
    select run, chart, from_state, to_state, "trigger", count(*) as count
    from events where event = 'statechart.transition' and from_state is not null
                  and to_state is not null group by all
)
select *, count / sum(count) over (partition by run, chart, from_state) as probability
from counted
order by run, chart nulls first, from_state nulls first, count desc, to_state, "trigger" nulls first;

-- How long agents stay in each state, from visits of any length. Visits that were cut or are open
-- would have lasted longer: they are censored, and lower the share that stays (`survival`; Kaplan
-- and Meier 1958) only where others end. `mean` is restricted to the longest visit (Irwin 1949);
-- a percentile is the shortest time by which that share has ended, null where visits were cut
-- before. `at_risk` is the time that agents were in the state. Without rounds and ticks, nobody knows
-- how long open visits have lasted: they are counted in `visits` and `open`, and nowhere else.
create macro dwell_of(of_visits) as table
with lengths as (
    select run, chart, state, length, count(*) filter (ending = 'complete') as complete,
           count(*) filter (ending = 'complete' and timed_out) as timeouts,
           count(*) filter (ending = 'cut') as cut, count(*) filter (ending = 'open') as open
    from query_table(of_visits) where length is not null or ending = 'open' group by all
), risks as (
    select *, sum(complete + cut + open) over (
        partition by run, chart, state order by length desc) as staying
    from lengths
), curve as (
    select *, lead(length) over after - length as width,
           coalesce(product(1 - complete / staying) over (
               partition by run, chart, state order by length), 0) as survival
    from risks window after as (partition by run, chart, state order by length)
)
select run, chart, state, sum(complete + cut + open)::bigint as visits,
       sum(complete)::bigint as complete, sum(cut)::bigint as cut, sum(open)::bigint as open,
       coalesce(sum(complete) filter (length = 0), 0)::bigint as zero,
       min(length) + coalesce(sum(survival * width), 0) as mean,
       min(length) filter (survival <= .5 + 1e-12) as median,
       min(length) filter (survival <= .1 + 1e-12) as p90,
       min(length) filter (survival <= .01 + 1e-12) as p99, max(length) as max,
       sum(timeouts) / nullif(sum(complete), 0) as timeout_share,
       sum((complete + cut + open) * length) as at_risk
from curve group by all order by run, chart nulls first, state;

create view dwell as from dwell_of('visits');

-- Every decision, with what can be told from it alone: whether a model was to be asked (not of a
-- fallback without a request), and the entropy of the probabilities of its options in bits
-- (Shannon 1948), scaled to a sum of 1; null where they are no distribution.
create view decided as
select *, latency is not null and not (source is not distinct from 'fallback'
                                       and attempts is not distinct from 0) as was_asked,
       if(source = 'model', options[coalesce(rotation, 0) + 1] = chosen, null) as was_first,
       if(len(weights) > 0 and list_min(weights) >= 0 and list_max(weights) > 0
          and not list_has_any(weights, [null]) and isfinite(list_max(weights)),
          list_sum(list_transform(weights, lambda w: w / list_max(weights))), null) as total,
       abs(list_sum(list_transform(list_filter(
           weights, lambda w: w / list_max(weights) / total > 0), lambda w:
           w / list_max(weights) / total * log2(w / list_max(weights) / total)))) as bits,
       bits / nullif(log2(len(weights)), 0) as bits_share
from (select *, list_transform(json_extract(probabilities, '$.*'), lambda p:
          if(json_type(p) in ('UBIGINT', 'BIGINT', 'DOUBLE'), try_cast(p as double), -1)) as weights
      from events where event = 'reasoner.decision');

-- Decisions by some of their columns: `from decisions_by(['source', 'reason'])`.
create macro decisions_by(names) as table
select columns(lambda c: c = 'run' or list_contains(names, c)),
       count(*) as asked,
       count(*) - count(*) filter (source = 'fallback') as answered,
       count(*) filter (source = 'model') as from_model,
       count(*) filter (source = 'cache') as from_cache,
       count(*) filter (source = 'policy') as from_policy,
       count(*) filter (source = 'fallback') as from_fallback,
       avg((source is not distinct from 'fallback')::int) as fallback_share, sum(attempts)::bigint as attempts,
       sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens,
       quantile_cont(latency, .5) filter (was_asked) as latency_p50,
       quantile_cont(latency, .9) filter (was_asked) as latency_p90,
       quantile_cont(latency, .99) filter (was_asked) as latency_p99,
       max(latency) filter (was_asked) as latency_max,
       quantile_cont(queue_seconds, .5) filter (was_asked) as queue_p50,
       quantile_cont(queue_seconds, .9) filter (was_asked) as queue_p90,
       quantile_cont(queue_seconds, .99) filter (was_asked) as queue_p99,
       quantile_cont(request_seconds, .5) filter (was_asked) as request_p50,
       quantile_cont(request_seconds, .9) filter (was_asked) as request_p90,
       quantile_cont(request_seconds, .99) filter (was_asked) as request_p99,
       avg(bits) as entropy, avg(bits_share) as entropy_share, avg(option_mass) as option_mass,
       avg(was_first::int) as chosen_first, count(probabilities) as with_probabilities,
       count(repaired) as repaired
from decided group by all order by all nulls first;

create view decisions as from decisions_by(['state', 'model']);

-- What models cost, in decisions and texts; `seconds` are those of the last request of each.
create macro costs_by(names) as table
select columns(lambda c: c = 'run' or list_contains(names, c)),
       count(*) filter (source is null or source not in ('fallback', 'failed')) as answers,
       sum(attempts)::bigint as calls, sum(input_tokens)::bigint as input_tokens,
       sum(output_tokens)::bigint as output_tokens, sum(request_seconds) as seconds,
       sum(money) as money
from (select *, if(event = 'reasoner.decision', 'decisions', 'texts') as what from events
      where event in ('reasoner.decision', 'text.written') and model is not null)
group by all order by all nulls first;

create view costs as from costs_by(['model']);

create view faults as
select run, fault, chart, from_state, to_state, "trigger", arg_min(what, line) as error,
       count(*) as count, count(distinct agent_id) as agents, arg_min_null(round, line) as round,
       arg_min_null(tick, line) as tick, min(line) as line
from wrong group by run, place, fault, chart, from_state, to_state, "trigger", sort
order by run, place, count desc, line;

-- Where agents are stuck, and why; the round, the tick and the time are those of the first event.
create view stuck as
select run, chart, state, "trigger", reason, guards, count(*) as count,
       count(distinct agent_id) as agents,
       count(distinct agent_id) filter (is_there) as still_there,
       arg_min_null(round, line) as round, arg_min_null(tick, line) as tick,
       arg_min_null(timestamp, line) as timestamp, min(line) as line, max(ticks_in_state) as longest
from refused group by all order by run, count desc, line;

-- Who is stuck, and since when: agents that no event has moved since they came into their state,
-- with the last such event. Those that are there for longest come first.
create view stuck_agents as
select run, chart, agent_id, state, since, count(*) as refused,
       arg_max("trigger", line) as "trigger", arg_max(reason, line) as reason,
       arg_max(guards, line) as guards, max(line) as line
from refused where is_there group by run, chart, agent_id, state, since
order by run, since, natural_order(agent_id), agent_id;

-- The measures of a world at the end of each round, and the treatments applied in it.
create view measures as
with long as (
    select run, line, round, unnest(entries(measures), recursive := true),
           generate_subscripts(entries(measures), 1) as place
    from events where event = 'round.ended' and measures is not null
)
select run, round, "key" as measure,
       if(isfinite(try_cast(value as double)) and json_type(value) <> 'VARCHAR',
          try_cast(value as double), if(json_type(value) = 'BOOLEAN', (value = 'true')::int, null))
       as value
from (select *, min(line) over (partition by run, "key") as first from long)
order by run, first, min(place) over (partition by run, "key"), measure, round;

-- The events that a world logged itself, by round.
create view world as
select run, event[7:] as event, round, count(*) as events, count(distinct agent_id) as agents
from events where event like 'world.%' group by all order by run, event, round;

-- The events of one name, with a column for each key that any of them has:
-- `from events_of('world.sold')`.
create macro events_of(name) as table
select * exclude event from events where event = name order by run, line;

-- What agents wrote and liked, with the post that it is about and its author.
create view acts as
with authors as (
    select run, post_id, arg_min(agent_id, line) as author_id from (
        select run, line, post_id, agent_id from events where event = 'post.published'
        union all select run, line + 1099511627776, post_id, author_id from events
        where event = 'post.liked') where agent_id is not null group by all
)
select e.run, e.line, e.round, e.agent_id, e.post_id,
       case e.kind when 'post' then 'posts' when 'reply' then 'replies' when 'reshare' then
           'reshares' else if(event = 'post.liked', 'likes', null) end as what, a.author_id
from events e join runs r using (run) left join authors a
  on a.run = e.run and a.post_id = if(event = 'post.liked', e.post_id, e.parent_id)
where event in ('post.published', 'post.liked')
  -- only a simulation has posts from before its first round
  and coalesce(e.round >= r.started::int, true);

-- Every agent that was ever there: its fields as it joined, where it is, or was when it left, the
-- rounds of both, and what it did. `agent_2` is before `agent_10`. A decision counts for its chart.
create view agents as
with joined as (
    select run, agent_id, coalesce(e.chart, first_chart) as chart, unnest(arg_min(struct_pack(
        display_name, archetype, interests, following, attributes, "parent"), line))
    from events e join runs using (run) where event = 'agent.joined'
    group by run, agent_id, coalesce(e.chart, first_chart)
), moved as (
    select run, agent_id, chart, arg_max("end", line) filter (event <> 'agent.left') as state,
           arg_min(round, line) filter (event = 'agent.joined' and unit <> 'time') as joined_round,
           arg_max(round, line) filter (event = 'agent.left' and unit <> 'time') as left_round
    from steps group by all
), homes as (
    select run, agent_id, min(chart) as home from everyone group by all
), counted as (
    select run, agent_id, coalesce(e.chart, home) as chart,
           count(*) filter (event = 'statechart.transition') as transitions,
           count(*) filter (event = 'post.weighed') as weighed,
           count(*) filter (event = 'reasoner.decision') as decisions,
           count(*) filter (event = 'reasoner.decision' and source = 'fallback') as fallbacks
    from events e join homes using (run, agent_id)
    where event in ('statechart.transition', 'post.weighed', 'reasoner.decision') group by all
), given as (pivot (select run, agent_id, what from acts)
             on what in ('posts', 'replies', 'reshares', 'likes') using count(*)
             group by run, agent_id),
received as (pivot (select run, author_id as agent_id, what from acts)
             on what in ('replies', 'reshares', 'likes') using count(*) group by run, agent_id)
select e.run, e.agent_id, a.arm, e.chart, j.* exclude (run, agent_id, chart, parent), "parent",
       m.state, joined_round, left_round,
       coalesce(c.transitions, 0) as transitions, if(has_feed, coalesce(weighed, 0), null) as weighed,
       coalesce(c.decisions, 0) as decisions, coalesce(c.fallbacks, 0) as fallbacks,
       if(has_feed, coalesce(g.posts, 0), null) as posts,
       if(has_feed, coalesce(g.replies, 0), null) as replies,
       if(has_feed, coalesce(g.reshares, 0), null) as reshares,
       if(has_feed, coalesce(g.likes, 0), null) as likes,
       if(has_feed, coalesce(i.replies, 0), null) as replies_received,
       if(has_feed, coalesce(i.reshares, 0), null) as reshares_received,
       if(has_feed, coalesce(i.likes, 0), null) as likes_received
from everyone e join runs using (run) left join given g using (run, agent_id)
left join received i using (run, agent_id)
left join assigned a on a.run = e.run and a.agent_id = e.agent_id
left join joined j on j.run = e.run and j.agent_id = e.agent_id
                  and j.chart is not distinct from e.chart
left join moved m on m.run = e.run and m.agent_id = e.agent_id
                 and m.chart is not distinct from e.chart
left join counted c on c.run = e.run and c.agent_id = e.agent_id
                   and c.chart is not distinct from e.chart
order by e.run, natural_order(e.agent_id), e.agent_id, e.chart;

-- Who writes, and how unequally, by round and over all rounds (null). An agent creates if it
-- publishes a post that answers none, writes if it only replies or reshares, and is silent
-- otherwise (after Nielsen 2006). `top_1` is the share of all writing by the 1 % who wrote most,
-- `next_9` of the next 9 % (van Mierlo 2014); an agent on the boundary counts in part. `gini` is
-- that of what agents wrote (Gini 1912).
create macro participation_in(first, last) as table
with rounds as (
    select distinct run, round from events where round between first and coalesce(last, 4611686018427387904)
    union all select run, null from runs
), done as (
    select run, agent_id, round, what from acts
    where coalesce(round <= coalesce(last, 4611686018427387904), true)
      and (first = 1 or coalesce(round >= first, true))
), stays as (
    select run, agent_id, min(round) filter (event = 'agent.joined') as begun,
           max(round) filter (event = 'agent.left') as ended
    from events where event in ('agent.joined', 'agent.left') group by all
), counted as (
    select e.run, r.round, e.agent_id, count(*) filter (what = 'posts') as posts,
           count(*) filter (what = 'likes') as liked,
           count(*) filter (what <> 'likes') as written
    from (select distinct run, agent_id from everyone) e join rounds r using (run)
    left join stays s on s.run = e.run and s.agent_id = e.agent_id
    left join done d
      on d.run = e.run and d.agent_id = e.agent_id and (r.round is null or d.round = r.round)
    where e.run in (select run from events where event = 'post.published')
      and coalesce(r.round >= begun, true) and coalesce(r.round <= ended, true)
    group by all
), ranked as (
    select *, count(*) over each as n, sum(written) over each as total,
           row_number() over (partition by run, round order by written desc) - 1 as above
    from counted window each as (partition by run, round)
), shared as (
    select run, round, any_value(n) as agents, avg((written = 0)::int) as silent,
           avg((written > 0 and posts = 0)::int) as writing, avg((posts > 0)::int) as creating,
           avg((liked > 0)::int) as liking, any_value(total)::bigint as written,
           sum(written * least(greatest(.01 * n - above, 0), 1)) / nullif(any_value(total), 0)
           as top_1,
           sum(written * least(greatest(.1 * n - above, 0), 1)) / nullif(any_value(total), 0)
           as top_10,
           sum((n - 1 - 2 * above) * written) / nullif(any_value(n) * any_value(total), 0) as gini
    from ranked group by all
)
select run, round, agents, silent, writing, creating, liking, written, top_1,
       top_10 - top_1 as next_9, 1 - top_10 as other_90, top_10, gini
from shared order by run, round nulls last;

create view participation as from participation_in(1, null);

-- Every post, with those that only others name: a lost parent, or a lost root. They are put back
-- without author and time, directly below the root.
create view posts as
with published as (
    select run, post_id, unnest(arg_min(struct_pack(
        line, parent_id, root_id := coalesce(root_id, parent_id, post_id), agent_id, kind, round,
        tick, timestamp, text), line))
    from events where event = 'post.published' and post_id is not null group by run, post_id
), named as (
    select run, root_id as post_id, null as parent_id, root_id from published
    union all select run, parent_id, root_id, root_id from published
    where parent_id is not null and parent_id <> root_id
)
select run, post_id, parent_id, root_id, agent_id, kind, round, tick, timestamp, text, line
from published
union all
select distinct on (run, post_id) run, post_id, parent_id, root_id, null, null, null, null, null,
       null, null
from named where post_id is not null
  and (run, post_id) not in (select (run, post_id) from published);

-- The tree that each post is in, its depth, and the number of posts in the tree below it, itself
-- included; `of_reshares` are the trees of reshares alone, which end at a reply.
create macro trees_of(of_reshares) as table
with recursive links as (
    select p.run, p.post_id, if(q.post_id is null or p.post_id = p.root_id and not of_reshares,
                                null, p.parent_id) as parent_id
    from posts p left join posts q
      on q.run = p.run and q.post_id = p.parent_id and (not of_reshares or p.kind = 'reshare')
    where not of_reshares or p.kind is not null
), reached as (
    select run, post_id, parent_id, post_id as root_id, 0 as depth from links
    where parent_id is null
    union all
    select l.run, l.post_id, l.parent_id, r.root_id, r.depth + 1
    from reached r join links l on l.run = r.run and l.parent_id = r.post_id
), placed as materialized (
    select * from reached
    -- what answers in a circle stands for itself
    union all select run, post_id, null, post_id, 0 from links
    where (run, post_id) not in (select (run, post_id) from reached)
), sized as (
    select run, post_id, parent_id, root_id, depth, 1 as below from placed
    where depth = (select max(depth) from placed)
    union all
    select p.run, p.post_id, p.parent_id, p.root_id, p.depth, (1 + coalesce(sum(s.below), 0))::int
    from placed p left join sized s on s.run = p.run and s.parent_id = p.post_id
    where p.depth = (select max(depth) - 1 from sized) group by all
)
select * from sized;

-- How far posts spread. `virality` is the mean number of steps between two posts of the tree
-- (Goel, Anderson, Hofman and Watts 2016): a step with s of n posts below it is on the way of
-- s (n - s) pairs. A post from before the first round counts from its beginning.
create view cascades as
with placed as (
    select t.run, t.root_id, t.depth, below, agent_id, kind, timestamp, text, line, t.post_id,
           greatest(p.round::double - 1, 0) * r.ticks_per_round + p.tick as clock,
           max(below) over (partition by t.run, t.root_id) as all_below,
           count(*) over (partition by t.run, t.root_id, t.depth) as at_depth
    from trees_of(false) t join posts p using (run, post_id) join runs r using (run)
), measured as (
    select run, root_id, any_value(agent_id) filter (depth = 0) as author_id, count(*) as size,
           max(depth) as depth, max(at_depth) as breadth,
           if(size > 1, sum(below::double * (all_below - below)) / (size * (size - 1) / 2), null)
           as virality,
           count(distinct agent_id) as agents, count(*) filter (kind = 'reply') as replies,
           count(*) filter (kind = 'reshare') as reshares,
           any_value(timestamp) filter (depth = 0) as started,
           (epoch_us(max(timestamp)) - epoch_us(started)) / 1e6 as lifetime_seconds,
           max(clock) - any_value(clock) filter (depth = 0) as lifetime_ticks,
           count(*) filter (kind is null) as missing, any_value(text) filter (depth = 0) as text,
           min(line) filter (depth = 0) as line
    from placed group by all
)
select m.run, m.root_id, a.arm, m.* exclude (run, root_id, line)
from measured m left join assigned a on a.run = m.run and a.post_id = m.root_id
order by m.run, size desc, m.depth desc, line nulls first, m.root_id;

-- The posts in the arms of experiments: means with 95 % intervals of the normal approximation
-- (1.96 standard errors) over posts. To compare runs, use `prism compare`.
create macro arms_by(names) as table
with reacted as (
    select run, if(event = 'post.published', parent_id, post_id) as post_id,
           count(*) filter (event = 'post.liked') as likes,
           count(*) filter (event = 'post.disliked') as dislikes,
           count(*) filter (event = 'post.published' and kind = 'reply') as replies,
           count(*) filter (event = 'post.published' and kind = 'reshare') as reshares,
           count(*) filter (event = 'post.weighed') as weighed,
           coalesce(sum(likes - dislikes) filter (event = 'post.voted'), 0) as given
    from events where event in ('post.published', 'post.liked', 'post.disliked', 'post.weighed',
                                'post.voted') group by all
), posted as (
    select a.run, experiment, a.arm, a.round, coalesce(r.likes, 0) as likes,
           coalesce(r.dislikes, 0) as dislikes, coalesce(r.replies, 0) as replies,
           coalesce(r.reshares, 0) as reshares, coalesce(r.weighed, 0) as weighed,
           coalesce(r.likes - r.dislikes + given, 0) as score
    from events a left join reacted r using (run, post_id)
    where event = 'treatment.assigned' and a.post_id is not null
)
select columns(lambda c: c in ('run', 'experiment', 'arm') or list_contains(names, c)),
       count(*) as posts, avg(score) as score,
       avg(score) - 1.959963984540054 * stddev_samp(score) / sqrt(count(*)) as score_low,
       avg(score) + 1.959963984540054 * stddev_samp(score) / sqrt(count(*)) as score_high,
       avg(likes) as likes,
       avg(likes) - 1.959963984540054 * stddev_samp(likes) / sqrt(count(*)) as likes_low,
       avg(likes) + 1.959963984540054 * stddev_samp(likes) / sqrt(count(*)) as likes_high,
       avg(dislikes) as dislikes, avg(replies) as replies, avg(reshares) as reshares,
       sum(likes) / nullif(sum(weighed), 0) as like_chance
from posted group by all order by all;

create view arms as from arms_by([]);

-- What agents said to each other, as one reads it.
create view messages as
select run, line, round, tick, coalesce(sender, agent_id) as sender, receiver, content
from events where event = 'message.sent' order by run, line;

-- Each run as one row of numbers, and each round of it: `from measured_in(5, null)` leaves out
-- four rounds of burn-in. Cascades count in the round in which they begin; by default also those
-- from before the first. `browsing` is the share of views among all acts (Benevenuto et al. 2009),
-- `median_place` when the median answer of a cascade comes, as a share of the time to its last
-- one. The world's own measures, those of the last round for the whole, are in `measures`.
create macro measured_in(first, last) as table
with keys as (
    select distinct run, round from events where round between first and coalesce(last, 4611686018427387904)
    union all select run, null from runs
), spans as (
    select run, round, max(tick) as ticks from events
    where round between first and coalesce(last, 4611686018427387904) group by grouping sets ((run, round))
), counted as (
    select run, round, count(*) filter (event = 'statechart.transition') as transitions,
           count(*) filter (event = 'statechart.transition' and "trigger" = 'timeout') as timeouts,
           count(*) filter (event = 'statechart.transition' and "trigger" = 'sees_post') as views,
           count(*) filter (event = 'reasoner.decision') as decisions,
           count(*) filter (event = 'reasoner.decision' and source = 'fallback') as fallbacks,
           sum(e.agent_ticks) filter (event = 'round.ended')::bigint as steps,
           grouping(round) as whole
    from events e join runs r using (run)
    where event in ('statechart.transition', 'reasoner.decision', 'round.ended')
      and coalesce(round >= r.started::int, true) and (first = 1 or coalesce(round >= first, true))
      and coalesce(round <= coalesce(last, 4611686018427387904), true)
    group by grouping sets ((run, round), (run))
), acted as (
    select run, round, count(*) filter (what = 'posts') as posts,
           count(*) filter (what = 'replies') as replies,
           count(*) filter (what = 'reshares') as reshares,
           count(*) filter (what = 'likes') as likes, grouping(round) as whole
    from acts where (first = 1 or coalesce(round >= first, true))
                and coalesce(round <= coalesce(last, 4611686018427387904), true)
    group by grouping sets ((run, round), (run))
), grown as (
    select run, round, count(*) as cascades, avg((size = 1)::int) as singletons,
           avg((depth > 1)::int) as beyond_one_degree, avg(size) as cascade_size,
           avg(depth) as cascade_depth, max(size) as largest_cascade, max(depth) as deepest_cascade,
           -- sums of fractions depend on their order
           avg(virality order by virality) as virality,
           avg(place order by place) as median_place, grouping(round) as whole
    from (select run, t.root_id, any_value(p.round) filter (t.depth = 0) as round, count(*) as size,
                 max(t.depth) as depth,
                 if(size > 1, sum(below::double * (all_below - below)) / (size * (size - 1) / 2),
                    null) as virality,
                 quantile_cont(after, .5) / nullif(max(after), 0) as place
          from (select *, max(below) over (partition by run, root_id) as all_below
                from trees_of(false)) t
          join (select p.*, greatest(p.round::double - 1, 0) * ticks + p.tick
                       - max(greatest(p.round::double - 1, 0) * ticks + p.tick) filter (
                           p.post_id = p.root_id) over (partition by run, p.root_id) as clock,
                       if(p.parent_id is null, null, clock) as after
                from posts p join runs using (run)) p using (run, post_id)
          where coalesce(p.round <= coalesce(last, 4611686018427387904), true)
          group by all)
    where first = 1 or round >= first
    group by grouping sets ((run, round), (run))
), reshared as (
    select run, round, avg((size = 1)::int) as reshare_singletons,
           avg((depth > 1)::int) as reshare_beyond_one_degree, max(depth) as deepest_reshare,
           grouping(round) as whole
    from (select run, t.root_id, any_value(p.round) filter (t.depth = 0) as round, count(*) as size,
                 max(t.depth) as depth
          from trees_of(true) t join posts p using (run, post_id)
          where coalesce(p.round <= coalesce(last, 4611686018427387904), true) group by all)
    where first = 1 or round >= first
    group by grouping sets ((run, round), (run))
), everybody as (
    select run, round, sum(e.transitions)::bigint as transitions,
           sum(coalesce(list_sum(json_extract(e.timeouts, '$.*')::bigint[]), 0))::bigint as timeouts,
           sum(e.decisions_asked)::bigint as decisions,
           sum(coalesce(list_sum(json_extract(e.fallbacks, '$.*')::bigint[]), 0))::bigint
           as fallbacks, grouping(round) as whole
    from events e join runs r using (run)
    where event = 'round.ended' and r.logged_agents is not null
      and round between first and coalesce(last, 4611686018427387904)
    group by grouping sets ((run, round), (run))
), populations as (select run, count(*) as agents from everyone group by run)
select k.run, k.round, if(b.run is null, n.agents, r.agents) as agents,
       coalesce(c.steps, n.agents * if(k.round is null,
           (select sum(ticks) from spans s where s.run = k.run), s.ticks))::bigint as agent_ticks,
       coalesce(b.transitions, c.transitions, 0) as transitions,
       coalesce(b.timeouts, c.timeouts, 0) as timeouts,
       coalesce(b.decisions, c.decisions, 0) as decisions,
       coalesce(b.fallbacks, c.fallbacks, 0) as fallbacks,
       coalesce(a.posts, 0) as posts, coalesce(a.replies, 0) as replies,
       coalesce(a.reshares, 0) as reshares, coalesce(a.likes, 0) as likes,
       coalesce(c.views, 0) as views,
       coalesce(c.views, 0) / nullif(coalesce(c.views, 0) + coalesce(a.posts, 0)
           + coalesce(a.replies, 0) + coalesce(a.reshares, 0) + coalesce(a.likes, 0), 0) as browsing,
       silent, writing, creating, liking, written, top_1, next_9, other_90, top_10, gini,
       cascades, singletons, beyond_one_degree, cascade_size, cascade_depth, largest_cascade,
       deepest_cascade, virality, median_place, reshare_singletons, reshare_beyond_one_degree,
       deepest_reshare,
       if(k.round is null, (select arg_max(measures, line) from events m where m.run = k.run
              and event = 'round.ended' and m.round <= coalesce(last, 4611686018427387904)),
          (select arg_max(measures, line) from events m where m.run = k.run
              and event = 'round.ended' and m.round = k.round)) as measures
from keys k join runs r using (run) left join populations n using (run)
left join spans s on s.run = k.run and s.round = k.round
left join counted c on c.run = k.run and c.round is not distinct from k.round
                    and c.whole = (k.round is null)::int
left join acted a on a.run = k.run and a.round is not distinct from k.round
                  and a.whole = (k.round is null)::int
left join grown g on g.run = k.run and g.round is not distinct from k.round
                  and g.whole = (k.round is null)::int
left join reshared h on h.run = k.run and h.round is not distinct from k.round
                     and h.whole = (k.round is null)::int
left join everybody b on b.run = k.run and b.round is not distinct from k.round
                      and b.whole = (k.round is null)::int
left join participation_in(first, last) p on p.run = k.run and p.round is not distinct from k.round
order by k.run, k.round nulls last;

create view run_measures as
select * exclude round from measured_in(1, null) where round is null;

-- Every event as a sentence, from the side of the agent that acts.
create view happened as
select e.* exclude (schema), case
    when event = 'agent.joined' then concat('joins', ' as a ' || archetype, ', ', state)
    when event = 'agent.left' then concat('leaves the run, ', state)
    when event = 'statechart.transition' then concat(from_state, ' to ', to_state, ' on ',
        e."trigger", ' after ' || if(s.rounds_in_state is null, ticks_in_state
            || if(ticks_in_state = 1, ' tick', ' ticks'), short(s.rounds_in_state) || ' rounds'),
        about(context))
    when event = 'reasoner.decision' then concat('chooses ', chosen, ' among ',
        array_to_string(list_transform(options, lambda o: concat(o, if(
            try_cast(as_map(probabilities)[o] as double) <= 1,
            format(' {:.0f}%', 100 * try_cast(as_map(probabilities)[o] as double)), ''))), ', '),
        ' (', if(source = 'model', coalesce(model, source), source), ': ' || brief(reason, 200),
        ')', about(context))
    when event = 'post.published' then concat(case kind
        when 'reply' then concat('replies to ', parent_id, ' with')
        when 'reshare' then concat('reshares ', parent_id, ' as') else 'posts' end,
        ' ', post_id, ': ', text)
    when event = 'post.liked' then concat('likes ', post_id, ' of ', author_id)
    when event = 'post.weighed' then concat('weighs ', post_id, ': ', concat_ws(', ',
        'relevance ' || short(relevance), 'threshold ' || short(threshold)))
    when event = 'message.sent' then concat('to ', receiver, ': ', brief(content, 200))
    when event = 'statechart.event_refused' then concat('stays in ', state, ' on ', e."trigger",
        ': ', if(reason = 'guards', 'not allowed by ' || array_to_string(guards, ', '),
                 'nothing reacts to it'))
    when event = 'statechart.guard_failed' then concat('the guard of ', e."trigger", ' fails: ', error)
    when event = 'statechart.action_failed' then concat('the action of ', e."trigger", ' fails: ',
        error)
    when event = 'statechart.answer_discarded' then concat('the answer ', chosen, ' to ', e."trigger",
        if(reason = 'not_enabled', ' is no longer possible', ' comes too late'))
    when event = 'text.written' and source = 'failed' then
        concat('has no text for ', "key", ': ', brief(reason, 200))
    when event = 'text.written' and source = 'fallback' then concat('has no text for ', "key",
        ', and takes ', brief(text, 200), ': ', brief(reason, 200))
    when event = 'text.written' then concat('has a text for ', "key", ' (',
        if(source = 'model', coalesce(model, source), source), '): ',
        brief(if(text like '{%', coalesce(try_cast(text as json) ->> 'text', text), text), 200))
    when event = 'workflow.step' then concat('turn ', turn, ', step ', step, ' ', outcome,
        ', to ' || moved_to, ': ' || reason)
    when event = 'workflow.action' then concat('turn ', turn, ', the action of step ', step,
        if(succeeded, ' done', ' failed'))
    when event = 'workflow.refused' then concat('turn ', turn, ', step ', step, ' ',
        coalesce('may not go to ' || target, 'goes nowhere'), ': ', reason)
    when event = 'workflow.run_if_failed' then concat('turn ', turn, ', step ', step,
        ' may not run: ', reason)
    when event = 'cognition.cycle' then concat('cycle ', cycle, ' in ', state, ' ', outcome,
        ', then ', next_state, ': ' || reason)
    when event = 'cognition.action' then concat('cycle ', cycle, ', ', type, ' of ', tags, ' ',
        outcome, ': ' || reason)
    when event = 'cognition.refused' then concat('cycle ', cycle, ', ',
        coalesce(nullif(concat_ws(' of ', nullif(type, ''), nullif(tags, '')), ''), 'no action'),
        ' refused: ', reason)
    when event = 'cognition.paged' then concat('cycle ', cycle, ', paging (', why, '): ',
        coalesce(nullif(concat_ws('; ',
            'moved out ' || nullif(array_to_string(moved_out, ', '), ''),
            'shortened ' || nullif(array_to_string(shortened, ', '), '')), ''), 'moved nothing'))
    when event = 'cognition.stopped' then concat('stops after cycle ', cycle, ': ', reason)
    when event = 'cognition.reset' then
        concat('starts over in ', to_state, ': there is no state ', from_state)
    when event = 'cognition.memory_changed' then
        concat('continues with a memory of ', cycle, ' cycles that was changed from outside')
    when event like 'world.%' then brief(concat(event[7:], own_words(keys)), 200)
    else event end as what, s.rounds_in_state
from events e left join paced s using (run, line);

-- What one agent did, and how others reacted to its posts and messages, in the order of the log:
-- `from agent('agent_0012')`.
create macro agent(id) as table
select h.run, h.line, h.timestamp, h.round, h.tick, h.event, h.chart, case
    when h.agent_id = id then what
    when event = 'post.liked' then concat(h.agent_id, ' likes its ', post_id)
    when event = 'post.published' then concat(h.agent_id, if(kind = 'reply',
        ' replies to its ' || parent_id || ' with ', ' reshares its ' || parent_id || ' as '),
        post_id, ': ', text)
    when event = 'message.sent' then concat('from ', coalesce(sender, h.agent_id), ': ',
                                            brief(content, 200))
    else what end as what,
    h.agent_id, from_state, to_state, "trigger", ticks_in_state, context, state, options, chosen,
    source, reason, probabilities, latency, queue_seconds, request_seconds, done_reason,
    model, relevance, threshold, post_id, kind, parent_id, author_id, text, "key", turn, step,
    outcome, moved_to, target, cycle, next_state, type, tags, why, moved_out, shortened,
    keys, rounds_in_state
from happened h
where h.agent_id = id or author_id = id and event = 'post.liked' or sender = id or receiver = id
   or event = 'post.published' and (h.run, parent_id) in (
       select (run, post_id) from events where event = 'post.published' and events.agent_id = id)
order by h.run, h.line;

-- The first decision, transition, text and action in which the second of two logs differs from the
-- first; empty if they are alike.
create view diff as
with compared as (
    select run, round, tick, case event when 'reasoner.decision' then 'decision'
               when 'statechart.transition' then 'transition' when 'text.written' then 'text'
               when 'workflow.action' then 'action of a workflow' else 'action' end as what,
           case event
               when 'reasoner.decision' then to_json(struct_pack(round, tick, agent_id, state,
                    "trigger", options, context, chosen))
               when 'statechart.transition' then to_json(struct_pack(round, tick, agent_id,
                    from_state, to_state, "trigger", context))
               when 'text.written' then to_json(struct_pack(round, tick, agent_id, "key", text))
               when 'workflow.action' then to_json(struct_pack(round, tick, agent_id, step, "key",
                    action, result))
               else to_json(struct_pack(round, tick, agent_id, type, tags, outcome, fields,
                    answer)) end as facts,
           row_number() over (partition by run, event order by line) as place
    from events where event in ('reasoner.decision', 'statechart.transition', 'text.written',
                                'workflow.action', 'cognition.action')
), parted as (
    select coalesce(a.what, b.what) as what, place, a.facts as was, b.facts as is_now,
           if((b.round, b.tick) < (a.round, a.tick), b.round, coalesce(a.round, b.round)) as round,
           if((b.round, b.tick) < (a.round, a.tick), b.tick, coalesce(a.tick, b.tick)) as tick
    from (select * from compared where run = (select min(run) from logs)) a
    full join (select * from compared where run = (select max(run) from logs)) b
        using (what, place)
    where a.facts is distinct from b.facts
)
select what, round, tick, was, is_now from parted
qualify place = min(place) over (partition by what)
order by what not in ('decision', 'transition'), what;
