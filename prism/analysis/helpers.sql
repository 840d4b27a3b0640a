-- What the tables read that is no table itself: words and numbers for people, then views.

-- Words and numbers for people.
create macro brief(words, most) as
    if(length(trim(regexp_replace(words, '\s+', ' ', 'g'))) <= most,
       trim(regexp_replace(words, '\s+', ' ', 'g')),
       trim(regexp_replace(words, '\s+', ' ', 'g'))[:most - 3] || '...');
create macro short(number) as format('{:.3g}', number);
-- The keys and values of an object; of anything else, none.
create macro as_object(any_value) as if(json_type(any_value) = 'OBJECT', any_value, '{}'::json);
create macro entries(object) as map_entries(as_object(object)::map(varchar, json));
create macro as_map(object) as as_object(object)::map(varchar, varchar);
create macro in_words(object) as array_to_string(list_transform(
    map_entries(as_map(object)), lambda pair: pair.key || ' ' || coalesce(pair.value, 'nothing')), ', ');
create macro about(context) as coalesce(', about ' || nullif(coalesce(context ->> 'post_id',
    if(json_type(context) = 'OBJECT', brief(in_words(context), 80), null)), ''), '');
create macro own_words(object) as coalesce(', ' || nullif(in_words(json_merge_patch(object,
    '{"event":null,"timestamp":null,"round":null,"tick":null,"agent_id":null}')), ''), '');
create macro natural_order(name) as regexp_replace(regexp_replace(name, '(\d+)',
    repeat('0', 20) || '\1', 'g'), '0+(\d{20})', '\1', 'g');
create macro is_list_of_texts(any_value) as json_type(any_value) = 'ARRAY' and coalesce(list_bool_and(
    list_transform(try_cast(any_value as json[]), lambda each: json_type(each) = 'VARCHAR')), true);
-- The order of rounds and ticks; a log may claim numbers of any size.
create macro in_order(round, tick) as round::hugeint * (1 << 24) + tick;

