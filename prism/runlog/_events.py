"""Every event of prism and its keys, defined once."""

from __future__ import annotations

from prism.runlog import _keys as keys
from prism.runlog._agent_events import COGNITION_EVENTS, WORKFLOW_EVENTS
from prism.runlog._keys import Event, Key, Kind, one_of, optional, or_null
from prism.telemetry import events

_LIST = Kind("array", {"type": "array"})

EVENTS = (
    Event(
        events.RUN_STARTED,
        "A log begins. A simulation writes the optional keys, `prism.runlog.configure` does not.",
        (
            Key(
                "schema",
                Kind(f"`{events.SCHEMA_VERSION}`", {"const": events.SCHEMA_VERSION}),
                "Version of this schema.",
            ),
            *optional(
                (
                    keys.CHART,
                    Key("agents", keys.COUNT, "Number of agents."),
                    Key(
                        "logged_agents",
                        keys.COUNT,
                        "How many of them the log covers, if not all: a sample that the seed "
                        "draws. Counts and measures cover all agents.",
                    ),
                    Key("rounds", keys.COUNT, "Rounds to run."),
                    Key("ticks_per_round", keys.COUNT, "Steps of each agent in a round."),
                    Key("seed", keys.WHOLE, "Seed of all random numbers."),
                    Key("world", keys.TEXT, "Name of the world's class."),
                    Key("parameters", keys.OBJECT, "The world's parameters, by name."),
                    Key(
                        "charts",
                        keys.OBJECT,
                        "What lies inside of what, in charts with states inside states, by the "
                        'chart\'s name: `{"phone": {"engaging": ["reading", "replying"]}}`.',
                    ),
                    Key(
                        "models",
                        keys.OBJECTS,
                        "Who is asked for which agents, where they have models of their own: "
                        "`for` whom, how many `agents`, `asked` for `decisions` or `texts`, and "
                        "`model`, `temperature`, `think` and `hosts` as far as they are known.",
                    ),
                )
            ),
        ),
    ),
    Event(
        events.AGENT_JOINED,
        "An agent joins a run, before the first round. In a social feed all keys but `chart` and "
        "`follows` are present, and `attributes` only if there are any.",
        (
            keys.AGENT,
            *optional(
                (
                    keys.CHART,
                    Key("display_name", keys.TEXT, "Display name."),
                    Key("archetype", or_null(keys.TEXT), "Archetype of its behaviour, if any."),
                    Key("interests", keys.TEXTS, "Topics that interest it."),
                    Key("following", keys.COUNT, "Number of agents that it follows."),
                    Key(
                        "follows",
                        keys.TEXTS,
                        "Ids of the agents that it follows, where the parameter `logs_follows` "
                        "asks for them.",
                    ),
                )
            ),
            Key("state", keys.TEXT, "Initial state."),
            *optional(
                (
                    Key(
                        "timeout_threshold",
                        keys.COUNT,
                        "Longest dwell time in ticks, in a state for which the chart sets no "
                        "limit.",
                    ),
                    Key("attributes", keys.OBJECT, "What else is known of it, if anything."),
                )
            ),
        ),
    ),
    Event(events.ROUND_STARTED, "A round of a simulation begins."),
    Event(
        events.ROUND_ENDED,
        "A round of a simulation ends, or a turn of a workflow; the counts are of this round. The "
        "optional ones are those of a social feed.",
        (
            Key(
                "states",
                keys.COUNTS,
                "Agents in each state at the last tick, before all return to idle.",
            ),
            *keys.COUNTED,
            *optional(keys.COUNTED_IN_FEED),
            keys.TEXTS_WRITTEN,
            Key(
                "measures", keys.OBJECT, "What a world's measures came to, by name.", required=False
            ),
        ),
    ),
    Event(
        events.AGENTS_MEASURED,
        "A measure of the agents of a kind, taken at the end of a round.",
        (
            Key("kind", keys.TEXT, "The agents' class."),
            Key("measure", keys.TEXT, "Name of the field or method."),
            Key("agents", keys.COUNT, "Agents that have a value."),
            Key(
                "values",
                keys.OBJECT,
                "Its value by the agent's id, null where there was nothing to measure: of all, or, "
                "where there are more than 500, of 20.",
            ),
            Key(
                "quantiles",
                keys.OBJECT,
                "Where there are more than 500: the quantiles of all, from `0.00` to `1.00`.",
                required=False,
            ),
        ),
    ),
    Event(
        events.AGENTS_PICTURED,
        "Where the agents of a world are and how each is drawn: before the first round, and at the "
        "end of each. Lists have a value for each agent, in the order of `agent_ids`. Written "
        "where the world has a space, a network of at most 2,000 agents, or a picture of its own.",
        (
            Key("state_names", keys.TEXTS, "States that agents are in."),
            Key(
                "agent_states",
                _LIST,
                "The place of each agent's state in these; null if it has left.",
            ),
            *optional(
                (
                    Key("agent_ids", keys.TEXTS, "Their ids; before the first round alone."),
                    Key("space", one_of("grid", "plane", "network"), "What they are in."),
                    Key("width", keys.NUMBER, "Cells in a row, or the width of a plane."),
                    Key("height", keys.NUMBER, "Rows, or the height of a plane."),
                    Key(
                        "places",
                        _LIST,
                        "Cells of a grid, counted row by row from 0 on, or pairs of x and y; null "
                        "for an agent that is nowhere.",
                    ),
                    Key(
                        "edges",
                        _LIST,
                        "Pairs of connected agents, by their places in `agent_ids`; before the "
                        "first round, and in each once connections have changed.",
                    ),
                    Key("colours", _LIST, "Colours, or groups that have one; null for the state."),
                    Key("sizes", _LIST, "Sizes; 1 where there are none."),
                    Key("labels", keys.TEXTS, "What else is to be known of each."),
                )
            ),
        ),
    ),
    Event(
        events.TREATMENT_APPLIED,
        "A treatment was applied at the beginning of a round.",
        (
            Key("treatment", keys.TEXT, "Name of the treatment."),
            Key(
                "parameters",
                keys.OBJECT,
                "The world's parameters that it changed, as they are now.",
            ),
            Key(
                "settings",
                keys.OBJECT,
                "What a ready-made treatment is, as a file of treatments has it.",
                required=False,
            ),
        ),
    ),
    Event(
        events.TREATMENT_ASSIGNED,
        "An agent or a post is assigned to an arm of an experiment: when a treatment of some of "
        "them is applied, or when the post is published. Either of the two ids is there.",
        (
            Key("experiment", keys.TEXT, "Name of the experiment."),
            Key("arm", keys.TEXT, "The treatment that it gets; `control` for none."),
            *optional((keys.AGENT, keys.POST)),
        ),
    ),
    Event(
        events.POST_VOTED,
        "A treatment gives a post likes or dislikes, which are no agent's.",
        (
            keys.POST,
            Key("likes", keys.COUNT, "How many likes."),
            Key("dislikes", keys.COUNT, "How many dislikes."),
        ),
    ),
    Event(
        events.AGENT_REMOVED,
        "An agent leaves a social feed: it takes no further step, and follows and is followed by "
        "nobody.",
        (
            keys.AGENT,
            Key("state", keys.TEXT, "State that it is in."),
            Key("ticks_in_state", keys.COUNT, "Steps since it entered it."),
        ),
    ),
    Event(
        events.FOLLOW_CHANGED,
        "An agent of a social feed follows or mutes another one, or no longer does.",
        (
            keys.AGENT,
            Key("action", one_of("follow", "unfollow", "mute", "unmute"), "What it does."),
            Key("author_id", keys.TEXT, "Id of the other agent."),
        ),
    ),
    Event(
        events.POST_PUBLISHED,
        "A post is published. Posts of round 0, tick 0 are older than the simulation.",
        (
            Key("agent_id", keys.TEXT, "Id of its author."),
            keys.POST,
            Key("kind", one_of("post", "reply", "reshare"), "Kind of post."),
            Key("parent_id", or_null(keys.TEXT), "Id of the post that it replies to or reshares."),
            Key("root_id", keys.TEXT, "Id of the first post of its cascade, which may be itself."),
            Key("topics", keys.TEXTS, "Its topics."),
            Key("text", keys.TEXT, "Its text."),
            Key(
                "source",
                one_of(*keys.WORD_SOURCES),
                "Who wrote it, as in `text.written`. Only where a writer was given.",
                required=False,
            ),
            Key(
                "template",
                keys.TEXT,
                "What the composer would have written, by which the post is weighed, so that a "
                "model's words move nobody. Only where a writer was given.",
                required=False,
            ),
        ),
    ),
    Event(
        events.POST_LIKED,
        "An agent likes a post.",
        (keys.AGENT, keys.POST, Key("author_id", keys.TEXT, "Id of the post's author.")),
    ),
    Event(
        events.POST_DISLIKED,
        "An agent dislikes a post that it has weighed and scrolls past.",
        (keys.AGENT, keys.POST, Key("author_id", keys.TEXT, "Id of the post's author.")),
    ),
    Event(
        events.POST_WEIGHED,
        "An agent weighs a post. Below the threshold it scrolls on; from there on a decision "
        "follows.",
        (
            keys.AGENT,
            keys.POST,
            Key(
                "relevance",
                or_null(keys.SHARE),
                "Relevance of the post to the agent; null if the agent's class weighs posts in a "
                "way of its own.",
            ),
            Key("threshold", or_null(keys.SHARE), "Relevance from which the agent engages."),
            *optional(
                (
                    Key("likes", keys.COUNT, "Likes of the post then, where scores are shown."),
                    Key("dislikes", keys.COUNT, "Its dislikes."),
                    Key("score", keys.WHOLE, "Its likes less its dislikes."),
                )
            ),
        ),
    ),
    Event(
        events.TRANSITION,
        "An agent changes its state.",
        (
            keys.CHART,
            keys.AGENT,
            keys.FROM,
            keys.TO,
            keys.TRIGGER,
            Key(
                "ticks_in_state",
                or_null(keys.COUNT),
                "Dwell time in the source state, in ticks; null if the agent does not count them.",
            ),
            keys.CONTEXT,
        ),
    ),
    Event(
        events.DECISION,
        "An ambiguous event is decided; a warning if the source is `fallback`. The keys from "
        "`latency` to `output_tokens` are present, all or none, if a model was to be asked; those "
        "after them where they are known.",
        (
            keys.AGENT,
            Key("state", keys.TEXT, "State of the agent."),
            keys.TRIGGER,
            Key("options", keys.TEXTS, "Target states of the enabled transitions, in chart order."),
            Key("chosen", keys.TEXT, "Target state that was chosen."),
            Key(
                "source",
                one_of("model", "cache", "replay", "policy", "fallback"),
                "Origin of the choice: a model, its cached or logged answer, a policy (also any "
                "reasoner that has only `decide`), or none.",
            ),
            Key("reason", or_null(keys.TEXT), "Why the fallback was taken; null otherwise."),
            Key("probabilities", or_null(keys.CHANCES), "Probability of each option, if known."),
            Key(
                "option_mass",
                keys.SHARE,
                "Probability that all options have together, where it is read from a model's "
                "log-probabilities. Below a half there are no `probabilities`.",
                required=False,
            ),
            Key(
                "rotation",
                keys.COUNT,
                "How many of the options went from the beginning of the list to its end where the "
                "model was told them. Only where the order of options is shuffled.",
                required=False,
            ),
            Key(
                "sampling_seed",
                keys.COUNT,
                "What was drawn for the agent and its question, and added to the seed of the "
                "model's sampling. Only where the model's temperature is not 0.",
                required=False,
            ),
            keys.CONTEXT,
            Key(
                "said",
                keys.TEXT,
                "The reason that the model gave beside its choice, where the run asks for one.",
                required=False,
            ),
            *optional((*keys.COST, *keys.KNOWN_COST, keys.DECISION_ID)),
            Key(
                "prompt_hash",
                keys.HASH,
                "The beginning of the SHA-256 of the prompt in UTF-8, of a chat also where "
                "probabilities were asked for. Only where a model was to be asked.",
                required=False,
            ),
        ),
    ),
    Event(
        events.TEXT_WRITTEN,
        "A text was written, or JSON of a schema; a warning if the source is `failed` or "
        "`fallback`. The keys from `latency` on are as those of a decision, with those of all "
        "requests of the call added up; durations are of the last reply.",
        (
            keys.AGENT,
            Key("key", keys.TEXT, "What it is for; with the agent, the name of the call."),
            Key(
                "prompt_hash",
                keys.HASH,
                "The beginning of the SHA-256 of the prompt in UTF-8.",
            ),
            Key("text", or_null(keys.TEXT), "What the model wrote last; null if it wrote nothing."),
            Key(
                "source",
                one_of(*keys.TEXT_SOURCES, "failed"),
                "Origin of the text: a model, its cached or logged answer, a script of a test; "
                "the `template`, as nobody was to be asked; the `fallback`, as no usable text "
                "came; `failed` if there was none, either.",
            ),
            Key(
                "reason",
                or_null(keys.TEXT),
                "Why it failed, or why the fallback was taken; null otherwise.",
            ),
            *optional((*keys.COST, *keys.KNOWN_COST, keys.TEXT_ID, keys.CUT)),
        ),
    ),
    *WORKFLOW_EVENTS,
    *COGNITION_EVENTS,
    Event(
        events.ANSWER_DISCARDED,
        "An answer no longer applied when it came, or when it was its turn, and was discarded.",
        (
            keys.CHART,
            keys.AGENT,
            keys.TRIGGER,
            Key("asked_in", keys.TEXT, "State in which the agent was asked."),
            Key("now_in", keys.TEXT, "State of the agent when the answer came."),
            Key("chosen", keys.TEXT, "Target state that was chosen."),
            Key(
                "reason",
                one_of("moved", "not_enabled"),
                "The agent had moved, even if it came back; or the transition was no longer "
                "enabled. Older logs do not have it.",
                required=False,
            ),
        ),
        level="warning",
    ),
    Event(
        events.CACHE_FAILED,
        "The store of a model's answers failed and is no longer used.",
        (keys.ERROR,),
        level="warning",
    ),
    Event(
        events.MODE_UNKNOWN,
        "A reasoner in mode `auto` could not find out whether server and model support decision "
        "questions. It asks by chat until it can, checks again later, and reports only the first "
        "failure.",
        (keys.ERROR,),
        level="warning",
    ),
    Event(
        events.GUARD_FAILED,
        "A guard raised an exception; its transition is not enabled.",
        keys.FAULT,
        level="error",
    ),
    Event(
        events.ACTION_FAILED,
        "An action raised an exception; the transition took place anyway.",
        keys.FAULT,
        level="error",
    ),
    Event(
        events.RUN_ENDED,
        "The log is complete; without this event it was cut off or is still being written. "
        "A simulation adds its counts.",
        optional((*keys.COUNTED, *keys.COUNTED_IN_FEED, keys.TEXTS_WRITTEN, keys.COSTS)),
    ),
)
"""All events of prism, in the order of the page that describes them."""
