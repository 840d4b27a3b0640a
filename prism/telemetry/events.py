"""Names of prism's events, each with the keys that it has in a log.

The level of an event is info where no other is named. A key without a type or a meaning has those
that it has further up.

Attributes:
    event (text): Name of the event.
    timestamp (time): Time in UTC as ISO 8601: simulated time in a simulation, else real time.
    round (count, optional): Round, counted from 1; 0 before the first. In every line of a
        simulation; in other logs if the application binds it.
    tick (count, optional): Tick of the round, counted from 1; 0 before the first. Present
        whenever the round is.
"""

SCHEMA_VERSION = 1
"""Version of the events and their keys; it rises when a reader would have to change."""

RUN_STARTED = "run.started"
"""A log begins. A simulation writes the optional keys, `prism.runlog.configure` does not.

Attributes:
    schema (`1`): Version of this schema.
    chart (text, optional): Name of the chart.
    agents (count, optional): Number of agents.
    logged_agents (count, optional): Number of agents that the log covers, if it covers a sample.
        Counts and measures cover all agents.
    rounds (count, optional): Rounds to run.
    ticks_per_round (count, optional): Steps of each agent in a round.
    seconds_per_round (number, optional): Seconds of this log in a round, which is the unit of time.
        Only in a world whose events happen at rates.
    seed (whole number, optional): Seed of all random numbers.
    world (text, optional): Name of the world's class.
    parameters (object, optional): The world's parameters, by name.
    charts (object, optional): States inside states, by the chart's name:
        `{"phone": {"engaging": ["reading", "replying"]}}`.
"""

AGENT_JOINED = "agent.joined"
"""An agent joins a run, before the first round or later.

In a log of `prism.runlog.configure`, an agent joins when a chart adopts it or it is fired on for
the first time. In a feed, all keys but `chart` and `follows` are present, and `attributes` only
if there are any.

Attributes:
    agent_id (text): Id of the agent.
    chart
    display_name (text, optional): Display name.
    archetype (text or null, optional): Archetype of its behaviour, if any.
    interests (list of texts, optional): Topics that interest it.
    following (count, optional): Number of agents that it follows.
    follows (list of texts, optional): Ids of the agents that it follows, in a feed.
    state (text): State in which it joins.
    parent (text, optional): Id of its parent, if it has one and joins later.
    timeout_threshold (count, optional): Longest dwell time in ticks, in a state for which the chart
        sets no limit.
    attributes (object, optional): Its other attributes, if it has any.
"""

AGENT_LEFT = "agent.left"
"""An agent leaves a run.

Attributes:
    agent_id
    chart (text)
    state (text): State in which it was.
    ticks_in_state (count): Dwell time in that state, in ticks.
"""

MESSAGE_SENT = "message.sent"
"""A message from one agent to another arrives.

Attributes:
    agent_id (text): Id of the sender.
    receiver (text): Id of the receiver.
    content (any value): Its content; a text is cut after 2,000 characters.
"""

ROUND_STARTED = "round.started"
"""A round of a simulation begins."""

ROUND_ENDED = "round.ended"
"""A round of a simulation ends, or a turn of a workflow.

The counts are those of the round. `posts` to `likes` are those of a feed.

Attributes:
    states (object of counts): Agents in each state at the last tick, before all return to idle.
    agent_ticks (count): Steps taken: agents times ticks.
    transitions (count): Transitions between states.
    posts (count, optional): Posts published that are neither replies nor reshares.
    replies (count, optional): Replies published.
    reshares (count, optional): Reshares published.
    likes (count, optional): Likes given.
    decisions_asked (count, optional): Questions to the reasoner.
    decisions_answered (count, optional): Questions that it answered; the others took the fallback.
    timeouts (object of counts, optional): Time-outs, by the state that the agent left.
    fallbacks (object of counts, optional): Decisions that took the fallback, by the kind of reason
        and the server.
    stopped (object, optional): If the world ended the run in this round: `tick`, `time` in rounds,
        and `reason`.
    texts (object of counts, optional): Texts by their source, as in `text.written`, if there were
        any.
    measures (object, optional): Values of the world's measures, by name.
"""

AGENTS_PICTURED = "agents.pictured"
"""Position and look of the agents of a world, before the first round and at the end of each.

A world logs it if it has a space, a network of at most 2,000 agents, or a picture of its own. Lists
have a value for each agent, in the order of `agent_ids`.

Attributes:
    state_names (list of texts): States that agents are in.
    agent_states (list): Index of each agent's state in `state_names`; null if it has left.
    agent_ids (list of texts, optional): Their ids; only before the first round.
    space (`grid` `plane` `network`, optional): The space.
    width (number, optional): Cells in a row, or the width of a plane.
    height (number, optional): Rows, or the height of a plane.
    places (list, optional): Cells of a grid, counted row by row from 0, or pairs of x and y; null
        for an agent without a position.
    edges (list, optional): Pairs of connected agents, by their index in `agent_ids`; before the
        first round, and whenever connections have changed.
    colours (list, optional): Colours, or groups that have one; null for the colour of the state.
"""

