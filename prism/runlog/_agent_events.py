"""The events of agents that take turns of a workflow, and of those that think."""

from __future__ import annotations

from prism.runlog._keys import (
    AGENT,
    ASKED,
    COGNITIVE_STATE,
    COUNT,
    CYCLE,
    OBJECT,
    SECONDS,
    STEP,
    TEXT,
    TEXTS,
    TURN,
    Event,
    Key,
    Kind,
    each,
    one_of,
    or_null,
)
from prism.telemetry import events

_ANY = Kind("any value", {"type": ["string", "number", "boolean", "object", "array", "null"]})

WORKFLOW_EVENTS = (
    Event(
        events.WORKFLOW_STEP,
        "info",
        "A step of an agent's workflow has run; a warning if it failed.",
        (
            AGENT,
            TURN,
            STEP,
            Key("type", one_of("llm", "code", "transition"), "Type of the step."),
            Key("state", TEXT, "State it ran in."),
            Key(
                "outcome",
                one_of("done", "skipped", "failed"),
                "`done`, also if its transition was refused; if it failed, `skipped` or `failed` "
                "by its policy.",
            ),
            Key("moved_to", or_null(TEXT), "State that it led to; null if it led to none."),
            Key(
                "reason",
                or_null(TEXT),
                "Why it failed, or why its transition was refused; null otherwise.",
            ),
            Key("seconds", SECONDS, "Seconds that the model or the code took."),
            Key("input_tokens", or_null(COUNT), "Tokens that the model read, where known."),
            Key("output_tokens", or_null(COUNT), "Tokens that it wrote, where known."),
            Key("unknown_variables", TEXTS, "Variables of its prompt that nobody provides."),
        ),
    ),
    Event(
        events.WORKFLOW_ACTION,
        "info",
        "The host application has carried out an action that a step of a workflow asked for, or "
        "has failed to.",
        (
            AGENT,
            TURN,
            STEP,
            Key("key", TEXT, "Name of the action; the same where a turn is taken again."),
            Key("action", OBJECT, "What the model asked for."),
            Key("result", _ANY, "What the host returned, or why it failed."),
            Key("succeeded", Kind("boolean", {"type": "boolean"}), "Whether it did not fail."),
        ),
    ),
    Event(
        events.WORKFLOW_REFUSED,
        "warning",
        "A transition that a step asked for was refused, or the condition on which it runs failed.",
        (
            AGENT,
            TURN,
            STEP,
            Key("state", TEXT, "State of the agent."),
            Key(
                "target",
                or_null(TEXT),
                "State that the step named; null if it named none, or was not to run at all.",
            ),
            Key(
                "reason",
                TEXT,
                "Why: which condition was false or failed, or what the answer was none of.",
            ),
        ),
    ),
    Event(
        events.WORKFLOW_RESET,
        "warning",
        "An agent was restored in a state that its workflow does not declare, and begins anew in "
        "the initial state.",
        (
            AGENT,
            TURN,
            Key("state", TEXT, "State of the agent, which is the initial one."),
            Key("from_state", TEXT, "State that it was to be restored in."),
            Key("to_state", TEXT, "The initial state."),
        ),
    ),
)
"""What a turn of a workflow agent says."""


COGNITION_EVENTS = (
    Event(
        events.COGNITION_CYCLE,
        "info",
        "A cycle of an agent that thinks, executes and pages has ended; a warning if its "
        "reply was unusable, or an error was raised.",
        (
            AGENT,
            CYCLE,
            Key("state", COGNITIVE_STATE, "State that it ran in."),
            Key("next_state", COGNITIVE_STATE, "State after it."),
            Key(
                "outcome",
                one_of("done", "refused", "unusable", "failed"),
                "`refused` if the reply asked for nothing but what could not be done, `unusable` "
                "if it held nothing of use, `failed` if none came, or an error was raised.",
            ),
            Key("reason", or_null(TEXT), "Why it was not done; null otherwise."),
            Key(
                "prompt_tokens",
                or_null(COUNT),
                "Tokens of the prompt by the agent's own count; null if no model was asked.",
            ),
            Key("input_tokens", or_null(COUNT), "Tokens that the model read, where known."),
            Key("output_tokens", or_null(COUNT), "Tokens that it wrote, where known."),
            Key("memories", COUNT, "Entries of working memory after the cycle."),
            Key("thoughts", COUNT, "Entries of the thinking log after the cycle."),
            Key("stored", COUNT, "Entries of storage after the cycle."),
            Key("defects", TEXTS, "What had to be mended in the reply, or made up for."),
        ),
    ),
    Event(
        events.COGNITION_ACTION,
        "info",
        "A memory operation that a reply asked for was carried out.",
        (
            AGENT,
            CYCLE,
            *ASKED,
            Key(
                "outcome",
                one_of("done", "missing"),
                "`missing` if there is no memory of these tags, so that nothing was done.",
            ),
            Key("reason", or_null(TEXT), "Why nothing was done; null otherwise."),
        ),
    ),
    Event(
        events.COGNITION_REFUSED,
        "warning",
        "An action that a reply asked for was not carried out, or none was asked for where one was "
        "due.",
        (
            AGENT,
            CYCLE,
            Key("state", one_of("thinking", "executing"), "State that the cycle ran in."),
            *ASKED,
            Key("reason", TEXT, "Why."),
        ),
    ),
    Event(
        events.COGNITION_PAGED,
        "info",
        "Memories were moved between working memory and storage.",
        (
            AGENT,
            CYCLE,
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
                "went",
                TEXTS,
                "Tags of memories, and keys of thoughts, that went to storage, in this order.",
            ),
            Key("came", TEXTS, "Tags of memories that came back."),
            Key(
                "kept_older",
                each("object: a text for each text", TEXT),
                "Of these that went, those under whose tag storage had another value, with the tag "
                "under which that is kept.",
            ),
            Key("tokens_before", COUNT, "Tokens of the prompt before."),
            Key("tokens_after", COUNT, "Tokens of the prompt after."),
            Key("limit", or_null(COUNT), "The limit in tokens; null if there is none."),
            Key(
                "reason",
                or_null(TEXT),
                "Why the model did not decide although it was asked; null otherwise.",
            ),
        ),
    ),
    Event(
        events.COGNITION_RESET,
        "warning",
        "The memory held a state that there is not, and the agent begins anew in thinking.",
        (
            AGENT,
            CYCLE,
            Key("from_state", TEXT, "State that the memory held."),
            Key("to_state", one_of("thinking"), "The initial state."),
        ),
    ),
    Event(
        events.COGNITION_MEMORY_CHANGED,
        "warning",
        "A run that was resumed found its memory changed by somebody else, and goes on with it as "
        "it is. The folder of the run keeps a copy.",
        (
            AGENT,
            Key("cycle", COUNT, "Cycles of the memory as it is."),
            Key("expected_cycle", COUNT, "Cycles that it had when the run was stopped."),
        ),
    ),
)
"""What a cycle of a thinking agent says."""
