"""The events of agents that take turns of a workflow, and of those that think."""

from __future__ import annotations

from prism.runlog import _keys as keys
from prism.runlog._keys import Event, Key, Kind, one_of, optional, or_null
from prism.telemetry import events

_ANY = Kind("any value", {"type": ["string", "number", "boolean", "object", "array", "null"]})

WORKFLOW_EVENTS = (
    Event(
        events.WORKFLOW_STEP,
        "A step of an agent's workflow has run; a warning if it failed.",
        (
            keys.AGENT,
            keys.TURN,
            keys.STEP,
            Key("type", one_of("llm", "code", "transition"), "Type of the step."),
            Key("state", keys.TEXT, "State it ran in."),
            Key(
                "outcome",
                one_of("done", "skipped", "failed"),
                "`done`, also if its transition was refused; if it failed, `skipped` or `failed` "
                "by its policy.",
            ),
            Key("target", or_null(keys.TEXT), "State that it named; null if it named none."),
            Key("moved_to", or_null(keys.TEXT), "State that it led to; null if it led to none."),
            Key(
                "reason",
                or_null(keys.TEXT),
                "Why it failed, or why its transition was refused; null otherwise.",
            ),
            Key("seconds", keys.SECONDS, "Seconds that the model or the code took."),
            Key("input_tokens", or_null(keys.COUNT), "Tokens that the model read, where known."),
            Key("output_tokens", or_null(keys.COUNT), "Tokens that it wrote, where known."),
            Key("unknown_variables", keys.TEXTS, "Variables of its prompt that nobody provides."),
        ),
    ),
    Event(
        events.WORKFLOW_ACTION,
        "The host application has carried out an action that a step of a workflow asked for, or "
        "has failed to.",
        (
            keys.AGENT,
            keys.TURN,
            keys.STEP,
            Key("key", keys.TEXT, "Name of the action; the same where a turn is taken again."),
            Key("action", keys.OBJECT, "What the model asked for."),
            Key("result", _ANY, "What the host returned, or why it failed."),
            Key("succeeded", Kind("boolean", {"type": "boolean"}), "Whether it did not fail."),
        ),
    ),
    Event(
        events.WORKFLOW_REFUSED,
        "A transition that a step asked for was refused, or the condition on which it runs failed.",
        (
            keys.AGENT,
            keys.TURN,
            keys.STEP,
            Key("state", keys.TEXT, "State of the agent."),
            Key(
                "target",
                or_null(keys.TEXT),
                "State that the step named; null if it named none, or was not to run at all.",
            ),
            Key(
                "reason",
                keys.TEXT,
                "Why: which condition was false or failed, or what the answer was none of.",
            ),
        ),
        level="warning",
    ),
    Event(
        events.WORKFLOW_RESET,
        "An agent was restored in a state that its workflow does not declare, and starts over in "
        "the initial state.",
        (
            keys.AGENT,
            keys.TURN,
            Key("state", keys.TEXT, "State of the agent, which is the initial one."),
            Key("from_state", keys.TEXT, "State that it was to be restored in."),
            Key("to_state", keys.TEXT, "The initial state."),
        ),
        level="warning",
    ),
)
"""What a turn of a workflow agent says."""