TREATMENT_APPLIED = "treatment.applied"
"""A treatment was applied at the beginning of a round.

Attributes:
    treatment (text): Name of the treatment.
    parameters (object): The world's parameters that it changed, with their new values.
"""

TREATMENT_ASSIGNED = "treatment.assigned"
"""An agent or a post is assigned to an arm of an experiment.

This happens when a treatment of some of them is applied, or when the post is published. One of the
two ids is present.

Attributes:
    experiment (text): Name of the experiment.
    arm (text): The treatment, or `control` for none.
    agent_id (text, optional): Id of the agent.
    post_id (text, optional): Id of the post.
"""

POST_VOTED = "post.voted"
"""A treatment gives a post likes or dislikes that come from no agent.

Attributes:
    post_id (text)
    likes (count): Number of likes.
    dislikes (count): Number of dislikes.
"""

FOLLOW_CHANGED = "follow.changed"
"""An agent of a feed follows another one, or stops following it.

Attributes:
    agent_id (text)
    action (`follow` `unfollow`): The change.
    author_id (text): Id of the other agent.
"""

POST_PUBLISHED = "post.published"
"""A post is published. Posts of round 0, tick 0 are older than the simulation.

Attributes:
    agent_id (text): Id of its author.
    post_id
    kind (`post` `reply` `reshare`): Kind of post.
    parent_id (text or null): Id of the post that it replies to or reshares.
    root_id (text): Id of the first post of its cascade, which may be itself.
    topics (list of texts): Its topics.
    text (text): Its text.
    source (`model` `cache` `script` `fallback`, optional): Origin of the text, as in
        `text.written`. Only in a run with a writer.
    template (text, optional): Text of the composer, by which agents weigh the post, so that a
        model's words change no behaviour. Only in a run with a writer.
"""

POST_LIKED = "post.liked"
"""An agent likes a post.

Attributes:
    agent_id (text): Id of the agent.
    post_id
    author_id (text): Id of the post's author.
"""

POST_DISLIKED = "post.disliked"
"""An agent dislikes a post that it has weighed and scrolls past.

Attributes:
    agent_id, post_id, author_id
"""

POST_WEIGHED = "post.weighed"
"""An agent weighs a post. Below the threshold it scrolls on; otherwise a decision follows.

Attributes:
    agent_id, post_id
    relevance (share): Relevance of the post to the agent.
    threshold (share): Relevance from which the agent engages.
    likes (count, optional): Likes of the post at that moment, where scores are shown.
    dislikes (count, optional): Its dislikes.
    score (whole number, optional): Its likes minus its dislikes.
"""

TRANSITION = "statechart.transition"
"""An agent changes its state.

Attributes:
    chart, agent_id
    from_state (text): Source state of the transition.
    to_state (text): Target state.
    trigger (text): Trigger that was fired.
    ticks_in_state (count or null): Dwell time in the source state, in ticks; null if the agent does
        not count them.
    context (object or null): Identifying fields of the context, such as `{"post_id": "p1"}`.
"""

