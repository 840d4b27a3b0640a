"""Every event of prism and its keys, defined once."""

from __future__ import annotations

from prism.runlog._agent_events import COGNITION_EVENTS, WORKFLOW_EVENTS
from prism.runlog._keys import (
    AGENT,
    CHANCES,
    CHART,
    CONTEXT,
    COST,
    COSTS,
    COUNT,
    COUNTED,
    COUNTED_IN_FEED,
    COUNTS,
    DECISION_ID,
    ERROR,
    FAULT,
    FROM,
    HASH,
    KNOWN_COST,
    OBJECT,
    OBJECTS,
    POST,
    SHARE,
    TEXT,
    TEXT_ID,
    TEXT_SOURCES,
    TEXTS,
    TEXTS_WRITTEN,
    TO,
    TRIGGER,
    WHOLE,
    WORD_SOURCES,
    Event,
    Key,
    Kind,
    one_of,
    optional,
    or_null,
)
from prism.telemetry import events

EVENTS = (
    Event(
        events.RUN_STARTED,
        "info",
        "A log begins. A simulation writes the optional keys, `prism.runlog.configure` does not.",
        (
            Key(
                "schema",
                Kind(f"`{events.SCHEMA_VERSION}`", {"const": events.SCHEMA_VERSION}),
                "Version of this schema.",
            ),
            *optional(
                (
                    CHART,
                    Key("agents", COUNT, "Number of agents."),
                    Key("rounds", COUNT, "Rounds to run."),
                    Key("ticks_per_round", COUNT, "Steps of each agent in a round."),
                    Key("seed", WHOLE, "Seed of all random numbers."),
                    Key("world", TEXT, "Name of the world's class."),
                    Key("parameters", OBJECT, "The world's parameters, by name."),
                    Key(
                        "models",
                        OBJECTS,
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
        "info",
        "An agent joins a run, before the first round. In a social feed all keys but `chart` and "
        "`follows` are present, and `attributes` only if there are any.",
        (
            AGENT,
            *optional(
                (
                    CHART,
                    Key("display_name", TEXT, "Display name."),
                    Key("archetype", or_null(TEXT), "Archetype of its behaviour, if any."),
                    Key("interests", TEXTS, "Topics that interest it."),
                    Key("following", COUNT, "Number of agents that it follows."),
                    Key(
                        "follows",
                        TEXTS,
                        "Ids of the agents that it follows, where the parameter `logs_follows` "
                        "asks for them.",
                    ),
                )
            ),
            Key("state", TEXT, "Initial state."),
            *optional(
                (
                    Key(
                        "timeout_threshold",
                        COUNT,
                        "Longest dwell time in ticks, in a state for which the chart sets no "
                        "limit.",
                    ),
                    Key("attributes", OBJECT, "What else is known of it, if anything."),
                )
            ),
        ),
    ),
    Event(events.ROUND_STARTED, "info", "A round of a simulation begins."),
    Event(
        events.ROUND_ENDED,
        "info",
        "A round of a simulation ends, or a turn of a workflow; the counts are of this round. The "
        "optional ones are those of a social feed.",
        (
            Key(
                "states",
                COUNTS,
                "Agents in each state at the last tick, before all return to idle.",
            ),
            *COUNTED,
            *optional(COUNTED_IN_FEED),
            TEXTS_WRITTEN,
            Key("measures", OBJECT, "What a world's measures came to, by name.", required=False),
        ),
    ),
    Event(
        events.TREATMENT_APPLIED,
        "info",
        "A treatment was applied at the beginning of a round.",
        (
            Key("treatment", TEXT, "Name of the treatment."),
            Key("parameters", OBJECT, "The world's parameters that it changed, as they are now."),
            Key(
                "settings",
                OBJECT,
                "What a ready-made treatment is, as a file of treatments has it.",
                required=False,
            ),
        ),
    ),
    Event(
        events.TREATMENT_ASSIGNED,
        "info",
        "An agent or a post is assigned to an arm of an experiment: when a treatment of some of "
        "them is applied, or when the post is published. Either of the two ids is there.",
        (
            Key("experiment", TEXT, "Name of the experiment."),
            Key("arm", TEXT, "The treatment that it gets; `control` for none."),
            *optional((AGENT, POST)),
        ),
    ),
    Event(
        events.POST_VOTED,
        "info",
        "A treatment gives a post likes or dislikes, which are no agent's.",
        (
            POST,
            Key("likes", COUNT, "How many likes."),
            Key("dislikes", COUNT, "How many dislikes."),
        ),
    ),
    Event(
        events.AGENT_REMOVED,
        "info",
        "An agent leaves a social feed: it takes no further step, and follows and is followed by "
        "nobody.",
        (
            AGENT,
            Key("state", TEXT, "State that it is in."),
            Key("ticks_in_state", COUNT, "Steps since it entered it."),
        ),
    ),
    Event(
        events.POST_PUBLISHED,
        "info",
        "A post is published. Posts of round 0, tick 0 are older than the simulation.",
        (
            Key("agent_id", TEXT, "Id of its author."),
            POST,
            Key("kind", one_of("post", "reply", "reshare"), "Kind of post."),
            Key("parent_id", or_null(TEXT), "Id of the post that it replies to or reshares."),
            Key("root_id", TEXT, "Id of the first post of its cascade, which may be itself."),
            Key("topics", TEXTS, "Its topics."),
            Key("text", TEXT, "Its text."),
            Key(
                "source",
                one_of(*WORD_SOURCES),
                "Who wrote it, as in `text.written`. Only where a writer was given.",
                required=False,
            ),
            Key(
                "template",
                TEXT,
                "What the composer would have written, by which the post is weighed, so that a "
                "model's words move nobody. Only where a writer was given.",
                required=False,
            ),
        ),
    ),
    Event(
        events.POST_LIKED,
        "info",
        "An agent likes a post.",
        (AGENT, POST, Key("author_id", TEXT, "Id of the post's author.")),
    ),
    Event(
        events.POST_DISLIKED,
        "info",
        "An agent dislikes a post that it has weighed and scrolls past.",
        (AGENT, POST, Key("author_id", TEXT, "Id of the post's author.")),
    ),
    Event(
        events.POST_WEIGHED,
        "info",
        "An agent weighs a post. Below the threshold it scrolls on; from there on a decision "
        "follows.",
        (
            AGENT,
            POST,
            Key(
                "relevance",
                or_null(SHARE),
                "Relevance of the post to the agent; null if the agent's class weighs posts in a "
                "way of its own.",
            ),
            Key("threshold", or_null(SHARE), "Relevance from which the agent engages."),
            *optional(
                (
                    Key("likes", COUNT, "Likes of the post then, where scores are shown."),
                    Key("dislikes", COUNT, "Its dislikes."),
                    Key("score", WHOLE, "Its likes less its dislikes."),
                )
            ),
        ),
    ),
    Event(
        events.TRANSITION,
        "info",
        "An agent changes its state.",
        (
            CHART,
            AGENT,
            FROM,
            TO,
            TRIGGER,
            Key(
                "ticks_in_state",
                or_null(COUNT),
                "Dwell time in the source state, in ticks; null if the agent does not count them.",
            ),
            CONTEXT,
        ),
    ),
    Event(
        events.DECISION,
        "info",
        "An ambiguous event is decided; a warning if the source is `fallback`. The keys from "
        "`latency` to `output_tokens` are present, all or none, if a model was to be asked; those "
        "after them where they are known.",
        (
            AGENT,
            Key("state", TEXT, "State of the agent."),
            TRIGGER,
            Key("options", TEXTS, "Target states of the enabled transitions, in chart order."),
            Key("chosen", TEXT, "Target state that was chosen."),
            Key(
                "source",
                one_of("model", "cache", "replay", "policy", "fallback"),
                "Origin of the choice: a model, its cached or logged answer, a policy (also any "
                "reasoner that has only `decide`), or none.",
            ),
            Key("reason", or_null(TEXT), "Why the fallback was taken; null otherwise."),
            Key("probabilities", or_null(CHANCES), "Probability of each option, if known."),
            CONTEXT,
            Key(
                "said",
                TEXT,
                "The reason that the model gave beside its choice, where the run asks for one.",
                required=False,
            ),
            *optional((*COST, *KNOWN_COST, DECISION_ID)),
            Key(
                "prompt_hash",
                HASH,
                "The beginning of the SHA-256 of the prompt in UTF-8, of a chat also where "
                "probabilities were asked for. Only where a model was to be asked.",
                required=False,
            ),
        ),
    ),
    Event(
        events.TEXT_WRITTEN,
        "info",
        "A text was written, or JSON of a schema; a warning if the source is `failed` or "
        "`fallback`. The keys from `latency` on are as those of a decision, with those of all "
        "requests of the call added up; durations are of the last reply.",
        (
            AGENT,
            Key("key", TEXT, "What it is for; with the agent, the name of the call."),
            Key(
                "prompt_hash",
                HASH,
                "The beginning of the SHA-256 of the prompt in UTF-8.",
            ),
            Key("text", or_null(TEXT), "What the model wrote last; null if it wrote nothing."),
            Key(
                "source",
                one_of(*TEXT_SOURCES, "failed"),
                "Origin of the text: a model, its cached or logged answer, a script of a test; "
                "the `template`, as nobody was to be asked; the `fallback`, as no usable text "
                "came; `failed` if there was none, either.",
            ),
            Key(
                "reason",
                or_null(TEXT),
                "Why it failed, or why the fallback was taken; null otherwise.",
            ),
            *optional((*COST, *KNOWN_COST, TEXT_ID)),
        ),
    ),
    *WORKFLOW_EVENTS,
    *COGNITION_EVENTS,
    Event(
        events.ANSWER_DISCARDED,
        "warning",
        "An answer no longer applied when it came, or when it was its turn, and was discarded.",
        (
            CHART,
            AGENT,
            TRIGGER,
            Key("asked_in", TEXT, "State in which the agent was asked."),
            Key("now_in", TEXT, "State of the agent when the answer came."),
            Key("chosen", TEXT, "Target state that was chosen."),
            Key(
                "reason",
                one_of("moved", "not_enabled"),
                "The agent had moved, even if it came back; or the transition was no longer "
                "enabled. Older logs do not have it.",
                required=False,
            ),
        ),
    ),
    Event(
        events.CACHE_FAILED,
        "warning",
        "The store of a model's answers failed and is no longer used.",
        (ERROR,),
    ),
    Event(
        events.MODE_UNKNOWN,
        "warning",
        "A reasoner in mode `auto` could not find out whether server and model support decision "
        "questions. It asks by chat until it can, checks again later, and reports only the first "
        "failure.",
        (ERROR,),
    ),
    Event(
        events.GUARD_FAILED,
        "error",
        "A guard raised an exception; its transition is not enabled.",
        FAULT,
    ),
    Event(
        events.ACTION_FAILED,
        "error",
        "An action raised an exception; the transition took place nevertheless.",
        FAULT,
    ),
    Event(
        events.RUN_ENDED,
        "info",
        "The log is complete; without this event it was cut off or is still being written. "
        "A simulation adds its counts.",
        optional((*COUNTED, *COUNTED_IN_FEED, TEXTS_WRITTEN, COSTS)),
    ),
)
"""All events of prism, in the order of the page that describes them."""
