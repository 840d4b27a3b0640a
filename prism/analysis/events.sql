-- The columns of `events`: one row for each line of a log, one column for each key that an event
-- of prism may have (`prism.telemetry.events` says what each means). Objects are JSON. `keys` is the
-- whole line where it has other keys, as the events of a world and of an application have them:
-- `select keys ->> 'price' from events where event = 'world.sold'`.
create table columns (
    event varchar, timestamp timestamp, round bigint, tick bigint, agent_id varchar,
    -- runs and agents
    schema bigint, chart varchar, agents bigint, logged_agents bigint, rounds bigint,
    ticks_per_round bigint, seconds_per_round double, seed bigint, world varchar, parameters json,
    charts json, display_name varchar, archetype varchar,
    interests varchar[], following bigint, follows varchar[], timeout_threshold bigint,
    attributes json, parent varchar, action json,
    -- rounds
    states json, agent_ticks bigint, transitions bigint, posts bigint, replies bigint,
    reshares bigint, likes bigint, dislikes bigint, decisions_asked bigint,
    decisions_answered bigint, timeouts json, fallbacks json, stopped json,
    texts json, measures json,
    kind varchar, measure varchar, "values" json,
    state_names varchar[], agent_states json, agent_ids varchar[], space varchar, width double,
    height double, places json, edges json, colours json,
    treatment varchar, experiment varchar, arm varchar,
    -- posts and messages
    post_id varchar, author_id varchar, parent_id varchar, root_id varchar, topics varchar[],
    text varchar, source varchar, template varchar, relevance double, threshold double,
    score bigint, sender varchar, receiver varchar, content varchar,
    -- charts
    state varchar, from_state varchar, to_state varchar, "trigger" varchar,
    ticks_in_state bigint, context json, guards varchar[], asked_in varchar, now_in varchar,
    error varchar, exception varchar,
    -- decisions and texts
    options varchar[], chosen varchar, reason varchar, probabilities json, question_kind varchar,
    option_mass double, rotation bigint, rotations_apart double, sampling_seed bigint,
    latency double,
    model varchar, host varchar, attempts bigint, input_tokens bigint, output_tokens bigint,
    queue_seconds double, request_seconds double, money double, done_reason varchar, repaired boolean,
    decision_id varchar, prompt_hash varchar, "key" varchar, text_id varchar,
    -- workflows and thinking agents
    turn bigint, step varchar, type varchar, outcome varchar, target varchar, moved_to varchar,
    seconds double, unknown_variables varchar[], result json, succeeded boolean, cycle bigint,
    next_state varchar, prompt_tokens bigint, thought varchar, soft_limit bigint,
    hard_limit bigint, memories bigint, thoughts bigint, stored bigint,
    defects varchar[], tags varchar, fields json, answer varchar, matches varchar[], why varchar,
    moved_out varchar[], shortened varchar[],
    versions varchar[], tokens_before bigint, tokens_after bigint, "limit" bigint,
    expected_cycle bigint, keys json
);