DECISION = "reasoner.decision"
"""An ambiguous event is decided. Level warning if the source is `fallback`.

The keys from `latency` to `output_tokens` are all present if a model was to be asked, and all
absent otherwise. The keys after them are present where their values are known.

Attributes:
    chart (text, optional): Name of the chart, if the question belongs to one.
    agent_id
    state (text): State of the agent.
    trigger
    options (list of texts): Target states of the enabled transitions, in chart order.
    chosen (text): Target state that was chosen.
    source (`model` `cache` `policy` `fallback`): Origin of the choice: a model, its cached answer,
        a policy (also any reasoner that has only `decide`), or none of them.
    reason (text or null): Why the fallback was taken; null otherwise.
    probabilities (object of shares or null): Probability of each option, if known.
    question_kind (text, optional): Form of the answer that the model was asked for: a `letter`, or
        the `name` of an option.
    option_mass (share, optional): Total probability of all options' letters, if the server gave
        log-probabilities. Below a half, names are asked for from then on.
    rotation (count, optional): Number of options that moved from the beginning to the end of the
        list in the prompt. Only where the order of options is shuffled.
    rotations_apart (share, optional): Total variation distance between the answers in all
        rotations. Only with `rotations = "all"`.
    sampling_seed (count, optional): Number drawn for this question and added to the seed of the
        model's sampling. Only where the model's temperature is not 0.
    context
    latency (number, optional): Seconds from the question to its answer: `queue_seconds` and
        `request_seconds`.
    model (text or null, optional): Model that was asked, where known.
    host (text or null, optional): Address of the server that was asked, where known.
    attempts (count, optional): Requests for this decision; 0 if another question's answer served
        it, too.
    input_tokens (count or null, optional): Tokens that the model read, where known.
    output_tokens (count or null, optional): Tokens that it wrote, where known.
    queue_seconds (number, optional): Seconds of the latency outside the last request: waiting for a
        slot, pauses between attempts, requests that failed before.
    request_seconds (number, optional): Seconds that the last request took; 0 if none was sent.
    money (number, optional): Cost, from the server or from the prices of the model.
    done_reason (text, optional): Why the model ended its reply, such as `stop`, or `length` if it
        ran out of tokens.
    repaired (true, optional): The question was asked once more in other words, since a reply was
        useless.
    decision_id (text, optional): Id of the decision in the journal of a kept run: the agent's id, a
        colon, and the number of its decisions and texts up to this one.
    prompt_hash (16 hexadecimal digits, optional): Beginning of the SHA-256 of the prompt in UTF-8.
        Only where a model was to be asked.
"""

TEXT_WRITTEN = "text.written"
"""A text, or JSON of a schema, was written. Level warning if the source is `failed` or `fallback`.

From `latency` on, counts and costs are those of all requests of the call, and durations those of
the last reply.

Attributes:
    agent_id
    key (text): Purpose of the text; with the agent, the name of the call.
    prompt_hash (16 hexadecimal digits)
    text (text or null): The model's last text; null if it wrote nothing.
    source (`model` `cache` `script` `fallback` `template` `failed`): Origin of the text: a model,
        its cached answer, a script of a test; the `template`, as nobody was to be asked; the
        `fallback`, as no usable text came; `failed` if there was no fallback, either.
    reason (text or null): Why it failed, or why the fallback was taken; null otherwise.
    latency, model, host, attempts, input_tokens, output_tokens, queue_seconds, request_seconds
    money, done_reason, repaired
    text_id (text, optional): Id of the text in the journal of a kept run, as `decision_id`.
"""

WORKFLOW_STEP = "workflow.step"
"""A step of an agent's workflow has run. Level warning if it failed.

Attributes:
    agent_id
    turn (count): Turn of the agent, counted from 1; 0 before the first.
    step (text): Name of the step.
    type (`llm` `code` `transition`): Type of the step.
    state (text): State in which it ran.
    outcome (`done` `skipped` `failed`): `done`, also if its transition was refused; `skipped` or
        `failed` by its policy if it failed.
    target (text or null): State that it named, if any.
    moved_to (text or null): Other state that it led to, if any.
    reason (text or null): Why it failed, or why its transition was refused; null otherwise.
    seconds (number): Seconds that the model or the code took.
    input_tokens (count or null)
    output_tokens (count or null)
    unknown_variables (list of texts): Variables of its prompt that have no value.
"""

WORKFLOW_ACTION = "workflow.action"
"""The application carried out an action that a step of a workflow asked for, or failed to.

Attributes:
    agent_id, turn, step
    key (text): Name of the action; the same if the turn is repeated.
    action (object): The action that the model asked for.
    result (any value): Value that the application returned, or why it failed.
    succeeded (boolean): Whether it succeeded.
"""

WORKFLOW_REFUSED = "workflow.refused"
"""A transition that a step asked for was refused. Level warning.

Attributes:
    agent_id, turn, step
    state (text): State of the agent.
    target (text or null): State that the step named, if any.
    reason (text): The condition that was false or failed, or the names that the answer did not
        match.
"""

WORKFLOW_RUN_IF_FAILED = "workflow.run_if_failed"
"""The condition on which a step runs failed, so the step did not run. Level warning.

Attributes:
    agent_id, turn, step, state
    reason (text): The condition, and why it failed.
"""

COGNITION_CYCLE = "cognition.cycle"
"""A cycle of a thinking agent has ended. Level warning if its reply was useless or it failed.

Attributes:
    agent_id
    cycle (count): Cycle, counted from 1 over the life of the agent's memory.
    state (`thinking` `executing` `paging`): State of the cycle.
    next_state (`thinking` `executing` `paging`): State after it.
    outcome (`done` `refused` `unusable` `failed`): `refused` if nothing that the reply asked for
        could be done; `unusable` if the reply had nothing of use; `failed` if no reply came, or an
        error was raised.
    reason (text or null): Why it was not done; null otherwise.
    prompt_tokens (count or null): Tokens of the prompt by the agent's own count; null if no model
        was asked.
    input_tokens, output_tokens
    thought (text or null): Thought that was added to the log, if any.
    soft_limit (count or null): The paging limit, if there is one.
    hard_limit (count or null): The hard limit, if there is one.
    memories (count): Entries of working memory after the cycle.
    thoughts (count): Entries of the thinking log after the cycle.
    stored (count): Entries of storage after the cycle.
    defects (list of texts): What was repaired in the reply, or added to it.
"""