-- The moments at which states are counted: every tick up to the last one of the log, as far as a
-- sound log has it (one may claim any number of rounds), every round, or at most 1,000 times.
create view moments as
with seen as (
    select distinct run, round, if(unit = 'tick', tick, 0) as tick
    from events join runs using (run)
    where unit <> 'time' and round is not null and (unit = 'round' or tick is not null)
), ends as (
    select run, greatest(100_000, 100 * count(*)) as most, max(round) as last_round,
           arg_max(tick, in_order(round, tick)) as last_tick from seen group by run
), planned as (
    select run, least(rounds, last_round) as until, ticks_per_round as ticks, last_round, last_tick
    from ends join runs using (run)
    where unit = 'tick' and least(rounds, last_round)::hugeint * ticks_per_round <= most
), between_ends as (
    select run, round, min(tick) as first, max(tick) as last
    from seen join runs using (run)
    where unit = 'tick' and run not in (select run from planned)
      and (ticks_per_round is null or rounds is null or round > 0)
    group by run, round
    qualify sum(last::hugeint - first + 1) over (partition by run) <=
            (select most from ends where ends.run = seen.run)
), times as (
    select run, "end", width, min(round) filter (round > 0) over (partition by run) as first, round
    from steps cross join (values (1), (10), (60), (600), (3600), (21600), (86400), (604800)) w(width)
    where unit = 'time' and source is not null
), widths as (
    select run, width, count(distinct coalesce(nullif(round, 0), first, 0) // width) as number
    from times group by run, width
)
select run, round, tick from (
    select run, unnest(range(1, until + 1)) as round, ticks, last_round, last_tick from planned
) cross join lateral (select unnest(range(1, ticks + 1)) as tick)
where round < last_round or tick <= last_tick
union
select run, round, unnest(range(first, last + 1)) from between_ends
union
select run, round, tick from seen join runs using (run)
where unit = 'round' or run not in (select run from planned union select run from between_ends)
  and (ticks_per_round is null or rounds is null or round > 0)
union
select run, round, if(unit = 'tick', tick, 0) from steps where unit <> 'time' and source is not null
union
select run, coalesce(nullif(round, 0), first, 0) // width * width, 0 from times
where (run, width) in (select (run, min(width)) from widths where number <= 1000 group by run);

-- Visits to states, with how they ended: complete, also as the agent left the run; cut by the end
-- of a round; or open at the end of the log. Lengths are in ticks, where events happen at rates in
-- rounds.
create view visits as
with ended as (
    select run, max(timestamp) as until,
           arg_max((round::double - 1) * ticks + tick, in_order(round, tick)) as clock
    from events join runs using (run) where round is not null and tick is not null group by run
)
select s.run, s.chart, begin as state, s.round,
       if(r.seconds_per_round is null, ticks_in_state, rounds_in_state) as length,
       "trigger" = 'timeout' as timed_out,
       if(closes or "trigger" is not distinct from 'round_ends', 'cut', 'complete') as ending
from steps s join runs r using (run) where begin <> ''
union all
select s.run, s.chart, "end", rounds_seen,
       if(r.seconds_per_round is null, clock - if(s.round > 0, (s.round::double - 1) * ticks + s.tick, 0),
          (epoch_us(until) - epoch_us(timestamp)) / 1e6 / r.seconds_per_round),
       false, 'open'
from (select * from steps qualify line = max(line) over (partition by run, chart, agent_id)) s
join runs r using (run) left join ended using (run)
where "end" <> '';

-- What went wrong: exceptions of one name are one kind, whatever their message, and the first is
-- shown. `place` orders the kinds, the most serious first.
create view wrong as
select *, coalesce(nullif(regexp_extract(what, '^([A-Za-z_]\w*)(?:: |$)', 1), ''), what) as sort
from (
    select run, line, round, tick, chart, agent_id, f.place, f.fault,
           case when event in ('reasoner.decision', 'workflow.step', 'workflow.refused',
                               'workflow.run_if_failed', 'cognition.cycle',
                               'cognition.refused') then state
                when event = 'statechart.answer_discarded' then asked_in else from_state end
           as from_state,
           case when event in ('reasoner.decision', 'statechart.answer_discarded') then chosen
                when event in ('workflow.step', 'workflow.refused') then target else to_state end
           as to_state,
           case when event like 'workflow.%' then step
                when event = 'cognition.refused' then type else "trigger" end as "trigger",
           case when event = 'statechart.answer_discarded' and reason = 'not_enabled'
                then 'its guard no longer passed'
                when event = 'statechart.answer_discarded' and reason = 'left'
                then 'the agent had left the run'
                when event = 'statechart.answer_discarded'
                then 'the agent was already in ' || now_in
                when f.fault = 'variable_unknown'
                then 'nobody provides ' || array_to_string(unknown_variables, ', ')
                when event = 'cognition.reset' then 'there is no such state'
                when event = 'cognition.memory_changed' then 'the memory was changed from outside'
                else coalesce(error, reason) end as what
    from events join (values
        (0, 'statechart.guard_failed', 'guard_failed'),
        (1, 'statechart.action_failed', 'action_failed'), (2, 'workflow.step', 'step_failed'),
        (2, 'workflow.step', 'variable_unknown'),
        (3, 'text.written', 'text_failed'), (4, 'cognition.cycle', 'reply_unusable'),
        (5, 'cognition.refused', 'action_refused'),
        (6, 'cognition.memory_changed', 'memory_changed'),
        (7, 'cognition.reset', 'state_reset'), (8, 'workflow.refused', 'transition_refused'),
        (9, 'statechart.answer_discarded', 'answer_discarded'),
        (10, 'workflow.run_if_failed', 'run_if_failed'),
        (11, 'reasoner.mode_unknown', 'mode_unknown'),
        (12, 'reasoner.decision', 'fallback')) f(place, event, fault) using (event)
    where case event when 'reasoner.decision' then source = 'fallback'
               when 'text.written' then source in ('failed', 'fallback')
               when 'workflow.step' then if(fault = 'step_failed', outcome <> 'done',
                                            len(unknown_variables) > 0)
               when 'cognition.cycle' then outcome = 'unusable' else true end);

-- Events that made no transition, since no guard let one pass or the state has none for them, and
-- where the agent is since when; null where it has moved on. Joining again where it was is no move.
-- The logs of runs leave these events out; `prism.runlog.configure(path, details=True)` writes them.
create view refused as
with last as (
    select run, chart, agent_id, max(line) as line, arg_max("end", line) as now_in,
           arg_max_null(timestamp, line) as since
    from steps where source is distinct from "end" group by all
)
select e.* replace (coalesce(e.chart, first_chart) as chart), l.since,
       coalesce(e.line > l.line and l.now_in = e.state, false) as is_there
from events e join runs using (run) left join last l
  on l.run = e.run and l.agent_id = e.agent_id
     and l.chart is not distinct from coalesce(e.chart, first_chart)
where event = 'statechart.event_refused';

create view treatments as
select run, line, round, treatment, parameters from events where event = 'treatment.applied'
order by run, line;

-- All agents of a log, also those that never moved. One id on two charts is two agents; lines of
-- posts name no chart.
create view everyone as
with named as (
    select run, agent_id, if(event like 'post.%', null, coalesce(e.chart, first_chart)) as chart,
           min(line) as line
    from events e join runs using (run)
    where event in ('agent.joined', 'statechart.transition', 'post.published', 'post.liked')
      and agent_id is not null group by all
)
select * from named
qualify chart is not null or count(chart) over (partition by run, agent_id) = 0;

-- Where agents and posts were assigned to the arms of experiments.
create view assigned as
select run, agent_id, post_id, string_agg(arm, '+' order by round, experiment) as arm
from (select distinct on (run, agent_id, post_id, experiment) * from events
      where event = 'treatment.assigned' order by line)
group by all;

-- How long agents were in the states that they left, where events happen at rates.
create view paced as
select run, line, rounds_in_state from steps
where run in (select run from runs where seconds_per_round is not null);

-- The states inside each composite state, as the first line of a log has them. What is no tree is
-- left out.
create view inside as
with charts as (
    select run, unnest(entries(charts)) as chart from runs
), listed as (
    select run, chart.key as chart, unnest(entries(chart.value), recursive := true) from charts
), trees as (
    select run, chart, "key" as around, unnest(try_cast(value as varchar[])) as state from listed
    where is_list_of_texts(value)
)
select distinct * from trees where (run, chart) not in (
    select (run, chart) from listed where not is_list_of_texts(value)
    union select (run, chart) from (
        with recursive up as (
            select run, chart, around, state, 1 as steps from trees
            union select u.run, u.chart, t.around, u.state, steps + 1 from up u
            join trees t on t.run = u.run and t.chart = u.chart and t.state = u.around
            where steps < 100 and u.around <> u.state
        ) select run, chart from up where around = state));