COGNITION_EVENTS = (
    Event(
        events.COGNITION_CYCLE,
        "A cycle of an agent that thinks, executes and pages has ended; a warning if its "
        "reply was unusable, or an error was raised.",
        (
            keys.AGENT,
            keys.CYCLE,
            Key("state", keys.COGNITIVE_STATE, "State that it ran in."),
            Key("next_state", keys.COGNITIVE_STATE, "State after it."),
            Key(
                "outcome",
                one_of("done", "refused", "unusable", "failed"),
                "`refused` if the reply asked for nothing but what could not be done, `unusable` "
                "if it held nothing of use, `failed` if none came, or an error was raised.",
            ),
            Key("reason", or_null(keys.TEXT), "Why it was not done; null otherwise."),
            Key(
                "prompt_tokens",
                or_null(keys.COUNT),
                "Tokens of the prompt by the agent's own count; null if no model was asked.",
            ),
            Key("input_tokens", or_null(keys.COUNT), "Tokens that the model read, where known."),
            Key("output_tokens", or_null(keys.COUNT), "Tokens that it wrote, where known."),
            Key("thought", or_null(keys.TEXT), "What was added to the log; null for nothing."),
            Key("soft_limit", or_null(keys.COUNT), "The paging limit; null if there is none."),
            Key("hard_limit", or_null(keys.COUNT), "The hard limit; null if there is none."),
            Key("memory_tokens", keys.COUNT, "Tokens of working memory after the cycle."),
            Key("memories", keys.COUNT, "Entries of working memory after the cycle."),
            Key("thoughts", keys.COUNT, "Entries of the thinking log after the cycle."),
            Key("stored", keys.COUNT, "Entries of storage after the cycle."),
            Key("defects", keys.TEXTS, "What had to be mended in the reply, or made up for."),
        ),
    ),
    Event(
        events.COGNITION_ACTION,
        "An action that a reply asked for was carried out.",
        (
            keys.AGENT,
            keys.CYCLE,
            *keys.ASKED,
            Key(
                "outcome",
                one_of("done", "missing"),
                "`missing` if there is no memory of these tags, so that nothing was done.",
            ),
            Key("reason", or_null(keys.TEXT), "Why nothing was done; null otherwise."),
            *optional(
                (
                    Key("fields", keys.OBJECT, "Of an action of the application: its fields."),
                    Key("answer", keys.TEXT, "What an action of the application returned."),
                    Key("found", keys.TEXTS, "Tags of what a search found, best first."),
                )
            ),
        ),
    ),
    Event(
        events.COGNITION_REFUSED,
        "An action that a reply asked for was not carried out, or none was asked for where one was "
        "due.",
        (
            keys.AGENT,
            keys.CYCLE,
            Key("state", one_of("thinking", "executing"), "State that the cycle ran in."),
            *keys.ASKED,
            Key("reason", keys.TEXT, "Why."),
        ),
        level="warning",
    ),
    Event(
        events.COGNITION_PAGED,
        "Memories were moved between working memory and storage.",
        (
            keys.AGENT,
            keys.CYCLE,
            Key(
                "why",
                one_of("soft_limit", "hard_limit", "asked"),
                "The limit that was passed; `asked` if a reply named paging as the next state.",
            ),
            Key(
                "by",
                one_of("lru", "model"),
                "Who decided: the least recently used went, or the model named them.",
            ),
            Key(
                "moved_out",
                keys.TEXTS,
                "Tags of memories, and keys of thoughts, that moved to storage, in this order.",
            ),
            Key("moved_in", keys.TEXTS, "Tags of memories that came back."),
            Key(
                "shortened",
                keys.TEXTS,
                "Keys of thoughts of which the whole moved to storage, and the beginning stayed.",
            ),
            Key(
                "versions",
                keys.TEXTS,
                "Of those that moved to storage, those of which an older value is kept there.",
            ),
            Key("tokens_before", keys.COUNT, "Tokens of the prompt before."),
            Key("tokens_after", keys.COUNT, "Tokens of the prompt after."),
            Key("limit", or_null(keys.COUNT), "The limit in tokens; null if there is none."),
            Key(
                "reason",
                or_null(keys.TEXT),
                "Why the model did not decide although it was asked; null otherwise.",
            ),
        ),
    ),
    Event(
        events.COGNITION_RESET,
        "The memory held an unknown state, and the agent starts over in thinking.",
        (
            keys.AGENT,
            keys.CYCLE,
            Key("from_state", keys.TEXT, "State that the memory held."),
            Key("to_state", one_of("thinking"), "The initial state."),
        ),
        level="warning",
    ),
    Event(
        events.COGNITION_STOPPED,
        "A run of cycles ended before its time.",
        (keys.AGENT, keys.CYCLE, Key("reason", keys.TEXT, "Why.")),
        level="warning",
    ),
    Event(
        events.COGNITION_MEMORY_CHANGED,
        "A run that was resumed found its memory changed by somebody else, and goes on with it as "
        "it is. The folder of the run keeps a copy.",
        (
            keys.AGENT,
            Key("cycle", keys.COUNT, "Cycles of the memory as it is."),
            Key("expected_cycle", keys.COUNT, "Cycles that it had when the run was stopped."),
        ),
        level="warning",
    ),
)
"""What a cycle of a thinking agent says."""