COGNITION_ACTION = "cognition.action"
"""An action that a reply asked for was carried out.

Attributes:
    agent_id, cycle
    type (text): Type of the action, such as `working_memory_add`; empty if it has none.
    tags (text): Tags of the memory; empty if the action has none.
    outcome (`done` `missing`): `missing` if no memory has these tags, so that nothing was done.
    reason (text or null): Why nothing was done; null otherwise.
    fields (object): What the reply gave besides the type, such as `tags` and `value`.
    answer (text, optional): Return value of the application's own action.
    matches (list of texts, optional): Tags of the results of a search, best first.
"""

COGNITION_REFUSED = "cognition.refused"
"""An action was not carried out, or a reply asked for none where one was due. Level warning.

Attributes:
    agent_id, cycle
    state (`thinking` `executing`)
    type, tags
    reason (text): Why.
"""

COGNITION_PAGED = "cognition.paged"
"""Memories were moved between working memory and storage.

Attributes:
    agent_id, cycle
    why (`soft_limit` `hard_limit` `asked`): The limit that was passed; `asked` if a reply named
        paging as the next state.
    moved_out (list of texts): Tags of memories, and keys of thoughts, that moved to storage, in
        this order.
    tokens_before (count): Tokens of the prompt before.
    tokens_after (count): Tokens of the prompt after.
    limit (count or null): The limit in tokens, if there is one.
"""

COGNITION_RESET = "cognition.reset"
"""The memory had an unknown state, and the agent starts over in thinking. Level warning.

Attributes:
    agent_id, cycle
    from_state (text): State in the memory.
    to_state (`thinking`): The initial state.
"""

COGNITION_STOPPED = "cognition.stopped"
"""A run of cycles ended early. Level warning.

Attributes:
    agent_id, cycle, reason
"""

COGNITION_WINDOW = "cognition.window"
"""The server's window is smaller than the configured limits, which were lowered. Level warning.

Attributes:
    agent_id
    window (count): Tokens of prompt and reply together that fit into the server's window.
    soft_limit (count): The paging limit, lowered.
    hard_limit (count): The hard limit, lowered.
"""

EVENT_REFUSED = "statechart.event_refused"
"""An event made no transition. Level debug.

Logs of runs leave it out; `prism.runlog.configure(path, details=True)` writes it.

Attributes:
    chart (text): Name of the chart.
    agent_id
    state (text): State of the agent.
    trigger
    reason (`guards` `no_transition`): No guard let a transition pass; or no transition leaves this
        state on the event.
    guards (list of texts): Names of the guards that did not pass.
    ticks_in_state (count or null): Ticks that the agent has been in the state; null if it does not
        count them.
    context
"""

ANSWER_DISCARDED = "statechart.answer_discarded"
"""An answer was discarded, since it no longer applied when it came. Level warning.

Attributes:
    chart, agent_id, trigger
    asked_in (text): State in which the agent was asked.
    now_in (text): State of the agent when the answer came.
    chosen
    reason (`moved` `not_enabled`): The agent had moved, even if it came back; or the transition was
        no longer enabled.
"""

GUARD_FAILED = "statechart.guard_failed"
"""A guard raised an exception; its transition is not enabled. Level error.

Attributes:
    error (text): The exception on one line: its type and message.
    chart, agent_id
    from_state (text): Source state of the transition.
    to_state (text): Target state.
    trigger
    exception (text): Its traceback, on several lines.
"""

ACTION_FAILED = "statechart.action_failed"
"""An action raised an exception; the transition took place anyway. Level error.

Attributes:
    error, chart, agent_id, from_state, to_state, trigger, exception
"""

RUN_ENDED = "run.ended"
"""The log is complete. Without this event it was cut off, or is still being written.

A simulation adds the sums of its counts.

Attributes:
    error (text, optional): Exception that ended an application's own loop: its type and message.
    agent_ticks (count, optional)
    transitions (count, optional)
    posts, replies, reshares
    likes (count, optional): Likes given.
    decisions_asked, decisions_answered, timeouts, fallbacks, texts
    stopped (object, optional): If the world ended the run early: `round`, `tick`, `time` in rounds,
        and `reason`.
"""
